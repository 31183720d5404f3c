"""Built-in cascades, generated so that every replay and study can be run without data."""

from dataclasses import dataclass

import numpy as np

from bpac.arguments import one_of
from bpac.replay.cascade.table import CascadeTable


@dataclass(frozen=True, slots=True)
class BuiltinCascade:
    """A generated cascade: every question has a difficulty, on which scores, losses and lengths depend.

    Parameters
    ----------
    rows: number of questions.
    wrong: for each model but the last, the probability of a loss for the hardest question.
    powers: for each of them, how fast that probability grows with the difficulty.
    noise: for each of them, how far its score strays from the difficulty.
    tokens: mean length of each model's answer, with the last.
    prices: sensible prices per call.
    """

    rows: int
    wrong: tuple[float, ...]
    powers: tuple[float, ...]
    noise: tuple[float, ...]
    tokens: tuple[float, ...]
    prices: tuple[float, ...]

    def table(self, seed: int = 0, rows: int | None = None) -> CascadeTable:
        """A random table."""
        rng = np.random.default_rng(seed)
        count = rows or self.rows
        difficulty = rng.random(count)
        chances = np.column_stack([w * difficulty**p for w, p in zip(self.wrong, self.powers, strict=True)])
        # One draw for all models: what a strong model gets wrong, a weak one seldom gets right.
        shared, own = rng.random((count, 1)), rng.random(chances.shape)
        draws = np.where(rng.random(chances.shape) < 0.5, shared, own)
        strayed = difficulty[:, None] + np.array(self.noise) * rng.standard_normal(chances.shape)
        uncertainty = 0.6 / (1.0 + np.exp(4.0 - 6.0 * strayed))
        longer = np.exp(difficulty - 0.5)[:, None]
        tokens = np.ceil(np.array(self.tokens) * longer * rng.lognormal(-0.08, 0.4, (count, len(self.tokens))))
        return CascadeTable(uncertainty, (draws < chances).astype(np.float64), tokens)


CASCADES = {
    # A small model, a large one, and the large one with thinking.
    "cascade-like": BuiltinCascade(
        10_000, (0.4, 0.2), (2.0, 3.0), (0.12, 0.12), (150.0, 200.0, 1500.0), (0.06, 1.0, 4.0)
    ),
    # One model with no, short and long thinking: the first effort costs little, and the second is not much worse than
    # the last.
    "effort-like": BuiltinCascade(10_000, (0.6, 0.2), (2.0, 4.0), (0.2, 0.2), (120.0, 600.0, 3000.0), (0.04, 0.2, 1.0)),
}


def builtin_cascade(name: str, seed: int = 0, rows: int | None = None) -> CascadeTable:
    """The built-in cascade of that name.

    >>> builtin_cascade("cascade-like", rows=100).stages
    3
    """
    one_of(name, "built-in cascade", tuple(CASCADES))
    return CASCADES[name].table(seed, rows)
