"""The questions for the local model as a benchmark, which is asked and graded like any other."""

from pathlib import Path

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.hub import HubSource
from bpac.benchmarks.registry import BENCHMARKS
from bpac.benchmarks.rows import DatasetRow
from bpac.grading.text.answer_text import Verdict
from bpac.local.questions import held_out_questions

COUNT = 5_000


class GeneratedBenchmark(Benchmark):
    """A benchmark whose questions are generated, not downloaded."""

    __slots__ = ()

    def load(self, path: str | Path | None = None) -> tuple[Question, ...]:
        """Generated questions that the model was not trained on, or the questions of a file."""
        return benchmark_questions(COUNT, seed=0) if path is None else Benchmark.load(self, path)


def benchmark_questions(count: int, seed: int) -> tuple[Question, ...]:
    """Distinct questions that the model was not trained on; a larger count starts with the same questions.

    Parameters
    ----------
    count: number of questions.
    seed: random seed.

    >>> benchmark_questions(1, seed=1)[0].reference == held_out_questions(1, seed=1)[0].answer
    True
    """
    return tuple(
        Question(f"local-{number}", question.text, question.answer, question.kind)
        for number, question in enumerate(held_out_questions(count, seed))
    )


def _read(row: DatasetRow) -> Question:
    id_ = row.id("local", "id")
    return Question(id_, row.text("question", "text"), row.text("answer"), row.optional("kind"))


def _instruct(question: Question) -> str:
    return question.prompt


def _verdict(question: Question, text: str, finished: bool) -> Verdict:
    # The model writes answers in one format only, so they are compared exactly.
    return text.strip() == question.reference if finished else None


LOCAL = GeneratedBenchmark("local", HubSource("generated"), _read, _instruct, _verdict)
ALL_BENCHMARKS: dict[str, Benchmark] = {**BENCHMARKS, LOCAL.name: LOCAL}
