"""Tickets of a shared game: of requests that arrive here, of sessions, and of callers who hold theirs themselves.

While Redis cannot be reached, requests get no ticket, and the expert answers them.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from bpac.errors import StoreError
from bpac.gateway.games.desk import REPORTED, Arrival, Decided, DecidedBefore, Joined, NoTicket
from bpac.gateway.games.rounds.decision_ids import id_with_key
from bpac.gateway.games.rounds.drafting import DraftsUnderWay
from bpac.gateway.games.rounds.sessions import session_key
from bpac.gateway.shared.desk.named_tickets import named_ticket
from bpac.gateway.shared.desk.tickets_here import TicketsHere
from bpac.gateway.telemetry.failures.unscored_log import UnscoredLog
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.routing.tickets.ticket import Ticket
from bpac.stores.redis.messages import SharedTicket
from bpac.stores.redis.replicas.named_decisions import NamedDecision

if TYPE_CHECKING:
    from bpac.gateway.shared.shared_game import SharedGame

# Seconds until a request looks again whether the first one of its session is decided, at first and at most.
FIRST_LOOK, LONGEST_LOOK = 0.02, 0.25


class SharedArrivals:
    """The part of a desk that is about requests before their decision.

    Parameters
    ----------
    game: the game.
    metrics: counts requests that found Redis gone.
    """

    def __init__(self, game: "SharedGame", metrics: Metrics) -> None:
        self.game = game
        self._metrics = metrics
        self._tickets = TicketsHere(game)
        self.drafting = DraftsUnderWay(self._tickets, game.route)
        self._unscored_log = UnscoredLog(game.route.name)
        metrics.count("bpac_without_store_total", by=0, route=game.route.name)

    async def arrive(self, expert_calls: int, joined: Joined | None = None) -> Arrival:
        """Take the ticket of a request that has just arrived, unless it came with the claim of its session."""
        skips = self.game.arrived(expert_calls)
        if joined is not None and joined.ticket is not None:
            return Arrival(joined.ticket, skips)
        try:
            shared = await self.game.side.arrive()
        except StoreError as error:
            refused = self._no_ticket(error)
            refused.last_terms = None if skips else self.game.outside.last_terms()
            raise refused from error
        return Arrival(self._under_way(shared), skips)

    def _no_ticket(self, error: StoreError) -> NoTicket:
        self._metrics.count("bpac_without_store_total", route=self.game.route.name)
        return NoTicket(str(error), cause=error.cause, remedy=error.remedy)

    def _under_way(self, shared: SharedTicket) -> Ticket:
        """Note a ticket that may be decided here."""
        # A ticket that was given out before a cut is void by now; its place must not be mistaken for another one's.
        self._forget_void(shared.generation)
        self._tickets.shared[shared.terms] = shared
        self.drafting.arrived(shared.terms)
        return shared.terms

    def _forget_void(self, generation: int) -> None:
        void = [terms for terms, ticket in self._tickets.shared.items() if ticket.generation < generation]
        for terms in void:
            del self._tickets.shared[terms]
            self.drafting.decided(terms)

    def portable(self, ticket: Ticket) -> str:
        """What another gateway needs to decide a ticket."""
        return self._tickets.shared[ticket].to_text()

    async def taken_over(self, text: str) -> Ticket | None:
        """A ticket of another gateway; none if it was cut off, or if an alarm has rung since."""
        side = self.game.side
        shared = side.messages.read_ticket(text)
        if shared is None:  # perhaps this gateway has not heard yet what was published before the ticket was given out
            with suppress(StoreError):
                await side.sent()
            shared = side.messages.read_ticket(text)
        return None if shared is None else self._under_way(shared)

    async def arrive_named(self, name: str) -> DecidedBefore | Ticket | None:
        """The ticket of a name, or its decision; none if an alarm has rung since another gateway gave it out."""
        side = self.game.side
        try:
            found = await side.join_name(named_ticket(self.game.route, name))
        except StoreError as error:
            raise self._no_ticket(error) from error
        if isinstance(found, NamedDecision):
            return self._decided_before(found)
        if isinstance(found, SharedTicket):
            return self._under_way(found)
        ticket = side.messages.ticket_of(found.generation, found.terms, found.scores - 1)
        return None if ticket is None else self._under_way(ticket)

    async def decided_under(self, name: str) -> DecidedBefore | None:
        """The decision of the ticket with a name, wherever it was made; none if there is none (any more)."""
        found = await self.game.side.find_name(name)
        return None if found is None else self._decided_before(found)

    def _decided_before(self, found: NamedDecision) -> DecidedBefore:
        return DecidedBefore(self._decided_by(found), found.note.get(REPORTED), found.ticket.to_text())

    def _decided_by(self, found: NamedDecision) -> Decided:
        step = found.decision.step
        return Decided(found.decision, id_with_key(self.game.store.secret, self.game.kept, step, found.key))

    def done_elsewhere(self, ticket: Ticket) -> bool:
        """Whether the journal says that a ticket of this gateway was decided or withdrawn; then it is forgotten."""
        route = self.game.state.route
        if ticket not in self._tickets.shared or ticket.epoch != route.epoch or route.by_arrival is None:
            return False
        if route.by_arrival.arrivals.is_open(ticket.number):
            return False
        del self._tickets.shared[ticket]
        self.drafting.decided(ticket)
        return True

    async def join_session(self, caller: str, session: str) -> Joined:
        """The decision that a request of a session follows, or the claim to begin an episode, which is a ticket."""
        game, pause = self.game, FIRST_LOOK
        key = session_key(game.store.secret, caller, session)
        while True:
            try:
                found = await game.side.join_name(game.sessions.named(key))
            except StoreError as error:
                raise self._no_ticket(error) from error
            if isinstance(found, NamedDecision):
                return Joined(key, 0, self._decided_by(found))
            if isinstance(found, SharedTicket):
                return Joined(key, found.terms.number, None, self._under_way(found))
            # Another request of the session is on its way to its decision, here or at another gateway.
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK)

    def leave_session(self, joined: Joined) -> None:
        """Nothing to do: the claim ends with the ticket, which is decided, withdrawn or cut off."""

    def is_under_way(self, ticket: Ticket) -> bool:
        """Whether a ticket can still be decided, as far as it is known here."""
        shared = self._tickets.shared.get(ticket)
        return shared is not None and shared.generation >= self.game.side.messages.generation

    def withdraw(self, ticket: Ticket, reason: str) -> None:
        """Withdraw a ticket without a decision; nothing happens if it was decided or withdrawn before."""
        self.drafting.withdraw(ticket, reason)

    def abandon(self, ticket: Ticket) -> None:
        """Forget a ticket that nobody is going to decide: it stays a loss of 1; nothing happens if it was decided."""
        self.drafting.abandon(ticket)

    async def no_score(self, ticket: Ticket, reason: str, *, ended: bool) -> None:
        """Withdraw the ticket of a request whose draft has no score."""
        self._unscored_log.add(reason)
        self.drafting.no_score(ticket, reason, ended=ended)
