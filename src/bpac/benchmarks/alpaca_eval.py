"""AlpacaEval: 805 open requests from five sources; their answers need a judge."""

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.hub import HubSource
from bpac.benchmarks.rows import DatasetRow


def _read(cells: DatasetRow) -> Question:
    return Question(
        id=cells.id("alpaca-eval", "id"), prompt=cells.text("instruction"), category=cells.optional("dataset")
    )


def _instruct(question: Question) -> str:
    return question.prompt


# The set itself is published with a loading script, which the library no longer runs; the hub keeps a converted copy.
ALPACA_EVAL = Benchmark(
    "alpaca-eval",
    HubSource("tatsu-lab/alpaca_eval", split="eval", parts=("alpaca_eval",), revision="refs/convert/parquet"),
    _read,
    _instruct,
)
