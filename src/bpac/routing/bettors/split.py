"""A bettor for several scores that compete."""

from collections.abc import Sequence
from typing import Any

from bpac.betting.ledgers.ledger import Round
from bpac.betting.wealth.portfolio import PortfolioWealth


class SplitScores:
    """One wealth per score, each with its share of α; the score that accepts most is used (MATH section 8)."""

    MEMORY = 200.0  # rounds over which the share of accepted traffic is averaged

    def __init__(self, wealths: Sequence[PortfolioWealth]) -> None:
        self._wealths = tuple(wealths)
        self._accepted = [0.0] * len(self._wealths)
        self.active = 0
        self.threshold = 0.0

    def decided(self, decision: Round) -> None:
        """Every wealth sees the round; the score to use next is chosen from the past."""
        for index, wealth in enumerate(self._wealths):
            wealth.decided(decision)
            accepts = decision.uncertainties[index] < wealth.threshold
            self._accepted[index] += (accepts - self._accepted[index]) / self.MEMORY
        best = max(self._accepted)
        if self._accepted[self.active] < best:
            self.active = self._accepted.index(best)
        self.threshold = self._wealths[self.active].threshold

    def resolve(self, decision: Round, loss: float) -> None:
        """Every wealth books the loss at its own score."""
        for wealth in self._wealths:
            wealth.resolve(decision, loss)
        self.threshold = self._wealths[self.active].threshold

    def charge(self, decision: Round) -> None:
        """Every wealth books a loss of 1."""
        for wealth in self._wealths:
            wealth.charge(decision)
        self.threshold = self._wealths[self.active].threshold

    def refund(self, decision: Round, loss: float) -> None:
        """Every wealth replaces its charge."""
        for wealth in self._wealths:
            wealth.refund(decision, loss)
        self.threshold = self._wealths[self.active].threshold

    def forfeit(self, decision: Round) -> None:
        """Leave the charges where they are."""

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Every wealth books the loss of the other round."""
        for wealth in self._wealths:
            wealth.replace(decision, instead, loss, charged=charged)
        self.threshold = self._wealths[self.active].threshold

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"active": self.active, "accepted": self._accepted, "wealths": [w.state() for w in self._wealths]}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.active, self._accepted = state["active"], list(state["accepted"])
        for wealth, part in zip(self._wealths, state["wealths"], strict=True):
            wealth.load(part)
        self.threshold = self._wealths[self.active].threshold
