"""A benchmark: the source of its questions, the prompt for a question and the grader of its answers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpac.answer import Answer
from bpac.benchmarks.hub import HubSource, hub_rows
from bpac.benchmarks.rows import DatasetRow, file_rows
from bpac.errors import TableError
from bpac.grading.text.answer_text import Verdict

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its correct answer.

    Parameters
    ----------
    id: the id of the question, unique in its benchmark.
    prompt: the question, without instructions on how to answer.
    reference: the correct answer; none if the question is open-ended.
    category: the subject, task or source of the question.
    options: the texts of the options of a multiple-choice question, beginning with A.
    messages: the chat messages that ask it, where they are more than the prompt (default: none).
    """

    id: str
    prompt: str
    reference: str | None = None
    category: str = ""
    options: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()


def never_graded(question: Question, text: str, finished: bool) -> Verdict:
    """The verdict on answers to open questions: always ``None``, because they need a judge.

    >>> never_graded(Question("1", "Write a poem."), "Roses …", True) is None
    True
    """
    return None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A data set of questions, with a prompt and a grader.

    Parameters
    ----------
    name: its name on the command line.
    source: the data set on the Hugging Face hub.
    read: makes a question from a row of the hub or of a file.
    instruct: writes the prompt for a question.
    verdict: grades a text, given the question and whether the model stopped by itself (default: not graded).
    """

    name: str
    source: HubSource
    read: Callable[[DatasetRow], Question]
    instruct: Callable[[Question], str]
    verdict: Callable[[Question, str, bool], Verdict] = never_graded

    @property
    def compares_answers(self) -> bool:
        """Whether drafts are compared with the expert's answer if a question has no correct answer."""
        return False

    def load(self, path: str | Path | None = None) -> tuple[Question, ...]:
        """The questions, from a ``.jsonl`` or ``.json`` file (each also ``.gz``) or, without a path, from the hub."""
        rows = hub_rows(self.source) if path is None else file_rows(path)
        return self._questions(rows)

    def _questions(self, rows: Iterable[DatasetRow]) -> tuple[Question, ...]:
        questions: dict[str, Question] = {}
        for row in rows:
            question = self.read(row)
            if question.id in questions:
                raise TableError(f"{row.place}: the id {question.id!r} is also the id of an earlier row")
            questions[question.id] = question
        return tuple(questions.values())

    def ask(self, question: Question) -> list[Message]:
        """The chat messages that ask a question."""
        return [{"role": "user", "content": self.instruct(question)}]

    def grade(self, question: Question, text: str, finished: bool = True) -> Verdict:
        """Whether a text answers the question correctly; ``None`` if it cannot be graded.

        Parameters
        ----------
        question: the question.
        text: the model's answer, with or without its reasoning.
        finished: whether the model stopped by itself; if it did, a missing answer is wrong (default: true).
        """
        return self.verdict(question, text, finished)

    def grade_answer(self, question: Question, answer: Answer) -> Verdict:
        """As ``grade``, for an ``Answer``, whose finish reason says whether the model was cut off."""
        return self.grade(question, answer.text, finished=answer.finished)
