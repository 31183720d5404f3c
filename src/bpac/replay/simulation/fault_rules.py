"""What a gateway reports to its router when something goes wrong (MATH sections 12 and 13)."""

from bpac.routing.decision import Decision
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket


class Rules:
    """The rules that keep the promise."""

    def unscored(self, router: Router, ticket: Ticket | None) -> None:
        """A draft has no score: its query is no round."""
        if ticket is not None:
            router.withdraw(ticket, "no score")

    def refused(self, router: Router, audit: Decision) -> None:
        """The expert refused to answer: a fair round."""
        router.refuse(audit)

    def lost(self, router: Router, audit: Decision) -> None:
        """The outcome of an audit will never be known: it counts as a loss, and sounds no alarm."""
        router.forfeit(audit, "lost")

    def cut_off(self, router: Router) -> None:
        """All drafts under way failed together: the earliest query is charged."""
        router.cut_off()

    def crashing(self, router: Router) -> None:
        """The process dies: nothing can be written, and the next one charges the earliest query under way."""


class OldRules(Rules):
    """The rules before: each of them is wrong, and kept to show what it costs."""

    def unscored(self, router: Router, ticket: Ticket | None) -> None:
        """Wrong: a round with the uncertainty 1, which every threshold wins."""
        router.observe(router.decide(1.0, ticket=ticket), 0.0)

    def refused(self, router: Router, audit: Decision) -> None:
        """Wrong: a loss, so that any caller can sound the alarm."""
        router.observe(audit, 1.0)

    def lost(self, router: Router, audit: Decision) -> None:
        """Wrong: a loss that sounds the alarm, so that outages make the router forget what it has learned."""
        router.observe(audit, 1.0)

    def cut_off(self, router: Router) -> None:
        """Wrong: the drafts under way are withdrawn, although they are likelier to lose than others."""
        _withdraw_all(router)

    def crashing(self, router: Router) -> None:
        """Wrong: what is under way is withdrawn, as if a crash were a property of these queries alone."""
        _withdraw_all(router)
        router.stop()


def _withdraw_all(router: Router) -> None:
    for ticket in router.under_way:
        router.withdraw(ticket)
