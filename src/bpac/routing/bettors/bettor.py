"""What every bettor has."""

from typing import Any, Protocol

from bpac.betting.ledgers.ledger import Account, Round


class Bettor(Account[Round], Protocol):
    """Bets on thresholds within an epoch: an account of rounds, and the threshold that follows from it."""

    threshold: float

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
