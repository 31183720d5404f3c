"""Sums of weighted losses below each threshold, and the largest threshold whose sum is small enough."""

import math
from typing import Any

from bpac.betting.ledgers.ledger import Ledger, Round
from bpac.betting.ledgers.levels import Levels
from bpac.betting.ledgers.loss_table import LossTable
from bpac.betting.payoff import Terms

# Weighted losses are kept in whole multiples of 2**-30, rounded up.
SUM_UNIT = 1 << 30


class WeightedLosses(Ledger):
    """``ΣZ(u)`` for every threshold u.

    >>> from bpac.betting.ledgers.levels import EvenLevels
    >>> WeightedLosses(Terms(0.1, 0.05), EvenLevels(11)).largest(0.0)
    1.0
    """

    __slots__ = ("_levels", "_table", "_terms")

    def __init__(self, terms: Terms, levels: Levels) -> None:
        self._terms = terms
        self._levels = levels
        self._table = LossTable(1, levels.top)

    def add(self, decision: Round, loss: float) -> None:
        """Book a loss."""
        self._table.add(self._levels.code(decision.uncertainty), [self._units(decision, loss)])

    def remove(self, decision: Round, loss: float) -> None:
        """Take a booked loss out again."""
        self._table.add(self._levels.code(decision.uncertainty), [-self._units(decision, loss)])

    def largest(self, most: float) -> float:
        """The largest threshold with ``ΣZ(u) ≤ most``; 0 if there is none."""
        limit = math.floor(most * SUM_UNIT)
        self._table.fall(lambda sums: sums[0] <= limit)
        self._table.climb(lambda sums: sums[0] <= limit)
        return self._levels.value(self._table.limit)

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"limit": self._table.limit, "losses": self._table.rows()}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._table.load(state["losses"], state["limit"])

    def _units(self, decision: Round, loss: float) -> int:
        return math.ceil(self._terms.weighted_loss(loss, decision.propensity) * SUM_UNIT)


class SeenLosses(WeightedLosses):
    """Losses as they were seen, unweighted; those not seen count as 0 (the O-naive baseline)."""

    __slots__ = ()

    def charge(self, decision: Round) -> None:
        """Book nothing: not seen yet."""

    def refund(self, decision: Round, loss: float) -> None:
        """Book the loss; there is no charge to take out."""
        self.resolve(decision, loss)

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Book the loss of the other round; there is no charge to take out."""
        self.resolve(instead, loss)

    def _units(self, decision: Round, loss: float) -> int:
        return math.ceil(loss * SUM_UNIT)
