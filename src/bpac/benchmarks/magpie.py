"""Magpie: open requests that a model made up for itself; their answers need a judge."""

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.hub import HubSource
from bpac.benchmarks.rows import DatasetRow

# The whole set has 300,000 requests; a stream of a few thousand is what experiments use.
ROWS = 5_000


def _read(cells: DatasetRow) -> Question:
    return Question(
        id=cells.id("magpie", "uuid", "id"),
        prompt=cells.text("instruction"),
        category=cells.optional("task_category"),
    )


def _instruct(question: Question) -> str:
    return question.prompt


MAGPIE = Benchmark(
    "magpie", HubSource("Magpie-Align/Magpie-Pro-300K-Filtered", split="train", rows=ROWS), _read, _instruct
)
