"""One round of a caller: its ticket, and what became of it."""

import asyncio
from dataclasses import dataclass
from typing import Any

from bpac.gateway.config.decide_routes import DecideRouteSettings
from bpac.gateway.deciding.ticket_ids import TicketId
from bpac.gateway.games.desk import Decided, GameDesk
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

    @property
    def is_open(self) -> bool:
        """Whether it can still be decided."""
        return self.reply is None

    def close(self, reply: dict[str, Any], time_now: float) -> None:
        """Note what became of it."""
        self.reply, self.closed_at = reply, time_now

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
