"""Rounds of callers that ask their models themselves (``POST /v1/arrive``, ``/v1/decide``, ``/v1/withdraw``).

1. Ticket. A caller takes a ticket when its query arrives, before it asks for a draft: rounds count in the order of
   arrival (MATH section 12). A decision without a ticket takes one at that moment, for callers that make one draft
   after the other.
2. Decide. The game decides on the terms of the ticket, once. A ticket that is decided again gets the same reply, never
   a second coin: otherwise a caller could ask until the coin spares it the expert.
3. Retries. An idempotency key of a caller stands for one ticket of a route and a segment, at all gateways that share
   the game. Replies are kept for a while; after a restart they are looked up in the journal, at another gateway in
   Redis. Where it is not known whether a decision was made, the reply is *the expert answers*. A key that comes back
   with another draft is an error: the reply would be about a draft that the caller no longer has.
4. A ticket is withdrawn because its draft has no score or its user left, which are properties of that query. Drafts
   that fail together are an outage, as they are for chats (``games/rounds/draft_outages.py``).
5. A ticket that is neither decided nor withdrawn is charged as a loss of 1 after ``draft_deadline``, and forgotten
   after ``deadline``: the charge stays. It holds up nobody for longer.
6. A ticket belongs to the caller that took it, and a caller holds at most ``max_tickets`` of a route.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, cast

from bpac.answer import Answer
from bpac.dashboard.history.unscored import CALLER_LEFT, OUTAGE
from bpac.errors import BpacError, StoreError
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.config.routes.decide_routes import DecideRouteSettings
from bpac.gateway.deciding.caller_round import CallerRound
from bpac.gateway.deciding.held_tickets import ELSEWHERE, HeldTickets
from bpac.gateway.deciding.journal_lookup import JournalLookup
from bpac.gateway.deciding.requests import DraftReport, no_such_ticket, not_decide_only
from bpac.gateway.deciding.ticket_ids import TicketId, new_nonce, nonce_of_key
from bpac.gateway.games.desk import REPORTED, TICKET, DecidedBefore, GameDesk, PortableTickets, RouteDesks
from bpac.gateway.games.segment_names import Caller
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.running_config import RunningConfigs
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.routing.learning.features import Features

# Why there is no decision.
WITHDRAWN, STORE_FAILED, FAILED = "withdrawn", "store-failed", "failed"
# Reasons to withdraw a ticket, and whether what ended the draft may have ended others at the same time.
REASONS = {"no-score": False, CALLER_LEFT: False, "draft-failed": True, "cancelled": True}


class Asker(NamedTuple):
    """Who asks, and with which idempotency key.

    Parameters
    ----------
    owner: whom tickets and decisions belong to.
    caller: as far as the segment depends on it.
    key: the idempotency key; empty if there is none.
    """

    owner: str
    caller: Caller
    key: str = ""


class CallerRounds:
    """Gives out tickets to callers and decides them.

    Parameters
    ----------
    running: the configuration of new tickets.
    metrics: counts what becomes of tickets.
    secret: gives the secret of the store.
    check: raises an error while no ticket can be given out.

    Attributes
    ----------
    held: the tickets that callers hold.
    """

    def __init__(
        self, running: RunningConfigs, metrics: Metrics, secret: Callable[[], bytes], check: Callable[[], None]
    ) -> None:
        self._running = running
        self._secret = secret
        self._check = check
        self.held = HeldTickets(metrics)
        self._arriving: dict[str, asyncio.Task[Any]] = {}
        self._lookup = JournalLookup()

    async def arrive(self, route: str, body: dict[str, Any], asker: Asker) -> CallerRound:
        """Give out a ticket; the same one as before to a caller that repeats its idempotency key.

        Parameters
        ----------
        route: the name of the route, perhaps with a colon and a segment.
        body: the request, in which the segment may be named.
        asker: who asks.
        """
        settings, desk = await self._game(route, body, asker)
        if not asker.key:
            return await self._give(TicketId(desk.number, new_nonce()), settings, desk, asker.owner)
        where = f"{settings.name}\0{desk.segment}"
        id_ = TicketId(desk.number, nonce_of_key(self._secret(), asker.owner, where, asker.key))
        known = self.held.get(id_.nonce) or self._recalled(id_, settings, desk, asker.owner)
        if known is not None:
            self.held.count(settings, "repeated")
            return known
        task = self._arriving.get(id_.nonce)
        if task is None:
            task = self._arriving[id_.nonce] = self._spawn(self._give(id_, settings, desk, asker.owner, keyed=True))
            task.add_done_callback(lambda _: self._arriving.pop(id_.nonce, None))
        return cast(CallerRound, await _outcome(task))

    async def _give(
        self, id_: TicketId, settings: DecideRouteSettings, desk: GameDesk, owner: str, *, keyed: bool = False
    ) -> CallerRound:
        self.held.check_limit(owner, settings)
        self.held.hold(owner, settings)  # before anything waits, so that the limit holds
        try:
            if keyed and isinstance(desk, PortableTickets):
                found = await desk.arrive_named(id_.nonce)
            else:
                found = (await desk.arrive(0)).ticket
        except BaseException:
            self.held.let_go(owner, settings)
            raise
        if isinstance(found, DecidedBefore):  # at another gateway
            self.held.let_go(owner, settings)
            self.held.count(settings, "repeated")
            return self._closed(id_, settings, desk, owner, found)
        if found is None:
            self.held.let_go(owner, settings)
            return self._void(id_.text(self._secret(), owner), id_, settings, desk, owner)
        if (known := self.held.get(id_.nonce)) is not None:  # it was taken over meanwhile
            self.held.let_go(owner, settings)
            return known
        ticket = found
        if isinstance(desk, PortableTickets):
            id_ = id_._replace(terms=desk.portable(ticket))
        self.held.count(settings, "given")
        text = id_.text(self._secret(), owner)
        return self.held.add(CallerRound(text, id_, owner, settings, desk, ticket, time.monotonic()))

    async def decide_at_once(self, route: str, body: dict[str, Any], asker: Asker, draft: DraftReport) -> Any:
        """The reply to a query without a ticket: it takes one now.

        Parameters
        ----------
        route, body, asker: as for ``arrive``.
        draft: what is known of the draft.
        """
        settings, desk = await self._game(route, body, asker)
        features = draft.features_for(settings, desk) or ()  # what is wrong is found before there is a ticket
        round_ = await self.arrive(route, body, asker)
        round_.check_same(draft.uncertainty, features)
        reply = await self._decided(round_, draft)
        round_.check_same(draft.uncertainty, features)  # another gateway may have decided it meanwhile
        return reply

    async def decide(self, ticket: str, route: str | None, owner: str, draft: DraftReport) -> dict[str, Any]:
        """The reply to a query that has a ticket; the same one as before if it was decided already.

        Parameters
        ----------
        ticket: its id.
        route: the name of its route; none if the caller leaves it out.
        owner: who asks.
        draft: what is known of the draft.
        """
        round_ = await self._find(ticket, owner)
        if route is not None and round_.route.name not in (route, route.partition(":")[0]):
            raise BadRequest(f"the ticket is one of the route {round_.route.name}", 422, "route", "other_route")
        return await self._decided(round_, draft)

    async def _decided(self, round_: CallerRound, draft: DraftReport) -> dict[str, Any]:
        if round_.reply is not None:
            if round_.reply["reason"] == ELSEWHERE:
                await self._look_elsewhere(round_)
            self.held.count(round_.route, "repeated")
            return round_.reply
        if round_.deciding is None:
            # A task of its own: the round counts from the decision on, even if its caller leaves while this waits.
            features = draft.features_for(round_.route, round_.desk)
            round_.reported, round_.features = draft.uncertainty, features or ()
            round_.deciding = self._spawn(self._decide(round_, draft, features))
        await _outcome(round_.deciding)
        assert round_.reply is not None
        return round_.reply

    async def _decide(self, round_: CallerRound, draft: DraftReport, features: Features | None) -> None:
        desk, ticket = round_.desk, round_.ticket
        assert ticket is not None
        asked_by = {"caller": round_.owner} if round_.owner else {}
        note = {TICKET: round_.id.nonce, REPORTED: draft.uncertainty, **asked_by, **draft.note}
        made = None
        try:
            if desk.is_under_way(ticket):
                desk.scored(draft.uncertainty, Answer(round_.id.nonce))
                made = await desk.decide(draft.uncertainty, ticket, note, lambda decided: decided, features=features)
            if made is not None:
                await desk.durable()
            elif await self._look_elsewhere(round_):
                self.held.close(round_, round_.reply or {}, ELSEWHERE)
                return
        except Exception as error:
            # Perhaps the decision is in the journal and perhaps not. A later attempt must not decide it again.
            reason = STORE_FAILED if isinstance(error, StoreError) else FAILED
            self.held.close(round_, round_.without_decision(reason), "void")
            raise
        finally:
            round_.deciding = None
        if made is None:
            self.held.close(round_, round_.without_decision(OUTAGE), "void")
        else:
            self.held.close(round_, round_.decided(made[0]), "decided")

    async def withdraw(self, ticket: str, owner: str, reason: str) -> dict[str, Any]:
        """Take a ticket back without a decision, for one of ``REASONS``; ``BadRequest`` if it was decided."""
        round_ = await self._find(ticket, owner)
        if round_.reply is None and await self._look_elsewhere(round_) and round_.deciding is None:
            self.held.close(round_, round_.reply or {}, ELSEWHERE)
        if round_.deciding is not None:
            await _outcome(round_.deciding)
        if round_.reply is None and round_.ticket is not None:
            self.held.close(round_, round_.without_decision(WITHDRAWN), "withdrawn")
            if reason == CALLER_LEFT:
                round_.desk.withdraw(round_.ticket, reason)
            else:
                await round_.desk.no_score(round_.ticket, reason, ended=REASONS[reason])
        reply = round_.reply or {}
        if reply.get("decision") is not None:
            raise BadRequest("the ticket was decided: report what came of it", 409, "ticket", "already_decided")
        return reply

    async def _game(self, name: str, body: dict[str, Any], asker: Asker) -> tuple[DecideRouteSettings, GameDesk]:
        """The route of a request and the game that it belongs to, if it can be decided now."""
        settings, games, label = self._route(name)
        self._check()
        return settings, await games.desk(ChatRequest(body, name), asker.caller, label)

    def _route(self, name: str) -> tuple[DecideRouteSettings, RouteDesks, str]:
        running = self._running.current
        first, _, label = name.partition(":")
        for candidate, rest in ((name, ""), (first, label)):
            settings = running.config.decide_routes.get(candidate)
            if settings is not None and (not rest or settings.segment_by == "model"):
                return settings, running.decide_routes[candidate], rest
            if candidate in running.config.routes or candidate in running.config.single_routes:
                raise not_decide_only(candidate)
        raise BadRequest(f"there is no route {name!r} with decide_only", 404, "route", "route_not_found")

    async def _look_elsewhere(self, round_: CallerRound) -> bool:
        """Whether another gateway has decided a ticket; then the round has its reply."""
        if not isinstance(round_.desk, PortableTickets):
            return False
        try:
            found = await round_.desk.decided_under(round_.id.nonce)
        except StoreError:
            return False  # nobody knows: the expert answers
        if found is not None:
            round_.told_again(found, time.monotonic())
        return found is not None

    async def _find(self, text: str, owner: str) -> CallerRound:
        id_ = TicketId.read(text, self._secret(), owner)
        if id_ is None:
            raise no_such_ticket()
        if (known := self.held.get(id_.nonce)) is not None:
            return known
        # It was given out before a restart, by another gateway, or a long time ago.
        running = self._running.current
        for name, games in running.decide_routes.items():
            for desk in games.desks():
                if desk.number == id_.game:
                    settings = running.config.decide_routes[name]
                    recalled = self._recalled(id_, settings, desk, owner)
                    return recalled or await self._taken_over(text, id_, settings, desk, owner)
        raise no_such_ticket()

    def _recalled(self, id_: TicketId, settings: DecideRouteSettings, desk: GameDesk, owner: str) -> CallerRound | None:
        """A round whose decision is in the journal; none if it is not there."""
        found = self._lookup.find(desk, id_.nonce)
        return None if found is None else self._closed(id_, settings, desk, owner, found)

    def _closed(
        self, id_: TicketId, settings: DecideRouteSettings, desk: GameDesk, owner: str, found: DecidedBefore
    ) -> CallerRound:
        """A round that was decided before."""
        id_ = id_._replace(terms=found.portable or id_.terms)
        round_ = CallerRound(id_.text(self._secret(), owner), id_, owner, settings, desk, None, time.monotonic())
        round_.told_again(found, time.monotonic())
        return self.held.add(round_)

    async def _taken_over(
        self, text: str, id_: TicketId, settings: DecideRouteSettings, desk: GameDesk, owner: str
    ) -> CallerRound:
        """A ticket of another gateway on the same game; of any other it is not known what became of it."""
        ticket = await desk.taken_over(id_.terms) if isinstance(desk, PortableTickets) and id_.terms else None
        if (known := self.held.get(id_.nonce)) is not None:  # another request with this ticket came meanwhile
            return known
        round_ = CallerRound(text, id_, owner, settings, desk, ticket, time.monotonic())
        if ticket is None:
            if await self._look_elsewhere(round_):
                return self.held.add(round_)
            return self._void(text, id_, settings, desk, owner)
        self.held.hold(owner, settings)
        return self.held.add(round_)

    def _void(self, text: str, id_: TicketId, settings: DecideRouteSettings, desk: GameDesk, owner: str) -> CallerRound:
        """A round that nobody decides here any more: the expert answers."""
        self.held.count(settings, "void")
        round_ = CallerRound(text, id_, owner, settings, desk, None, time.monotonic())
        round_.close(round_.without_decision(OUTAGE), time.monotonic())
        return round_

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        return self._running.current.spawn(_caught(work))


async def _caught(work: Coroutine[Any, Any, Any]) -> tuple[Any, BpacError | None]:
    """What a task returns, or why it fails, which is for those who wait for it."""
    try:
        return await work, None
    except BpacError as error:
        return None, error


async def _outcome(task: "asyncio.Task[tuple[Any, BpacError | None]]") -> Any:
    """Wait for a task that others may wait for, too."""
    value, error = await asyncio.shield(task)
    if error is not None:
        raise error
    return value
