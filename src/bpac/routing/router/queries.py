"""The order in which queries arrive, and queries that are never decided (MATH section 12)."""

from bpac.arguments import positive, text, whole
from bpac.errors import InputError
from bpac.routing.journal.entries import Expected
from bpac.routing.router.parts import RouterParts
from bpac.routing.tickets.ticket import Ticket


class Queries(RouterParts):
    """The part of a router that is about the order in which queries arrive."""

    def arrive(self) -> Ticket:
        """Take a ticket for a query that has just arrived, before its draft is asked for.

        Hand it to ``decide``, or to ``withdraw`` if there is nothing to decide.

        >>> from bpac import Router
        >>> router = Router(epsilon=0.05, seed=1)
        >>> first, second = router.arrive(), router.arrive()
        >>> router.decide(0.2, ticket=second).step                   # its draft came first …
        1
        >>> router.decide(0.4, ticket=first).ticket                  # … and counts second
        1
        """
        lock = self._lock
        lock.start()  # what ``change`` does, in half the time: this is done for every query
        try:
            try:
                self._proposals.latest = None
                ticket = self._tickets.give()
            except Exception:
                lock.busy = False
                raise
            lock.busy = False
            return ticket
        finally:
            lock.release()

    def withdraw(self, ticket: Ticket, reason: str = "") -> None:
        """Let a ticket go without a decision: its caller left, or its draft has no score.

        Parameters
        ----------
        ticket: what ``arrive`` returned.
        reason: why, for the journal.
        """
        reason = text(reason, "reason")
        with self._lock.change():
            self._proposals.latest = None
            self._tickets.withdraw(ticket, reason)

    def overdue(self, ticket: Ticket) -> None:
        """Stop waiting for a draft that takes too long, so that it no longer holds up the queries behind it.

        Until it is decided or withdrawn it counts as a loss of 1 at every threshold.

        Parameters
        ----------
        ticket: what ``arrive`` returned.
        """
        with self._lock.change():
            self._proposals.latest = None
            self._tickets.overdue(ticket)

    def abandon(self, ticket: Ticket) -> None:
        """Stop waiting for a query that nobody is going to decide any more.

        It is overdue, if it was not before, and counts as a loss of 1 at every threshold for ever. Nothing is under way
        because of it, so that ``stop`` need not charge for it again.

        Parameters
        ----------
        ticket: what ``arrive`` returned.
        """
        with self._lock.change():
            self._proposals.latest = None
            self._tickets.abandon(ticket)

    def cut_off(self) -> None:
        """Report that all queries under way were ended by something else than themselves, such as an outage.

        What was under way took longer than what was decided, so it is likelier to lose: withdrawing all of it at once
        would leave out the losses that were about to be seen. As after a crash, the earliest ticket under way is
        charged permanently, and wins beyond it are forgotten. The tickets given out so far are void: send their queries
        to the expert.
        """
        with self._lock.change():
            self._proposals.latest = None
            self._tickets.cut_off()

    def expect(self, *, audit_price: float = 1.0, rounds: int = 0, busy: bool = False) -> None:
        """Say what is expected of the queries that arrive from here on: the exploration rate follows from it.

        It may depend on anything that is known before they arrive, such as the time of the day or the load of the
        expert, and on nothing that depends on their own drafts. The promise holds whatever is said: the rate never
        falls below its floor, and it is recorded with each decision.

        Parameters
        ----------
        audit_price: what an audit costs, as a multiple of what expert calls cost otherwise (default: 1). Schedules
            that weigh audits against what they gain make more of them while they are cheap.
        rounds: how many rounds are expected to come, at least (default: 0, so that the schedule's own horizon counts).
        busy: whether the expert is busy: audits are then made at the least rate (default: false).

        >>> from bpac import Router
        >>> router = Router(epsilon=0.05, seed=1)
        >>> router.arrive().rate
        0.9
        >>> router.expect(busy=True)
        >>> router.arrive().rate
        0.05
        """
        if not isinstance(busy, bool):
            raise InputError(f"busy must be a bool, got {busy!r}")
        price = positive(audit_price, "audit_price")
        expected = Expected(price, whole(rounds, "rounds", 0, 1 << 53), busy)
        with self._lock.change():
            if expected != self._route.expected:
                self._proposals.latest = None
                self._write(expected)
                self._route.expects(expected)

    def stop(self) -> bool:
        """Note in the journal that no query is under way; false if there is one, or if tickets are not in use.

        A router that is rebuilt without such a note assumes that a query was cut off, and is charged for it.
        """
        with self._lock.change():
            self._proposals.latest = None
            return self._tickets.stop()
