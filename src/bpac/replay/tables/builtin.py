"""Built-in streams, made up so that anyone can run everything without data.

What was shaped: the chance of a loss along the score, so that the paper's policy at ε = 0.08 has about the
paper's expert call rate (several shapes do; these were picked among them); the lengths of answers, so that its
token ratio follows; and how much worse the other scores sort. What was then found: the paper's empirical risk
(its bet stalls there whatever the shape) and all figures of other policies. The true risk of every threshold
is known in closed form.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from bpac.arguments import one_of
from bpac.errors import TableError
from bpac.replay.simulation.laws import PowerLaw
from bpac.replay.tables.streams import head, joined, shifted, shuffled
from bpac.replay.tables.table import Table, read_table

PREFIX = "builtin:"


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A made-up benchmark.

    Parameters
    ----------
    law: uncertainties and losses.
    rows: how many questions it has.
    draft_tokens, expert_tokens: mean lengths of the answers.
    harder_is_longer: how much longer the expert thinks about what the draft is unsure of.
    """

    law: PowerLaw
    rows: int
    draft_tokens: float
    expert_tokens: float
    harder_is_longer: float

    def law_of(self, score: str) -> PowerLaw:
        """The law along another score: as many losses in all, less well sorted."""
        power = SCORES[score] * self.law.power
        return replace(self.law, power=power, most=self.law.most * (power + 1.0) / (self.law.power + 1.0))

    def table(self, seed: int, rows: int | None = None, score: str = "uncertainty") -> Table:
        """A draw of it, spread evenly: the table's own risk follows the law's to within a loss or so.

        Independent draws would differ by as much as the effects that people want to see.
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


# How well a score sorts the losses, beside the paper's score: the power of the law along it, as a share.
SCORES = {"uncertainty": 1.0, "perplexity": 0.9, "entropy": 0.6}

# A judge who gives marks from 1 to 10 makes losses sqrt(k / 9) for a draft that is k marks behind.
MARKS = tuple(math.sqrt(k / 9.0) for k in (1, 2, 3, 4))

BENCHMARKS = {
    "mmlu-pro-like": BuiltIn(PowerLaw(0.158, 0.8, crowding=2.0), 3738, 365.0, 1500.0, 0.5),
    "math-like": BuiltIn(PowerLaw(0.138, 0.8, crowding=2.0), 4628, 655.0, 3300.0, 0.5),
    "bbh-like": BuiltIn(PowerLaw(0.198, 0.6, crowding=2.0), 5476, 250.0, 1300.0, 0.4),
    "magpie-like": BuiltIn(
        PowerLaw(0.235, 0.5, crowding=1.2, sizes=MARKS, weights=(0.5, 0.3, 0.15, 0.05)), 4379, 570.0, 1500.0, 0.2
    ),
}
MIXED = ("magpie-and-bbh", "mmlu-pro-then-bbh")


def builtin_table(name: str, seed: int = 0, rows: int | None = None, score: str = "uncertainty") -> Table:
    """The built-in stream of that name.

    Besides the four benchmarks there are two mixed streams: all of ``magpie-like`` with 100 questions of
    ``bbh-like`` among them, and 1,500 questions of ``mmlu-pro-like`` followed by 3,000 of ``bbh-like``.

    Parameters
    ----------
    name: which.
    seed: of the draw.
    rows: another length than its own, for the four benchmarks.
    score: another score than the paper's, for the four benchmarks.

    >>> len(builtin_table("mmlu-pro-then-bbh"))
    4500
    """
    one_of(name, "built-in stream", (*BENCHMARKS, *MIXED))
    if name in BENCHMARKS:
        return BENCHMARKS[name].table(seed, rows, score)
    hard = BENCHMARKS["bbh-like"].table(seed + 1)
    if name == "magpie-and-bbh":
        return shuffled(joined(BENCHMARKS["magpie-like"].table(seed), head(hard, 100)), np.random.default_rng(seed))
    return shifted(BENCHMARKS["mmlu-pro-like"].table(seed), head(hard, 3000), 1500)


def open_table(place: str, score: str = "uncertainty") -> Table:
    """A table from a file, or a built-in one by ``builtin:NAME``."""
    if not place.startswith(PREFIX):
        return read_table(place, score)
    name = place.removeprefix(PREFIX)
    scores = tuple(SCORES) if name in BENCHMARKS else ("uncertainty",)
    if score not in scores:
        raise TableError(f"{place} has no column {score}; it has {', '.join(scores)}")
    return builtin_table(name, score=score)
