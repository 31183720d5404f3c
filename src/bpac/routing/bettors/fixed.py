"""A bettor that never bets: the policies always, never and oracle."""

from typing import Any

from bpac.betting.ledgers.ledger import Round


class FixedThreshold:
    """A threshold that nothing moves: the policies always, never and oracle."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def decided(self, decision: Round) -> None:
        """Nothing to learn."""

    def resolve(self, decision: Round, loss: float) -> None:
        """Nothing to learn."""

    def charge(self, decision: Round) -> None:
        """Nothing to charge."""

    def refund(self, decision: Round, loss: float) -> None:
        """Nothing to learn."""

    def forfeit(self, decision: Round) -> None:
        """Nothing to lose."""

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Nothing to learn."""

    def state(self) -> dict[str, Any]:
        """The threshold."""
        return {"threshold": self.threshold}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a threshold."""
        self.threshold = state["threshold"]
