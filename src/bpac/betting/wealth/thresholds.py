"""From wealth at every grid point to one threshold: the paper's two rules."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bpac.arguments import each, keep, positive
from bpac.errors import SettingsError

Vector = NDArray[np.float64]


class ThresholdRule(Protocol):
    """Which grid point is certified, given where the wealth has reached its bar."""

    def log_bars(self, count: int, alpha: float) -> Vector:
        """The log-wealth each of ``count`` grid points must reach."""

    def after_loss(self, reached: NDArray[np.bool_]) -> int:
        """The index of the certified grid point; −1 if there is none."""

    def after_win(self, index: int, wealth: Vector, bars: Vector) -> int:
        """The same after a round in which no wealth fell, from the index before it."""


@dataclass(frozen=True, slots=True)
class FixedSequence:
    """The largest point such that it and every smaller one have reached ``1/α``.

    >>> FixedSequence().after_loss(np.array([True, True, False, True]))
    1
    """

    def log_bars(self, count: int, alpha: float) -> Vector:
        """The log-wealth each of ``count`` grid points must reach."""
        return np.full(count, -math.log(alpha))

    def after_loss(self, reached: NDArray[np.bool_]) -> int:
        """The index of the certified grid point; −1 if there is none."""
        first_short = int(reached.argmin())
        return len(reached) - 1 if reached[first_short] else first_short - 1

    def after_win(self, index: int, wealth: Vector, bars: Vector) -> int:
        """The same after a round in which no wealth fell, from the index before it."""
        while index + 1 < len(wealth) and wealth[index + 1] >= bars[index + 1]:
            index += 1
        return index


@dataclass(frozen=True, slots=True)
class PriorThreshold:
    """The largest point that has reached ``1/(α ν)``, for a prior ν on the grid.

    Parameters
    ----------
    weights: one weight per grid point, scaled to sum to 1; none means uniform.

    >>> PriorThreshold().after_loss(np.array([True, False, True, False]))
    2
    """

    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.weights is not None:
            keep(self, weights=each(self.weights, "weights", "weight of the prior", positive))

    def log_bars(self, count: int, alpha: float) -> Vector:
        """The log-wealth each of ``count`` grid points must reach."""
        weights = np.ones(count) if self.weights is None else np.array(self.weights)
        if len(weights) != count:
            raise SettingsError(f"the prior has {len(weights)} weights for {count} grid points: give one for each")
        bars: Vector = -np.log(alpha * (weights / weights.sum()))
        return bars

    def after_loss(self, reached: NDArray[np.bool_]) -> int:
        """The index of the certified grid point; −1 if there is none."""
        last = len(reached) - 1 - int(reached[::-1].argmax())
        return last if reached[last] else -1

    def after_win(self, index: int, wealth: Vector, bars: Vector) -> int:
        """The same after a round in which no wealth fell, from the index before it."""
        higher = self.after_loss(wealth[index + 1 :] >= bars[index + 1 :]) if index + 1 < len(wealth) else -1
        return index + 1 + higher
