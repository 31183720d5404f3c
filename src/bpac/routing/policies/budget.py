"""The policy for any stream."""

from dataclasses import dataclass
from typing import ClassVar

from bpac.arguments import whole
from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.ledgers.levels import RelativeLevels
from bpac.betting.ledgers.weighted_losses import WeightedLosses
from bpac.betting.payoff import Terms
from bpac.routing.bettors import Bettor, BudgetBettor
from bpac.routing.exploration.schedules import Constant, Exploration
from bpac.routing.policies.policy import PlainPolicy


@dataclass(frozen=True, slots=True)
class Budget(PlainPolicy):
    """Keeps the actual average loss below ε on any stream (MATH section 7).

    Parameters
    ----------
    first: rounds before the first draft may be kept.
    """

    in_order: ClassVar[bool] = False  # only the coin is random there

    first: int = 100

    def __post_init__(self) -> None:
        whole(self.first, "first", 1)

    @property
    def exploration(self) -> Exploration:
        """The default schedule."""
        return Constant(0.2)

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Bettor:
        """The bettor of a new epoch, which bets at level ``alpha``."""
        return BudgetBettor(WeightedLosses(terms, RelativeLevels()), terms, served, self.first)
