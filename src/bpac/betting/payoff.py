"""What a round pays: the terms of the bets, and logarithms as whole numbers."""

import math
from dataclasses import dataclass

from bpac.arguments import open_fraction
from bpac.errors import SettingsError

# Log-wealth is kept in whole multiples of 2**-40. Whole numbers add up to the same bits in any
# order, so that a refund undoes its charge exactly, and the order of arrival makes no difference.
LOG_UNIT = 1 << 40


def log_units(factor: float) -> int:
    """Return ``log(factor)`` in log units, rounded down: wealth is never overstated.

    >>> log_units(1.0)
    0
    >>> log_units(0.5) / LOG_UNIT <= math.log(0.5)
    True
    """
    return math.floor(math.log(factor) * LOG_UNIT)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of the bets (MATH section 1).

    Parameters
    ----------
    epsilon: the promised bound on the risk (ε).
    floor: the least exploration rate that is ever used (ρ_min); 0 for methods that never explore.
    shadow: whether audits run behind a draft that is served at once.

    >>> terms = Terms(epsilon=0.08, floor=0.05)
    >>> terms.kept_share
    0.95
    >>> round(terms.payoff(1.0, 0.05), 2), round(terms.payoff_bound(0.05), 2)
    (-18.92, 18.92)
    """

    epsilon: float
    floor: float
    shadow: bool = False

    def __post_init__(self) -> None:
        open_fraction(self.epsilon, "epsilon")
        if not 0.0 <= self.floor < 1.0:
            raise SettingsError(f"the exploration floor must lie in [0, 1), got {self.floor!r}")

    @property
    def kept_share(self) -> float:
        """Largest share of acceptable drafts that is served (κ)."""
        return 1.0 if self.shadow else 1.0 - self.floor

    @property
    def fair_loss(self) -> float:
        """The loss that a refused audit counts as at score 0: a weighted loss of ε/π at every threshold (MATH 13)."""
        return min(self.epsilon / self.kept_share, 1.0)

    def weighted_loss(self, loss: float, propensity: float) -> float:
        """Inverse-propensity weighted loss of an audited draft (Z)."""
        return self.kept_share * (loss / propensity)

    def payoff(self, loss: float, propensity: float) -> float:
        """What the gambler wins per unit staked (D)."""
        return self.epsilon - self.weighted_loss(loss, propensity)

    def payoff_bound(self, least_propensity: float) -> float:
        """The most that can be lost per unit staked (M)."""
        return max(self.epsilon, self.kept_share / least_propensity - self.epsilon)
