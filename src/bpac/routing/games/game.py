"""What every betting game has."""

from abc import ABC, abstractmethod
from typing import Any, Protocol

from bpac.betting.ledger import Account, Round


class Game(Account, Protocol):
    """An account that has a threshold."""

    threshold: float

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""


class WaitingGame(ABC):
    """A game that charges nothing: what is owed is waited for, and what is given up counts as loss 1 for good."""

    @abstractmethod
    def resolve(self, decision: Round, loss: float) -> None:
        """The loss of a round is known."""

    def charge(self, decision: Round) -> None:
        """Nothing."""

    def refund(self, decision: Round, loss: float) -> None:
        """Nothing was charged."""
        self.resolve(decision, loss)

    def forfeit(self, decision: Round) -> None:
        """A loss that will never be known is 1."""
        self.resolve(decision, 1.0)
