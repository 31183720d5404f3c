"""All published benchmarks by name."""

from bpac.benchmarks.alpaca_eval import ALPACA_EVAL
from bpac.benchmarks.bbh import BBH
from bpac.benchmarks.benchmark import Benchmark
from bpac.benchmarks.competition_math import MATH
from bpac.benchmarks.gsm8k import GSM8K
from bpac.benchmarks.magpie import MAGPIE
from bpac.benchmarks.mmlu_pro import MMLU_PRO
from bpac.errors import InputError

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark for benchmark in (MATH, MMLU_PRO, BBH, MAGPIE, GSM8K, ALPACA_EVAL)
}


def named_benchmark(name: str) -> Benchmark:
    """The benchmark with a name, in upper or lower case and with ``-`` or ``_``.

    >>> named_benchmark("MMLU_Pro").name
    'mmlu-pro'
    """
    benchmark = BENCHMARKS.get(name.strip().lower().replace("_", "-"))
    if benchmark is None:
        raise InputError(f"the benchmark {name!r} is not known; use one of {', '.join(BENCHMARKS)}")
    return benchmark
