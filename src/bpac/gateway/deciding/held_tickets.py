"""The tickets that callers hold, and the replies that are kept for callers that ask again."""

import time
from collections import Counter
from contextlib import suppress
from itertools import takewhile
from typing import Any

from bpac.errors import StoreError
from bpac.gateway.config.routes.decide_routes import DecideRouteSettings
from bpac.gateway.deciding.caller_round import CallerRound
from bpac.gateway.deciding.ticket_watch import TicketWatch
from bpac.gateway.games.desk import AbandonedTickets, PortableTickets
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.telemetry.metrics.counters import Metrics

# Seconds for which the reply to a decided ticket is kept in memory, and how many replies at most.
KEEP_REPLY, MOST_REPLIES = 600.0, 50_000
# Why a ticket cannot be decided here any more: nobody used it in time, or another gateway has decided it.
EXPIRED, ELSEWHERE = "expired", "elsewhere"


class HeldTickets:
    """The rounds of callers by the nonce of their ticket.

    Parameters
    ----------
    metrics: counts what becomes of tickets.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._open: dict[str, CallerRound] = {}
        # In the order in which they were closed.
        self._closed: dict[str, CallerRound] = {}
        # By owner and route: the tickets that are neither decided nor withdrawn.
        self._held: Counter[tuple[str, str]] = Counter()
        self._watch = TicketWatch()

    def get(self, nonce: str) -> CallerRound | None:
        """The round of a ticket; none if it is not known (any more)."""
        return self._open.get(nonce) or self._closed.get(nonce)

    def check_limit(self, owner: str, route: DecideRouteSettings) -> None:
        """Raise ``BadRequest`` if a caller holds as many tickets as it may."""
        if self._held[owner, route.name] >= route.max_tickets:
            self.count(route, "refused")
            raise BadRequest(
                f"this caller holds {route.max_tickets} tickets of the route {route.name}: decide or withdraw them, or "
                "have the operator raise max_tickets",
                429,
                code="too_many_tickets",
                retry_after=1,
            )

    def hold(self, owner: str, route: DecideRouteSettings) -> None:
        """Count one more ticket of a caller."""
        self._held[owner, route.name] += 1

    def let_go(self, owner: str, route: DecideRouteSettings) -> None:
        """Count one ticket of a caller less."""
        self._held[owner, route.name] -= 1
        if self._held[owner, route.name] <= 0:
            del self._held[owner, route.name]

    def add(self, round_: CallerRound) -> CallerRound:
        """Keep a round, whose ticket was counted if it is open; return it."""
        (self._open if round_.is_open else self._closed)[round_.id.nonce] = round_
        return round_

    def close(self, round_: CallerRound, reply: dict[str, Any], event: str) -> None:
        """Note what became of an open round.

        Parameters
        ----------
        round_: the round.
        reply: what further requests about it are answered with.
        event: what is counted.
        """
        round_.close(reply, time.monotonic())
        self._open.pop(round_.id.nonce, None)
        self._closed[round_.id.nonce] = round_
        if len(self._closed) > MOST_REPLIES:
            del self._closed[next(iter(self._closed))]
        if not round_.late:
            self._watch.ended(round_.route.name, late=False)
        self.let_go(round_.owner, round_.route)
        self.count(round_.route, event)

    def count(self, route: DecideRouteSettings, event: str) -> None:
        """Count what happened to a ticket."""
        self._metrics.count("bpac_caller_tickets_total", route=route.name, event=event)

    def sweep(self, time_now: float) -> None:
        """Forget tickets whose deadline has passed, and replies that were kept long enough.

        Parameters
        ----------
        time_now: the time on the monotonic clock, in seconds.
        """
        old = takewhile(lambda round_: time_now - round_.closed_at > KEEP_REPLY, self._closed.values())
        for round_ in list(old):
            del self._closed[round_.id.nonce]
        for round_ in list(self._open.values()):
            if _is_done_elsewhere(round_):
                self.close(round_, round_.without_decision(ELSEWHERE), ELSEWHERE)
                continue
            age, route = time_now - round_.since, round_.route
            if age > route.draft_deadline and not round_.late:
                round_.late = True
                self._watch.ended(route.name, late=True)
            if age > max(route.deadline, route.draft_deadline) and round_.deciding is None:
                self.close(round_, round_.without_decision(EXPIRED), "expired")
                _abandon(round_)

    def warnings(self) -> list[dict[str, Any]]:
        """What callers do wrong, as JSON values for the status and the dashboard."""
        return self._watch.warnings()

    def to_json(self) -> dict[str, Any]:
        """How many tickets callers hold, and what became of all, by route, as JSON values."""
        held: Counter[str] = Counter()
        for (_, route), count in self._held.items():
            held[route] += count
        found: dict[str, dict[str, int]] = {}
        for (name, labels), count in self._metrics.counts.items():
            if name == "bpac_caller_tickets_total":
                route, event = (value for _, value in labels)
                found.setdefault(route, {"held": held[route]})[event] = count
        return found


def _abandon(round_: CallerRound) -> None:
    """Have the game forget a ticket, so that the gateway can stop without one under way; its charge stays."""
    if round_.ticket is not None and isinstance(round_.desk, AbandonedTickets):
        with suppress(StoreError):  # it was logged; the ticket then stays under way, which charges one more
            round_.desk.abandon(round_.ticket)


def _is_done_elsewhere(round_: CallerRound) -> bool:
    desk, ticket = round_.desk, round_.ticket
    return (
        ticket is not None
        and round_.deciding is None
        and isinstance(desk, PortableTickets)
        and desk.done_elsewhere(ticket)
    )
