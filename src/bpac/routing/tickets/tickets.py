"""The tickets of a router: which are under way, and on what terms their queries are decided (MATH section 12)."""

from collections.abc import Callable

from bpac.errors import UnknownTicket
from bpac.routing.cascade.bettor import CascadeBettor
from bpac.routing.cascade.fitting import fit_rule
from bpac.routing.cascade.policy import Cascade
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Fitted, Overdue, Started, Stopped, Withdrawn
from bpac.routing.route import Route
from bpac.routing.tickets.ticket import Ticket

# ``Ticket(*values)`` without the cost of naming the fields.
new_tuple = tuple.__new__


class Tickets:
    """Gives out tickets and takes them back. They are in memory only: after a crash the next start charges for them.

    Parameters
    ----------
    route: the state that tickets are about.
    write: called with every entry before it takes effect.
    """

    __slots__ = ("_given", "_open", "_route", "_started", "_write")

    def __init__(self, route: Route, write: Callable[[Entry], object]) -> None:
        self._route = route
        self._write = write
        # By epoch and number; and the last number given out in an epoch.
        self._open: dict[tuple[int, int], Ticket] = {}
        self._given = (0, 0)
        self._started = False

    def under_way(self) -> tuple[Ticket, ...]:
        """The tickets that are not done, oldest first."""
        return tuple(self._open.values())

    @property
    def given(self) -> int:
        """The last number that was given out in the current epoch; 0 if there is none, or if tickets are not in use."""
        epoch, number = self._given
        return number if epoch == self._route.epoch and self._route.running else 0

    def give(self) -> Ticket:
        """A ticket for a query that has just arrived."""
        ticket = self._next()
        self._given = given = ticket[1], ticket[0]
        self._open[given] = ticket
        return ticket

    def terms(self, ticket: Ticket | None) -> Ticket:
        """The terms on which a query with that ticket is decided now; a query without one arrives now."""
        if ticket is None:
            return self._next()
        self.check(ticket)
        route = self._route
        if ticket.epoch != route.epoch:
            # An alarm has rung since: nothing that was certified before it is used.
            return ticket._replace(threshold=0.0, rate=1.0)
        if not route.in_order:
            # Only the coin matters there, and what is known by now makes the router more careful.
            return ticket._replace(threshold=route.bettor.threshold, rate=route.current.rate)
        return ticket

    def done(self, decision: Decision) -> None:
        """A query was decided."""
        used = decision[7], decision[9]
        if self._open.pop(used, None) is None:
            self._given = used  # it came without a ticket, and has the next number

    def withdraw(self, ticket: Ticket, reason: str) -> None:
        """Let a ticket go without a decision."""
        self.check(ticket)
        if ticket.epoch == self._route.epoch:
            self._write(Withdrawn(ticket.number, reason))
            self._route.withdrawn(ticket.number)
        del self._open[ticket.epoch, ticket.number]

    def overdue(self, ticket: Ticket) -> None:
        """Let a ticket no longer hold up those behind it."""
        self.check(ticket)
        route = self._route
        waits = route.by_arrival is None or ticket.number > route.by_arrival.arrivals.reached
        if ticket.epoch == route.epoch and waits:
            self._write(Overdue(ticket.number))
            route.overdue(ticket.number)

    def abandon(self, ticket: Ticket) -> None:
        """Forget a ticket that nobody is going to decide: what it is charged stays."""
        self.check(ticket)
        if ticket.epoch == self._route.epoch:
            # Also if it was passed over before: the journal does not say so, and must tell why it is missing.
            self._write(Overdue(ticket.number))
            self._route.overdue(ticket.number)
        del self._open[ticket.epoch, ticket.number]

    def cut_off(self) -> None:
        """All queries under way were ended at once: start again, which charges the earliest ticket."""
        if self._open:
            self._start()

    def _next(self) -> Ticket:
        """The ticket that the next query to arrive would get."""
        route = self._route
        if not self._started or not route.running:
            self._start()
        if route.stages:
            self.fit_if_due()
        route.charge()
        current = route.current
        epoch, number = self._given
        number = number + 1 if epoch == current.number else 1
        return new_tuple(
            Ticket,
            (number, current.number, current.bettor.threshold, current.rate, current.active_score, route.entries),
        )

    def fit_if_due(self) -> None:
        """Fit a stopping rule of a cascade if it is time: it joins before the next query arrives."""
        route = self._route
        route.charge()
        bettor = route.bettor
        if isinstance(bettor, CascadeBettor) and isinstance(route.settings.policy, Cascade) and bettor.fit_due:
            policy = route.settings.policy
            known = bettor.stages_by_uncertainty
            rule = fit_rule(bettor.sample, policy.prices, route.terms, known, policy.spread)
            self._write(Fitted(rule.to_json()))
            route.fitted(rule)

    def _start(self) -> None:
        self._write(Started())
        self._route.started()
        self._started, self._given = True, (self._route.epoch, 0)
        self._open.clear()

    def stop(self) -> bool:
        """Write that nothing is under way; false if something is, or if tickets are not in use."""
        if self._open or not self._started or not self._route.running:
            return False
        self._write(Stopped())
        self._route.stopped()
        return True

    def check(self, ticket: object) -> None:
        """Raise ``UnknownTicket`` unless this ticket is under way."""
        if not isinstance(ticket, Ticket) or self._open.get((ticket.epoch, ticket.number)) != ticket:
            raise UnknownTicket(
                f"{ticket!r} is not under way here: a ticket comes from arrive, and is decided or withdrawn once"
            )
