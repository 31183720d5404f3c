"""The order in which queries arrive, and queries that are never decided (MATH section 12)."""

from bpac.arguments import text
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
        with self._lock.change():
            self._proposals.latest = None
            return self._tickets.give()

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

    def stop(self) -> bool:
        """Note in the journal that no query is under way; false if there is one, or if tickets are not in use.

        A router that is rebuilt without such a note assumes that a query was cut off, and is charged for it.
        """
        with self._lock.change():
            self._proposals.latest = None
            return self._tickets.stop()
