"""Built-in tables, generated so that every replay can be run without data.

Their shapes (``builtin_shapes.json``) were fitted by ``scripts/fit_builtin_tables.py``, so that the paper's policy has
on them the figures that the paper prints for its own benchmarks. Everything else is a result: the figures of other
policies, of other values of ε and of other settings. The true risk of every threshold is known in closed form. One more
table, with features to learn from, resembles nothing in the paper (``builtin_tasks.py``).
"""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.arguments import one_of
from bpac.errors import TableError
from bpac.replay.simulation.laws import PowerLaw
from bpac.replay.tables.builtin_tasks import TASKS
from bpac.replay.tables.reading import read_table
from bpac.replay.tables.table import Table, head, joined, shuffled

PREFIX = "builtin:"
SHAPES = files(__package__) / "builtin_shapes.json"
# The scores of the paper: 1 − mean token probability, which is its default, and two others.
SCORES = ("uncertainty", "perplexity", "entropy")
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BuiltinBenchmark:
    """A generated benchmark.

    Parameters
    ----------
    rows: number of questions.
    wrong: share of the drafts that have a loss.
    powers: for each score, how fast the probability of a loss grows along it; 0 makes the score useless.
    crowding, span: how the values of a score are distributed (see ``PowerLaw``).
    sizes, weights: the possible sizes of a loss, and the probability of each.
    draft_tokens, expert_tokens: mean lengths of the answers.
    harder_is_longer: how much longer the expert's answers get as the draft's uncertainty grows; 0 for not at all.
    """

    rows: int
    wrong: float
    powers: dict[str, float]
    crowding: float
    span: tuple[float, float]
    sizes: tuple[float, ...]
    weights: tuple[float, ...]
    draft_tokens: float
    expert_tokens: float
    harder_is_longer: float

    @classmethod
    def of(cls, shape: dict[str, Any]) -> "BuiltinBenchmark":
        """The benchmark with a shape that was read from JSON."""
        values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in shape.items()}
        return cls(**values)

    @property
    def law(self) -> PowerLaw:
        """The distribution of loss and uncertainty."""
        return self.law_of("uncertainty")

    def law_of(self, score: str) -> PowerLaw:
        """The distribution of loss and score: the same losses, ranked by that score."""
        power = self.powers[score]
        return PowerLaw(self.wrong * (power + 1.0), power, self.crowding, self.sizes, self.weights, self.span)

    def table(self, seed: int, rows: int | None = None, score: str = "uncertainty") -> Table:
        """A random table, stratified so that its own risk at each threshold is that of the law to within about a loss.

        Independent draws would differ by as much as the effects that the comparisons are about. With another score the
        questions, their losses and their lengths are the same; only the uncertainties differ.
        """
        rng = np.random.default_rng(seed)
        law, rows = self.law, rows or self.rows
        quantile = (np.arange(rows) + rng.random(rows)) / rows
        expected = np.cumsum(law.most * quantile**law.power) + rng.random()
        wrong = np.diff(np.floor(expected), prepend=0.0) > 0.0
        loss = np.where(wrong, rng.choice(law.sizes, size=rows, p=law.weights), 0.0)
        drafts = self.draft_tokens * rng.lognormal(-0.125, 0.5, rows)
        longer = np.exp(self.harder_is_longer * (quantile - 0.5))
        experts = self.expert_tokens * longer / longer.mean() * rng.lognormal(-0.18, 0.6, rows)
        if score != "uncertainty":
            law = self.law_of(score)
            quantile = _ranked_by(law, wrong, np.random.default_rng([seed, SCORES.index(score)]))
        return shuffled(Table(law.uncertainty(quantile), loss, drafts, experts), rng)


def _ranked_by(law: PowerLaw, wrong: NDArray[np.bool_], rng: np.random.Generator) -> Vector:
    """Quantiles of another score for the same drafts, given which of them are wrong, in the order of the first score.

    Wrong drafts and right ones keep their order among themselves. Only how the two mix differs between scores.
    """
    grid = np.linspace(0.0, 1.0, 2001)
    wrong_below = grid ** (law.power + 1.0)
    share = law.most / (law.power + 1.0)
    right_below = (grid - share * wrong_below) / (1.0 - share)
    quantile = np.empty(len(wrong))
    for which, below in ((wrong, wrong_below), (~wrong, right_below)):
        count = int(which.sum())
        quantile[which] = np.interp((np.arange(count) + rng.random(count)) / count, below, grid)
    return quantile


BENCHMARKS = {
    name: BuiltinBenchmark.of(shape) for name, shape in json.loads(SHAPES.read_text(encoding="utf-8")).items()
}
MIXED = ("bbh-then-magpie", "mmlu-pro-then-bbh")
NAMES = (*BENCHMARKS, *MIXED, *TASKS)
# In the first mixed table, as many questions as offline PAC needs for its calibration are hard ones.
HARD_FIRST = 50


def builtin_table(name: str, seed: int = 0, rows: int | None = None, score: str = "uncertainty") -> Table:
    """The built-in table of that name.

    Besides the four benchmarks there are two mixed tables: ``bbh-then-magpie`` is 50 questions of ``bbh-like`` followed
    by all of ``magpie-like``, and ``mmlu-pro-then-bbh`` is 1,500 questions of ``mmlu-pro-like`` followed by 3,000 of
    ``bbh-like``. ``tasks-like`` has features, and one score.

    Parameters
    ----------
    name: name of the table.
    seed: random seed.
    rows: number of questions, except for mixed tables (default: that of the table).
    score: name of the score.

    >>> len(builtin_table("mmlu-pro-then-bbh"))
    4500
    """
    one_of(name, "built-in table", NAMES)
    if score not in scores_of(name):
        raise TableError(f"{PREFIX}{name} has no column {score}; it has {', '.join(scores_of(name))}")
    if name in TASKS:
        return TASKS[name].table(seed, rows)
    if name in BENCHMARKS:
        return BENCHMARKS[name].table(seed, rows, score)
    hard = BENCHMARKS["bbh-like"].table(seed + 1, score=score)
    if name == "bbh-then-magpie":
        return joined(head(hard, HARD_FIRST), BENCHMARKS["magpie-like"].table(seed, score=score))
    return joined(head(BENCHMARKS["mmlu-pro-like"].table(seed, score=score), 1500), head(hard, 3000))


def scores_of(name: str) -> tuple[str, ...]:
    """The scores of the built-in table of that name."""
    return SCORES[:1] if name in TASKS else SCORES


def natural_rows(name: str) -> int:
    """Number of rows of the built-in table of that name, unless it is mixed."""
    return TASKS[name].rows if name in TASKS else BENCHMARKS[name].rows


def open_table(source: str, score: str = "uncertainty") -> Table:
    """The table in a file, or the built-in table if ``source`` is ``builtin:NAME``."""
    if not source.startswith(PREFIX):
        return read_table(source, score)
    return builtin_table(source.removeprefix(PREFIX), score=score)
