"""Bettors whose threshold follows from sums of losses, and the sums that the baselines allow."""

import math
from collections.abc import Callable
from typing import Any

from bpac.betting.ledgers.ledger import Round
from bpac.betting.ledgers.weighted_losses import WeightedLosses
from bpac.betting.payoff import Terms

# The largest sum that is allowed after so many rounds.
Allowance = Callable[[int], float]


class SumBettor:
    """A threshold from sums of losses: the largest u with ``ΣZ(u) ≤ most(rounds)``.

    Parameters
    ----------
    losses: the sums.
    most: the largest sum that is allowed after so many rounds; below 0 for "no threshold at all".
    """

    def __init__(self, losses: WeightedLosses, most: Allowance) -> None:
        self._losses = losses
        self._most = most
        self._rounds = 0
        self.threshold = 0.0

    def decided(self, decision: Round) -> None:
        """Count the round."""
        self._rounds += 1
        self._move()

    def resolve(self, decision: Round, loss: float) -> None:
        """Book a loss."""
        if loss > 0.0:
            self._losses.resolve(decision, loss)
            self._move()

    def charge(self, decision: Round) -> None:
        """Book a loss of 1, if the sums count losses that are not seen."""
        self._losses.charge(decision)
        self._move()

    def refund(self, decision: Round, loss: float) -> None:
        """Replace the charge by the true loss."""
        self._losses.refund(decision, loss)
        self._move()

    def forfeit(self, decision: Round) -> None:
        """Leave the charge where it is."""

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Book the loss of the other round instead of the charge."""
        self._losses.replace(decision, instead, loss, charged=charged)
        self._move()

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"rounds": self._rounds, "threshold": self.threshold, "losses": self._losses.state()}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._rounds = state["rounds"]
        self.threshold = state["threshold"]
        self._losses.load(state["losses"])

    def _move(self) -> None:
        most = self._most(self._rounds)
        self.threshold = self._losses.largest(most) if most >= 0.0 else 0.0


def naive_allowance(terms: Terms) -> Allowance:
    """O-naive: an average of the seen losses up to ε."""
    return lambda rounds: terms.epsilon * rounds


def hoeffding_allowance(terms: Terms, alpha: float, grid_points: int) -> Allowance:
    """IPS+Hoeffding: ε less the width of Hoeffding's interval, at level ``6α/(π²t²)`` over the grid points."""
    scale = terms.kept_share / terms.floor

    def most(rounds: int) -> float:
        log_level = math.log(grid_points * math.pi**2 * rounds**2 / (6.0 * alpha))
        return rounds * (terms.epsilon - scale * math.sqrt(log_level / (2.0 * rounds)))

    return most
