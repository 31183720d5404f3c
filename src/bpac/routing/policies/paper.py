"""The paper's policies."""

from dataclasses import dataclass
from typing import ClassVar

from bpac.arguments import of_kind
from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.ledgers.levels import EvenLevels
from bpac.betting.payoff import Terms
from bpac.betting.wealth.bets import AdaptiveBet, Bet, FixedBet
from bpac.betting.wealth.grid import GridWealth
from bpac.betting.wealth.thresholds import FixedSequence, PriorThreshold, ThresholdRule
from bpac.routing.bettors import Bettor, InOrder
from bpac.routing.policies.policy import PlainPolicy


@dataclass(frozen=True, slots=True)
class Paper(PlainPolicy):
    """The paper's Algorithm 1 (MATH section 2), and its version for non-stationary streams.

    Parameters
    ----------
    bet: how much is staked.
    rule: how the threshold follows from the wealth.
    grid: the thresholds.
    """

    certain_while_closed: ClassVar[bool] = False
    commutes: ClassVar[bool] = False

    bet: Bet = AdaptiveBet()
    rule: ThresholdRule = FixedSequence()
    grid: EvenLevels = EvenLevels()

    def __post_init__(self) -> None:
        of_kind(self.bet, "bet", (AdaptiveBet, FixedBet))
        of_kind(self.rule, "rule", (FixedSequence, PriorThreshold))
        of_kind(self.grid, "grid", (EvenLevels,))

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Bettor:
        """The bettor of a new epoch, which bets at level ``alpha``."""
        return InOrder(GridWealth(terms, alpha, self.bet, self.rule, self.grid))
