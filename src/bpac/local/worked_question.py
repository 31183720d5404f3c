"""A question whose answer and worked steps are known."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkedQuestion:
    """A question, its only right answer, and how to get there.

    Parameters
    ----------
    text: the question as it is asked.
    answer: the right answer.
    steps: the working, short enough to be written down.
    kind: what it asks for: a name in ``KINDS``.
    difficulty: its size: digits, letters or operations.
    """

    text: str
    answer: str
    steps: str
    kind: str
    difficulty: int
