"""What every benchmark is: where its questions are, how one is asked and how an answer to it is graded."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bpac.answer import Answer
from bpac.benchmarks.hub import HubSource, hub_rows
from bpac.benchmarks.rows import DatasetRow, file_rows
from bpac.errors import TableError
from bpac.grading.text.answer_text import Verdict

Message = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its right answer.

    Parameters
    ----------
    id: its name, unique in its benchmark.
    prompt: what is asked, without instructions on how to answer.
    reference: the right answer; none if the question is open.
    category: the subject, task or source it belongs to.
    options: what there is to choose from, from A on.
    """

    id: str
    prompt: str
    reference: str | None = None
    category: str = ""
    options: tuple[str, ...] = ()


def never_graded(question: Question, text: str, finished: bool) -> Verdict:
    """The verdict on answers to open questions, which need a judge: not gradable here.

    >>> never_graded(Question("1", "Write a poem."), "Roses …", True) is None
    True
    """
    return None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A data set to ask and to grade.

    Parameters
    ----------
    name: what it is called on the command line.
    source: where its questions are on the Hugging Face hub.
    read: makes a question of a row, wherever the row is from.
    instruct: writes what the model is told, the question included.
    verdict: grades a text; told whether the model came to an end by itself.
    """

    name: str
    source: HubSource
    read: Callable[[DatasetRow], Question]
    instruct: Callable[[Question], str]
    verdict: Callable[[Question, str, bool], Verdict] = never_graded

    def load(self, path: str | Path | None = None) -> tuple[Question, ...]:
        """Its questions, from a ``.jsonl`` or ``.json`` file (each also ``.gz``), or from the hub."""
        rows = hub_rows(self.source) if path is None else file_rows(path)
        return self._questions(rows)

    def _questions(self, rows: Iterable[DatasetRow]) -> tuple[Question, ...]:
        questions: dict[str, Question] = {}
        for cells in rows:
            question = self.read(cells)
            if question.id in questions:
                raise TableError(f"{cells.place}: the id {question.id!r} stands in an earlier row too")
            questions[question.id] = question
        return tuple(questions.values())

    def ask(self, question: Question) -> list[Message]:
        """The messages that ask a question, as any chat model takes them."""
        return [{"role": "user", "content": self.instruct(question)}]

    def grade(self, question: Question, text: str, finished: bool = True) -> Verdict:
        """Whether a text answers the question rightly; ``None`` if that cannot be said.

        Parameters
        ----------
        question: what was asked.
        text: what the model said, with or without its reasoning.
        finished: whether it came to an end by itself: if it did, no answer is a wrong answer.
        """
        return self.verdict(question, text, finished)

    def grade_answer(self, question: Question, answer: Answer) -> Verdict:
        """As ``grade``, for a server's answer, which knows whether it was cut off."""
        return self.grade(question, answer.text, finished=answer.finished)
