"""A simulated gateway: reports the events of queries to a router, as the real gateway does."""

from collections.abc import Callable, Sequence
from typing import cast

from bpac.errors import InputError
from bpac.replay.simulation.events import Answered, Arrived, CutOff, Drafted, Event, Late
from bpac.replay.simulation.fault_rules import FaultRules
from bpac.routing.decision import Decision
from bpac.routing.learning.features import Features
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket

FAULT_RULES = FaultRules()


class SimulatedGateway:
    """A router, the tickets of the queries in flight, and the audits whose outcome has not arrived.

    Parameters
    ----------
    router: a fresh router.
    tickets: whether queries take tickets when they arrive.
    rules: what is reported to the router when something goes wrong.
    rebuild: makes a router from the journal after a crash; needed only where processes crash.
    features: features of each query, where the router learns scores.
    """

    def __init__(
        self,
        router: Router,
        *,
        tickets: bool,
        rules: FaultRules = FAULT_RULES,
        rebuild: Callable[[], Router] | None = None,
        features: Sequence[Features] | None = None,
    ) -> None:
        self.router = router
        self._with_tickets = tickets
        self._rules = rules
        self._rebuild = rebuild
        self._features = features
        self._tickets: dict[int, Ticket] = {}
        # Each with the event that it was decided at.
        self._audits: dict[int, tuple[Decision, Drafted]] = {}

    def handle(self, event: Event) -> Decision | None:
        """Report an event to the router; return the decision that was made, or whose outcome arrived, if any."""
        if isinstance(event, Drafted):
            return self._drafted(event)
        if isinstance(event, Answered):
            return self._answered(event)
        if isinstance(event, Arrived):
            if self._with_tickets:
                self._tickets[event.query] = self.router.arrive()
        elif isinstance(event, Late):
            if self._with_tickets:
                self.router.overdue(self._tickets[event.query])
        elif isinstance(event, CutOff):
            self._tickets.clear()
            self._rules.cut_off(self.router)
        else:
            self._crashed()
        return None

    def served_loss(self, event: Drafted, decision: Decision) -> float:
        """The loss of the answer that is served if the expert's is not."""
        return event.loss

    def _decide(self, event: Drafted, ticket: Ticket | None) -> Decision:
        known = self._features[event.row - 1] if self._features is not None and event.row else None
        return self.router.decide(cast(float, event.uncertainty), ticket=ticket, features=known)

    def _observe(self, audit: Decision, event: Drafted, loss: float) -> None:
        self.router.observe(audit, loss)

    def _drafted(self, event: Drafted) -> Decision | None:
        ticket = self._tickets.pop(event.query, None) if self._with_tickets else None
        if event.uncertainty is None:
            self._rules.unscored(self.router, ticket)
            return None
        decision = self._decide(event, ticket)
        if decision.call_expert:
            self._audits[event.query] = decision, event
        return decision

    def _answered(self, event: Answered) -> Decision | None:
        query, loss, refused = event
        found = self._audits.pop(query, None)
        if found is None:
            return None  # the draft was kept
        audit, drafted = found
        if refused:
            self._rules.refused(self.router, audit)
        elif loss is None:
            self._rules.lost(self.router, audit)
        else:
            self._observe(audit, drafted, loss)
        return audit

    def _crashed(self) -> None:
        if self._rebuild is None:
            raise InputError("a simulation with crashes needs a journal to rebuild the router from")
        self._rules.crashing(self.router)
        self._tickets.clear()
        self._audits.clear()
        self.router = self._rebuild()
        for decision in self.router.owed:
            self._rules.lost(self.router, decision)
