"""Built-in tables, generated so that every replay can be run without data.

Three things were chosen: the probability of a loss along the score, so that the paper's policy at ε = 0.08 has about
the expert call rate that the paper prints (several shapes do; these were picked among them); the lengths of answers, so
that its token ratio follows; and how much worse the other scores rank the losses. Everything else is a result: the
empirical risk of the paper's policy (its bet stalls there whatever the shape) and all figures of other policies. The
true risk of every threshold is known in closed form.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from bpac.arguments import one_of
from bpac.errors import TableError
from bpac.replay.simulation.laws import PowerLaw
from bpac.replay.tables.reading import read_table
from bpac.replay.tables.table import Table, head, joined, shuffled

PREFIX = "builtin:"


@dataclass(frozen=True, slots=True)
class BuiltinBenchmark:
    """A generated benchmark.

    Parameters
    ----------
    law: distribution of uncertainty and loss.
    rows: number of questions.
    draft_tokens, expert_tokens: mean lengths of the answers.
    harder_is_longer: how much longer the expert's answers get as the draft's uncertainty grows; 0 for not at all.
    """

    law: PowerLaw
    rows: int
    draft_tokens: float
    expert_tokens: float
    harder_is_longer: float

    def law_of(self, score: str) -> PowerLaw:
        """The distribution for another score: the same number of losses, ranked less well."""
        power = SCORES[score] * self.law.power
        return replace(self.law, power=power, most=self.law.most * (power + 1.0) / (self.law.power + 1.0))

    def table(self, seed: int, rows: int | None = None, score: str = "uncertainty") -> Table:
        """A random table, stratified so that its own risk at each threshold is that of the law to within about a loss.

        Independent draws would differ by as much as the effects that the comparisons are about.
        """
        rng = np.random.default_rng(seed)
        law, rows = self.law_of(score), rows or self.rows
        quantile = (np.arange(rows) + rng.random(rows)) / rows
        expected = np.cumsum(law.most * quantile**law.power) + rng.random()
        wrong = np.diff(np.floor(expected), prepend=0.0) > 0.0
        loss = np.where(wrong, rng.choice(law.sizes, size=rows, p=law.weights), 0.0)
        drafts = self.draft_tokens * rng.lognormal(-0.125, 0.5, rows)
        longer = np.exp(self.harder_is_longer * (quantile - 0.5))
        experts = self.expert_tokens * longer * rng.lognormal(-0.18, 0.6, rows)
        return shuffled(Table(quantile**law.crowding, loss, drafts, experts), rng)


# How well each score ranks the losses: the power of the law along it, relative to that of the paper's score.
SCORES = {"uncertainty": 1.0, "perplexity": 0.9, "entropy": 0.6}

# A judge that gives marks from 1 to 10 leads to a loss of sqrt(k / 9) for a draft whose mark is k lower.
MARKS = tuple(math.sqrt(k / 9.0) for k in (1, 2, 3, 4))

BENCHMARKS = {
    "mmlu-pro-like": BuiltinBenchmark(PowerLaw(0.158, 0.8, crowding=2.0), 3738, 365.0, 1500.0, 0.5),
    "math-like": BuiltinBenchmark(PowerLaw(0.138, 0.8, crowding=2.0), 4628, 655.0, 3300.0, 0.5),
    "bbh-like": BuiltinBenchmark(PowerLaw(0.198, 0.6, crowding=2.0), 5476, 250.0, 1300.0, 0.4),
    "magpie-like": BuiltinBenchmark(
        PowerLaw(0.235, 0.5, crowding=1.2, sizes=MARKS, weights=(0.5, 0.3, 0.15, 0.05)), 4379, 570.0, 1500.0, 0.2
    ),
}
MIXED = ("magpie-and-bbh", "mmlu-pro-then-bbh")


def builtin_table(name: str, seed: int = 0, rows: int | None = None, score: str = "uncertainty") -> Table:
    """The built-in table of that name.

    Besides the four benchmarks there are two mixed tables: ``magpie-and-bbh`` is all of ``magpie-like`` with 100
    questions of ``bbh-like`` mixed in, and ``mmlu-pro-then-bbh`` is 1,500 questions of ``mmlu-pro-like`` followed by
    3,000 of ``bbh-like``.

    Parameters
    ----------
    name: name of the table.
    seed: random seed.
    rows: number of questions, for the four benchmarks (default: that of the benchmark).
    score: name of the score, for the four benchmarks.

    >>> len(builtin_table("mmlu-pro-then-bbh"))
    4500
    """
    one_of(name, "built-in table", (*BENCHMARKS, *MIXED))
    if name in BENCHMARKS:
        return BENCHMARKS[name].table(seed, rows, score)
    hard = BENCHMARKS["bbh-like"].table(seed + 1)
    if name == "magpie-and-bbh":
        return shuffled(joined(BENCHMARKS["magpie-like"].table(seed), head(hard, 100)), np.random.default_rng(seed))
    return joined(head(BENCHMARKS["mmlu-pro-like"].table(seed), 1500), head(hard, 3000))


def open_table(source: str, score: str = "uncertainty") -> Table:
    """The table in a file, or the built-in table if ``source`` is ``builtin:NAME``."""
    if not source.startswith(PREFIX):
        return read_table(source, score)
    name = source.removeprefix(PREFIX)
    scores = tuple(SCORES) if name in BENCHMARKS else ("uncertainty",)
    if score not in scores:
        raise TableError(f"{source} has no column {score}; it has {', '.join(scores)}")
    return builtin_table(name, score=score)
