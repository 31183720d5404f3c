"""AlpacaEval: 805 open questions from five sources; a judge must mark the answers."""

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.hub import HubSource
from bpac.benchmarks.rows import DatasetRow


def _read(row: DatasetRow) -> Question:
    return Question(id=row.id("alpaca-eval", "id"), prompt=row.text("instruction"), category=row.optional("dataset"))


def _instruct(question: Question) -> str:
    return question.prompt


# The data set is published with a loading script, which `datasets` no longer runs; the hub has a converted copy.
ALPACA_EVAL = Benchmark(
    "alpaca-eval",
    HubSource("tatsu-lab/alpaca_eval", split="eval", parts=("alpaca_eval",), revision="refs/convert/parquet"),
    _read,
    _instruct,
)
