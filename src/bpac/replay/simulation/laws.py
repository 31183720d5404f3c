"""Distributions of uncertainty and loss whose true risk is known exactly, so that promises can be checked on them."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bpac.arguments import fraction, one_of, positive
from bpac.errors import InputError

Vector = NDArray[np.float64]


class Law(Protocol):
    """A distribution of uncertainty and loss."""

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Vector, Vector]:
        """Uncertainties and losses of independent rounds."""

    def risk(self, threshold: float) -> float:
        """Expected loss below a threshold, ``E[l · 1{U < u}]``, without the factor κ."""


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """A draft at quantile v of the uncertainty is wrong with probability ``most · v**power``; risk has a closed form.

    Parameters
    ----------
    most: probability of a loss at uncertainty 1.
    power: how fast the probability grows with v; 0 makes it constant.
    crowding: uncertainty grows like ``v**crowding``; 1 makes it uniform, more moves it towards the smallest value.
    sizes, weights: the possible sizes of a loss, and the probability of each.
    span: the smallest and the largest uncertainty.

    >>> PowerLaw(most=0.4, power=1).risk(0.5)
    0.05
    """

    most: float = 0.4
    power: float = 1.0
    crowding: float = 1.0
    sizes: tuple[float, ...] = (1.0,)
    weights: tuple[float, ...] = (1.0,)
    span: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        fraction(self.most, "most")
        positive(self.crowding, "crowding")
        if self.power < 0.0:
            raise InputError(f"power must be at least 0, got {self.power!r}")
        for size in self.sizes:
            fraction(size, "each size")
        if len(self.sizes) != len(self.weights) or abs(sum(self.weights) - 1.0) > 1e-9:
            raise InputError(f"a law needs a weight for each size, and they must sum to 1; got {self.weights}")
        if not 0.0 <= self.span[0] < self.span[1] <= 1.0:
            raise InputError(f"span must be two increasing numbers in [0, 1], got {self.span}")

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Vector, Vector]:
        """Uncertainties and losses of independent rounds."""
        quantile = rng.random(count)
        wrong = rng.random(count) < self.most * quantile**self.power
        size = rng.choice(self.sizes, size=count, p=self.weights)
        return self.uncertainty(quantile), np.where(wrong, size, 0.0)

    def uncertainty(self, quantile: Vector) -> Vector:
        """The uncertainties at these quantiles."""
        low, high = self.span
        return np.asarray(low + (high - low) * quantile**self.crowding)

    def risk(self, threshold: float) -> float:
        """Expected loss below a threshold, without the factor κ."""
        low, high = self.span
        mean_size = sum(size * weight for size, weight in zip(self.sizes, self.weights, strict=True))
        reached = min(max((threshold - low) / (high - low), 0.0), 1.0)
        return float(mean_size * self.most * reached ** ((self.power + 1.0) / self.crowding) / (self.power + 1.0))


@dataclass(frozen=True, slots=True)
class LevelLaw:
    """A score with few values, such as a verbalised confidence, so that many drafts have equal scores.

    Parameters
    ----------
    levels: the values of the score.
    weights: probability of each value.
    chances: probability that a draft with that value is wrong.

    >>> law = LevelLaw()
    >>> law.risk(0.5) < law.risk(0.51)          # a draft at the threshold is not accepted
    True
    """

    levels: tuple[float, ...] = (0.1, 0.5, 0.9)
    weights: tuple[float, ...] = (0.4, 0.4, 0.2)
    chances: tuple[float, ...] = (0.05, 0.3, 0.6)

    def __post_init__(self) -> None:
        if not len(self.levels) == len(self.weights) == len(self.chances):
            raise InputError("a level law needs a weight and a chance for each level")
        for level, weight, chance in zip(self.levels, self.weights, self.chances, strict=True):
            fraction(level, "each level")
            positive(weight, "each weight")
            fraction(chance, "each chance")
        if abs(sum(self.weights) - 1.0) > 1e-9:
            raise InputError(f"the weights must sum to 1, got {sum(self.weights)}")

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Vector, Vector]:
        """Uncertainties and losses of independent rounds."""
        which = rng.choice(len(self.levels), size=count, p=self.weights)
        wrong = rng.random(count) < np.array(self.chances)[which]
        return np.array(self.levels)[which], wrong.astype(np.float64)

    def risk(self, threshold: float) -> float:
        """Expected loss below a threshold, without the factor κ."""
        below = np.array(self.levels) < threshold
        return float(np.sum(np.array(self.weights) * self.chances * below))


@dataclass(frozen=True, slots=True, eq=False)
class RecordedLaw:
    """Recorded drafts, drawn with replacement, so that their averages are the true risks.

    Parameters
    ----------
    uncertainty, loss: of each draft.

    >>> RecordedLaw(np.array([0.1, 0.2]), np.array([0.0, 1.0])).risk(0.5)
    0.5
    """

    uncertainty: Vector
    loss: Vector

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Vector, Vector]:
        """Uncertainties and losses of independent rounds."""
        rows = rng.integers(len(self.loss), size=count)
        return self.uncertainty[rows], self.loss[rows]

    def risk(self, threshold: float) -> float:
        """Expected loss below a threshold, without the factor κ."""
        return float(np.mean(self.loss * (self.uncertainty < threshold)))


def dithered_risk(law: Law, threshold: float, dither: float) -> float:
    """The risk of a threshold on dithered scores, ``U · (1 − w · V)``: the mean over 1,000 values of V.

    Parameters
    ----------
    law: the distribution of the scores before they are dithered.
    threshold: the threshold.
    dither: by how much scores are lowered at most, relative to themselves (w).

    >>> law = LevelLaw(levels=(0.5,), weights=(1.0,), chances=(0.2,))
    >>> law.risk(0.49), round(dithered_risk(law, 0.49, 0.04), 9)       # half of the drafts are below 0.49
    (0.0, 0.1)
    """
    if not dither:
        return law.risk(threshold)
    # A score of 1 is not lowered.
    draws = (np.arange(1000) + 0.5) / 1000.0
    return float(np.mean([law.risk(min(threshold / (1.0 - dither * draw), 1.0)) for draw in draws.tolist()]))


LAWS: dict[str, Law] = {
    "rising": PowerLaw(most=0.6, power=1.0),
    "flat": PowerLaw(most=0.25, power=0.0),
    "graded": PowerLaw(most=0.9, power=1.0, sizes=(0.6,)),
    "levels": LevelLaw(),
    # All drafts have one score, whose risk is just above validate's default ε = 0.1: the hardest case for a promise.
    "edge": LevelLaw(levels=(0.5,), weights=(1.0,), chances=(0.106,)),
}


def named_law(name: str) -> Law:
    """The built-in law of that name."""
    one_of(name, "law", tuple(LAWS))
    return LAWS[name]


def largest_safe(law: Law, most: float) -> float:
    """The largest threshold whose expected loss is at most ``most``, found by bisection.

    >>> round(largest_safe(PowerLaw(most=0.4, power=1), 0.05), 6)
    0.5
    """
    if law.risk(1.0) <= most:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if law.risk(middle) <= most:
            low = middle
        else:
            high = middle
    return low
