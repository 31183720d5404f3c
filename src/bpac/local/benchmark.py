"""The local questions as a benchmark, to be asked and graded like any other."""

from pathlib import Path

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.hub import HubSource
from bpac.benchmarks.rows import Cells
from bpac.grading.text.reply import Verdict
from bpac.local.questions import fresh_questions

COUNT = 5_000


class MadeUp(Benchmark):
    """A benchmark whose questions are made up here, not fetched."""

    __slots__ = ()

    def load(self, path: str | Path | None = None) -> tuple[Question, ...]:
        """Questions that were never trained on, or those of a file."""
        return fresh(COUNT, seed=0) if path is None else Benchmark.load(self, path)


def fresh(count: int, seed: int) -> tuple[Question, ...]:
    """Different questions that were never trained on; more of them begin with the same ones.

    Parameters
    ----------
    count: how many.
    seed: the same seed gives the same questions.

    >>> fresh(1, seed=1)[0].reference == fresh_questions(1, seed=1)[0].answer
    True
    """
    return tuple(
        Question(f"local-{number}", question.text, question.answer, question.kind)
        for number, question in enumerate(fresh_questions(count, seed))
    )


def _read(cells: Cells) -> Question:
    id_ = cells.id("local", "id")
    return Question(id_, cells.text("question", "text"), cells.text("answer"), cells.optional("kind"))


def _instruct(question: Question) -> str:
    return question.prompt


def _verdict(question: Question, text: str, finished: bool) -> Verdict:
    # The model knows one way to write an answer, so there is nothing to forgive.
    return text.strip() == question.reference if finished else None


LOCAL = MadeUp("local", HubSource("made up here"), _read, _instruct, _verdict)
