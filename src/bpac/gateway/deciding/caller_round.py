"""One round of a caller: its ticket, and what became of it."""

import asyncio
from dataclasses import dataclass
from typing import Any

from bpac.gateway.config.routes.decide_routes import DecideRouteSettings
from bpac.gateway.deciding.ticket_ids import TicketId
from bpac.gateway.games.desk import Decided, DecidedBefore, GameDesk
from bpac.gateway.http.bad_request import BadRequest
from bpac.routing.learning.features import Feature
from bpac.routing.tickets.ticket import Ticket


@dataclass(slots=True, eq=False)
class CallerRound:
    """A ticket that a caller holds or has held.

    Parameters
    ----------
    text: the id of the ticket, as the caller knows it.
    id: its parts.
    owner: the caller.
    route: the settings of the route.
    desk: the game.
    ticket: the ticket; none if the round is over and only its reply is kept.
    since: when it was given out, on the monotonic clock.
    deciding: decides it, while that goes on.
    reply: what every further request about it is answered with; none as long as nothing is decided.
    closed_at: when it got its reply, on the monotonic clock.
    late: whether its draft deadline has passed before it was decided.
    reported: the uncertainty that was reported with the decision; none if it is not known.
    features: what else was reported, in the order of the game, where it learns from it.
    """

    text: str
    id: TicketId
    owner: str
    route: DecideRouteSettings
    desk: GameDesk
    ticket: Ticket | None
    since: float
    deciding: "asyncio.Task[Any] | None" = None
    reply: dict[str, Any] | None = None
    closed_at: float = 0.0
    late: bool = False
    reported: float | None = None
    features: tuple[Feature, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether it can still be decided."""
        return self.reply is None

    def close(self, reply: dict[str, Any], time_now: float) -> None:
        """Note what became of it."""
        self.reply, self.closed_at = reply, time_now

    def told_again(self, before: DecidedBefore, time_now: float) -> None:
        """Note that it was decided before: earlier, or at another gateway."""
        self.reported, self.features = before.reported, before.decided.decision.features
        self.close(self.decided(before.decided), time_now)

    def check_same(self, uncertainty: float, features: tuple[Feature, ...]) -> None:
        """Raise ``BadRequest`` unless a request with its idempotency key reports what its first one did.

        Parameters
        ----------
        uncertainty, features: what the request reports.
        """
        if self.reported is None:
            return
        for name, before, now in (("uncertainty", self.reported, uncertainty), ("features", self.features, features)):
            if before != now:
                raise BadRequest(
                    f"this Idempotency-Key has decided a draft with {name} {before!r}, and this request has {now!r}: "
                    "nothing was decided. Send what was sent first to get that decision again, or another key for "
                    "another draft",
                    422,
                    name,
                    "idempotency_key_reused",
                )

    def decided(self, decided: Decided) -> dict[str, Any]:
        """The reply that tells a decision."""
        decision, decision_id, _ = decided
        return {
            "decision": decision_id,
            "ticket": self.text,
            "route": self.route.name,
            "segment": self.desk.segment,
            "call_expert": decision.call_expert,
            "serve_draft": decision.serve_draft,
            "uncertainty": decision.uncertainty,
            "threshold": decision.threshold,
            "propensity": decision.propensity,
            "step": decision.step,
            "reason": None,
        }

    def without_decision(self, reason: str) -> dict[str, Any]:
        """The reply that says that nothing was decided, so that the expert answers and no loss is reported.

        Parameters
        ----------
        reason: why.
        """
        return {
            "decision": None,
            "ticket": self.text,
            "route": self.route.name,
            "segment": self.desk.segment,
            "call_expert": True,
            "serve_draft": False,
            "uncertainty": None,
            "threshold": None,
            "propensity": None,
            "step": None,
            "reason": reason,
        }
