"""A simulated gateway: reports the events of queries to a router, as the real gateway does."""

from collections.abc import Callable, Sequence

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
        self._audits: dict[int, Decision] = {}

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

    def _drafted(self, event: Drafted) -> Decision | None:
        query, uncertainty, _, _ = event
        ticket = self._tickets.pop(query, None) if self._with_tickets else None
        if uncertainty is None:
            self._rules.unscored(self.router, ticket)
            return None
        known = self._features[query - 1] if self._features is not None else None
        decision = self.router.decide(uncertainty, ticket=ticket, features=known)
        if decision.call_expert:
            self._audits[query] = decision
        return decision

    def _answered(self, event: Answered) -> Decision | None:
        query, loss, refused = event
        audit = self._audits.pop(query, None)
        if audit is None:
            return None  # the draft was kept
        if refused:
            self._rules.refused(self.router, audit)
        elif loss is None:
            self._rules.lost(self.router, audit)
        else:
            self.router.observe(audit, loss)
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
