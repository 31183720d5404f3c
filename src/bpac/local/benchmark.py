"""The local questions as a benchmark, to be asked and graded like any other."""

from pathlib import Path

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.hub import HubSource
from bpac.benchmarks.rows import DatasetRow
from bpac.grading.text.answer_text import Verdict
from bpac.local.questions import held_out_questions

COUNT = 5_000


class GeneratedBenchmark(Benchmark):
    """A benchmark whose questions are made up here, not fetched."""

    __slots__ = ()

    def load(self, path: str | Path | None = None) -> tuple[Question, ...]:
        """Questions that were never trained on, or those of a file."""
        return benchmark_questions(COUNT, seed=0) if path is None else Benchmark.load(self, path)


def benchmark_questions(count: int, seed: int) -> tuple[Question, ...]:
    """Different questions that were never trained on; more of them begin with the same ones.

    Parameters
    ----------
    count: how many.
    seed: the same seed gives the same questions.

    >>> benchmark_questions(1, seed=1)[0].reference == held_out_questions(1, seed=1)[0].answer
    True
    """
    return tuple(
        Question(f"local-{number}", question.text, question.answer, question.kind)
        for number, question in enumerate(held_out_questions(count, seed))
    )


def _read(cells: DatasetRow) -> Question:
    id_ = cells.id("local", "id")
    return Question(id_, cells.text("question", "text"), cells.text("answer"), cells.optional("kind"))


def _instruct(question: Question) -> str:
    return question.prompt


def _verdict(question: Question, text: str, finished: bool) -> Verdict:
    # The model knows one way to write an answer, so there is nothing to forgive.
    return text.strip() == question.reference if finished else None


LOCAL = GeneratedBenchmark("local", HubSource("made up here"), _read, _instruct, _verdict)
