"""A question with its answer and the steps that lead to it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkedQuestion:
    """A question, its only correct answer, and the steps that lead to it.

    Parameters
    ----------
    text: the question.
    answer: the correct answer.
    steps: the intermediate steps, which the model writes when it thinks.
    draft: the same steps without their operands, which the model writes when it is asked for Chain of Draft.
    kind: the kind of question, a name in ``KINDS``.
    difficulty: the size of the question: its number of digits, letters, words, brackets or operations.
    """

    text: str
    answer: str
    steps: str
    draft: str
    kind: str
    difficulty: int
