"""The tickets of a shared game that requests of this gateway have."""

from typing import TYPE_CHECKING, NoReturn

from bpac.gateway.games.journal import now
from bpac.routing.tickets.ticket import Ticket
from bpac.stores.redis.messages import CUT_OFF, SharedTicket, overdue, withdrawing

if TYPE_CHECKING:
    from bpac.gateway.shared.shared_game import SharedGame


class TicketsHere:
    """What becomes of the tickets of this gateway, for ``DraftsUnderWay``.

    Parameters
    ----------
    game: the game.
    """

    def __init__(self, game: "SharedGame") -> None:
        self._game = game
        self.shared: dict[Ticket, SharedTicket] = {}
        self.router = self

    def arrive(self) -> NoReturn:
        """Raise ``TypeError``: tickets of a shared game come from Redis."""
        raise TypeError("tickets of a shared game come from Redis")

    def withdraw(self, ticket: Ticket, reason: str = "") -> None:
        """Let a ticket go without a decision."""
        found = self.shared.pop(ticket, None)
        if found is not None:
            self._game.side.tell(withdrawing(found, reason, now()))

    def overdue(self, ticket: Ticket) -> None:
        """Stop waiting for a draft that takes too long."""
        if ticket in self.shared:
            self._game.side.tell(overdue(self.shared[ticket]))

    def abandon(self, ticket: Ticket) -> None:
        """Forget an overdue ticket that nobody is going to decide: it stays a loss."""
        self.shared.pop(ticket, None)

    def cut_off(self) -> None:
        """All queries under way were ended at once."""
        self.shared.clear()
        self._game.side.tell(CUT_OFF)

    def snapshot_if_due(self) -> None:
        """Do nothing: the folder takes snapshots."""
