"""Requests that wait for their draft: their tickets, their deadlines, and outages of the draft's server."""

import logging
import math
import time
from typing import Protocol

from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.rounds.draft_outages import DraftOutages
from bpac.routing.tickets.ticket import Ticket

log = logging.getLogger("bpac.gateway")


class TicketRouter(Protocol):
    """What becomes of tickets; the router of a game does it."""

    def arrive(self) -> Ticket:
        """Take a ticket."""

    def withdraw(self, ticket: Ticket, reason: str = "") -> None:
        """Let a ticket go without a decision."""

    def overdue(self, ticket: Ticket) -> None:
        """Stop waiting for a draft that takes too long."""

    def abandon(self, ticket: Ticket) -> None:
        """Forget an overdue ticket that nobody is going to decide."""

    def cut_off(self) -> None:
        """All queries under way were ended at once."""


class TicketJournal(Protocol):
    """Where it is written what becomes of tickets; the journal of a game."""

    @property
    def router(self) -> TicketRouter:
        """What becomes of tickets."""

    def snapshot_if_due(self) -> None:
        """Take a snapshot if enough was written since the last one."""


class DraftsUnderWay:
    """The tickets of a game that are neither decided nor withdrawn.

    Parameters
    ----------
    journal: the journal of the game.
    route: the settings of the route.
    """

    def __init__(self, journal: TicketJournal, route: RouteSettings) -> None:
        self._journal = journal
        self._router = journal.router
        self._route = route
        # The tickets in order of arrival, and when each stops holding up those behind it.
        self._tickets: dict[Ticket, float] = {}
        self._outages = DraftOutages()

    def __len__(self) -> int:
        return len(self._tickets)

    def go_on_under(self, route: RouteSettings) -> None:
        """Use other settings of the route from now on."""
        self._route = route

    def arrive(self) -> Ticket:
        """Take the ticket of a request that has just arrived; it must be decided or withdrawn."""
        ticket = self._router.arrive()
        self.arrived(ticket)
        return ticket

    def arrived(self, ticket: Ticket) -> None:
        """Wait for the draft of a request that has its ticket."""
        self._tickets[ticket] = time.monotonic() + self._route.draft_deadline

    def is_under_way(self, ticket: Ticket) -> bool:
        """Whether a ticket can still be decided: an outage may have cut it off."""
        return ticket in self._tickets

    def decided(self, ticket: Ticket) -> None:
        """Forget a ticket that was decided."""
        del self._tickets[ticket]

    def withdraw(self, ticket: Ticket, reason: str) -> None:
        """Withdraw a ticket without a decision; nothing happens if it was decided, withdrawn or held back before."""
        if ticket in self._tickets and ticket not in self._outages:
            self._router.withdraw(ticket, reason)
            del self._tickets[ticket]
            self._journal.snapshot_if_due()

    def no_score(self, ticket: Ticket, reason: str, *, ended: bool) -> None:
        """Withdraw the ticket of a request whose draft has no score.

        Parameters
        ----------
        ticket: of the request.
        reason: why there is no score.
        ended: whether what ended the draft may have ended other drafts at the same time.
        """
        if ended:
            self.draft_ended(ticket, reason)
        else:
            self.withdraw(ticket, reason)

    def draft_ended(self, ticket: Ticket, reason: str) -> None:
        """Withdraw a ticket whose draft broke off; if several did, their server is down and all tickets are cut off."""
        others = len(self._tickets) - len(self._outages) - 1
        if self._outages.down or not self.is_under_way(ticket):
            self.withdraw(ticket, reason)
        elif not others:
            self.release()
            self.withdraw(ticket, reason)
        elif self._outages.failed(ticket, reason):
            log.warning(
                "the draft's server is down: requests under way go to the expert, and one is charged as loss 1",
                extra={"route": self._route.name, "model": self._route.draft.name, "requests": len(self._tickets)},
            )
            self._router.cut_off()
            self._tickets.clear()

    def abandon(self, ticket: Ticket) -> None:
        """Forget a ticket that nobody is going to decide: it stays a loss; nothing happens if it is not under way."""
        if ticket in self._tickets and ticket not in self._outages:
            if self._tickets[ticket] < math.inf:
                self._router.overdue(ticket)
            self._router.abandon(ticket)
            del self._tickets[ticket]

    def cut_off(self, why: str) -> None:
        """Cut all tickets off, because something other than their drafts ended some of them (MATH section 12).

        Parameters
        ----------
        why: what ended them, for the log.
        """
        if not self._tickets:
            return
        log.warning(
            "requests under way are cut off: they go to the expert, and one is charged as loss 1",
            extra={"route": self._route.name, "reason": why, "requests": len(self._tickets)},
        )
        self._outages.release()
        self._router.cut_off()
        self._tickets.clear()

    def release(self) -> None:
        """Withdraw the tickets that were held back: no outage, their drafts failed independently."""
        for ticket, reason in self._outages.release().items():
            self.withdraw(ticket, reason)

    def sweep(self, time_now: float) -> None:
        """Stop waiting for the drafts whose deadline has passed.

        Parameters
        ----------
        time_now: the time on the monotonic clock, in seconds.
        """
        late = [ticket for ticket, until in self._tickets.items() if until <= time_now]
        if any(ticket in self._outages for ticket in late):
            self.release()
        for ticket in filter(self.is_under_way, late):
            self._router.overdue(ticket)
            self._tickets[ticket] = math.inf
