"""How much the paper's gambler stakes at each threshold (λ)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bpac.arguments import keep, open_fraction, positive

Vector = NDArray[np.float64]


class Bet(Protocol):
    """A rule for the stake at each threshold, from the payoffs of earlier rounds only."""

    def stake(self, payoffs: Vector, squares: Vector, most: float, out: Vector) -> None:
        """Write the stakes into ``out``.

        Parameters
        ----------
        payoffs: sums of earlier payoffs (ΣD).
        squares: one more than the sums of their squares (ΣD² + 1).
        most: the largest stake allowed in this round; in the unit of ``payoffs``, as the result is.
        """

    def most(self, payoff_bound: float) -> float:
        """The largest stake this rule can ask for."""

    def points_bet_on(self, payoffs: Vector, at_least: int) -> int:
        """How many of the lowest thresholds have a stake above 0.

        Parameters
        ----------
        payoffs: sums of earlier payoffs, at every threshold.
        at_least: a number that is known to be too small or right, after a round without a loss; 0 if none is known.
        """


@dataclass(frozen=True, slots=True)
class AdaptiveBet:
    """The paper's bet: ``clip(ΣD / (ΣD² + 1), 0, c / M)``; ``points_bet_on`` is the clip at 0.

    Parameters
    ----------
    max_stake: the largest share of the wealth that a round may cost (c).
    """

    max_stake: float = 0.9

    def __post_init__(self) -> None:
        keep(self, max_stake=open_fraction(self.max_stake, "max_stake"))

    def stake(self, payoffs: Vector, squares: Vector, most: float, out: Vector) -> None:
        """Write the stakes into ``out``."""
        np.divide(payoffs, squares, out=out)
        np.minimum(out, most, out=out)

    def most(self, payoff_bound: float) -> float:
        """The largest stake this rule can ask for."""
        return self.max_stake / payoff_bound

    def points_bet_on(self, payoffs: Vector, at_least: int) -> int:
        """Those whose payoffs so far are not below 0: the clip at 0 makes all other stakes 0.

        Sums of payoffs never rise with the threshold, so these are the lowest ones.
        """
        if at_least:
            while at_least < len(payoffs) and payoffs[at_least] >= 0.0:
                at_least += 1
            return at_least
        return len(payoffs) - int(payoffs[::-1].searchsorted(0.0))


@dataclass(frozen=True, slots=True)
class FixedBet:
    """The paper's ablation: the same stake in every round."""

    size: float = 0.05

    def __post_init__(self) -> None:
        keep(self, size=positive(self.size, "size"))

    def stake(self, payoffs: Vector, squares: Vector, most: float, out: Vector) -> None:
        """Write the stakes into ``out``."""
        out.fill(most)

    def most(self, payoff_bound: float) -> float:
        """The largest stake this rule can ask for."""
        return self.size

    def points_bet_on(self, payoffs: Vector, at_least: int) -> int:
        """All of them."""
        return len(payoffs)
