"""What every betting game has."""

from typing import Any, Protocol

from bpac.betting.ledgers.ledger import Account, Round


class Bettor(Account[Round], Protocol):
    """An account that has a threshold."""

    threshold: float

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
