"""What a gateway reports to its router when something goes wrong (MATH sections 12 and 13)."""

from bpac.routing.decision import Decision
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket


class FaultRules:
    """The rules that keep the promise, which the gateway follows."""

    def unscored(self, router: Router, ticket: Ticket | None) -> None:
        """A draft has no score: its query is not a round."""
        if ticket is not None:
            router.withdraw(ticket, "no score")

    def refused(self, router: Router, audit: Decision) -> None:
        """The expert refused to answer: a fair round."""
        router.refuse(audit)

    def lost(self, router: Router, audit: Decision) -> None:
        """The outcome of an audit will never be known: it counts as a loss, but not for the drift alarm."""
        router.forfeit(audit, "lost")

    def cut_off(self, router: Router) -> None:
        """All drafts in flight failed together: the earliest query is charged."""
        router.cut_off()

    def crashing(self, router: Router) -> None:
        """The process crashes: nothing can be written, and the next process charges the earliest query in flight."""


class WrongFaultRules(FaultRules):
    """Rules that look right and break the promise; they are kept to show how much each of them matters."""

    def unscored(self, router: Router, ticket: Ticket | None) -> None:
        """Wrong: a round with the uncertainty 1 counts as a win for every threshold."""
        router.observe(router.decide(1.0, ticket=ticket), 0.0)

    def refused(self, router: Router, audit: Decision) -> None:
        """Wrong: counted as a loss, any caller can set off the drift alarm."""
        router.observe(audit, 1.0)

    def lost(self, router: Router, audit: Decision) -> None:
        """Wrong: counted by the drift alarm, an outage makes the router forget what it has learned."""
        router.observe(audit, 1.0)

    def cut_off(self, router: Router) -> None:
        """Wrong: the drafts in flight are withdrawn, although they are more likely to lose than others."""
        _withdraw_all(router)

    def crashing(self, router: Router) -> None:
        """Wrong: the queries in flight are withdrawn, as if a crash were a property of these queries alone."""
        _withdraw_all(router)
        router.stop()


def _withdraw_all(router: Router) -> None:
    for ticket in router.under_way:
        router.withdraw(ticket)
