"""What the audits of a journal say about the mean loss of all drafts, whatever their score.

1. Every round counts from its decision on, at its worst for each bound (``MeanLoss``).
2. The loss of an audit, and the win of a draft that was kept, are credited when every earlier ticket is decided or
   withdrawn: queries are independent in the order of arrival only (MATH section 12). Both bounds need it:
   nobody knows whether drafts that lose take longer or shorter.
3. Where queries under way are cut off, the earliest of them is charged for good, and nothing beyond it is credited. So
   is a ticket that is overdue, or that holds up too many others.
4. Evidence belongs to one epoch: after a drift alarm it begins anew, and so do the numbers of tickets. A ticket may be
   withdrawn before the first decision of an epoch. Entries of tickets do not name their epoch, so whoever follows a
   router says in which one they were written; without that, nothing behind such a ticket is credited.
5. It is a fold over the entries of a journal. An entry that another version wrote, or that does not fit, can only leave
   something uncredited.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bpac.betting.bounds.mean_loss import MeanLoss
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Labelled, Overdue, Resolved, Started, Stopped, Withdrawn

# Rounds that wait for an earlier ticket, and audits that wait for their outcome; beyond it the earliest is given up.
MOST_WAITING = 4096


class UncreditedRound(NamedTuple):
    """A round that is booked at its worst.

    Parameters
    ----------
    ticket: its ticket; 0 if it has none, so that it need not wait for others.
    propensity: the probability with which it is audited.
    audited: whether it is.
    known: whether its outcome is.
    loss: its loss, where that is known; none also if the expert refused.
    """

    ticket: int
    propensity: float
    audited: bool
    known: bool
    loss: float | None


class SwitchEvidence:
    """The mean loss of all drafts of an epoch, from the entries of a journal.

    Attributes
    ----------
    epoch: the epoch that it is about.
    loss: the counts that the bounds follow from.
    audits: audits whose loss is known.
    forfeits: audits whose loss will not be known.

    >>> from bpac import Router
    >>> evidence = SwitchEvidence()
    >>> router = Router(epsilon=0.1, journal=evidence.follow, seed=1)
    >>> for _ in range(100):
    ...     decision = router.decide(0.0)
    ...     if decision.call_expert:
    ...         router.observe(decision, 0.5)
    >>> evidence.estimate, evidence.loss.at_least(0.1) > 0.3
    (0.5, True)
    """

    __slots__ = (
        *("_beyond", "_charged", "_reached", "_running", "_sums", "_waiting"),
        *("audits", "epoch", "forfeits", "loss"),
    )

    def __init__(self) -> None:
        self._running = False
        self._begin(1)

    def _begin(self, epoch: int) -> None:
        self.epoch = epoch
        self.loss = MeanLoss()
        self.audits = self.forfeits = 0
        # Losses of audits and their number, both weighted by the inverse of their probability.
        self._sums = [0.0, 0.0]
        self._waiting: dict[int, UncreditedRound] = {}
        self._restart()

    def _restart(self) -> None:
        """Number tickets from 1."""
        self._reached = 0
        # Tickets beyond the prefix that are done; and those within it that were given up.
        self._beyond: set[int] = set()
        self._charged: set[int] = set()

    @property
    def estimate(self) -> float | None:
        """The mean loss of the audits so far, each weighted by the inverse of its probability; none without one."""
        return self._sums[0] / self._sums[1] if self._sums[1] else None

    @property
    def unknown(self) -> int:
        """Audits whose outcome has not come."""
        return sum(one.audited and not one.known for one in self._waiting.values())

    def follow(self, entry: Entry, epoch: int = 0) -> None:
        """Take an entry of the journal into account.

        Parameters
        ----------
        entry: the next entry.
        epoch: the epoch of the router when it was written (default: not known).
        """
        if epoch > self.epoch and isinstance(entry, Started | Stopped | Withdrawn | Overdue):
            self._begin(epoch)
        if isinstance(entry, Decision):
            self._decided(entry)
        elif isinstance(entry, Resolved):
            self._resolved(entry)
        elif isinstance(entry, Withdrawn):
            self._done(entry.ticket)
        elif isinstance(entry, Overdue):
            self._give_up(entry.ticket)
        elif isinstance(entry, Started):
            if self._running:
                self._cut_off()
            self._running = True
        elif isinstance(entry, Stopped):
            self._running = False
            if self._beyond:  # a ticket is missing although none was under way
                self._cut_off()
            self._renumber()
        elif isinstance(entry, Labelled):
            self._labelled(entry)

    def _labelled(self, row: Labelled) -> None:
        audited = row.loss is not None or row.refused
        self.loss.decided(row.propensity, audited=audited)
        self._credit(UncreditedRound(0, row.propensity, audited, True, row.loss))

    def _decided(self, decision: Decision) -> None:
        if decision.epoch > self.epoch:
            self._begin(decision.epoch)
        elif decision.epoch < self.epoch:
            return
        audited, propensity, ticket = decision.call_expert, decision.propensity, decision.ticket
        self.loss.decided(propensity, audited=audited)
        if ticket in self._charged:  # its charge stays, and so it never counts for more
            self._charged.discard(ticket)
            return
        self._waiting[decision.step] = UncreditedRound(ticket, propensity, audited, not audited, None)
        if len(self._waiting) > MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._done(ticket)
        self._look(decision.step)

    def _resolved(self, entry: Resolved) -> None:
        waiting = self._waiting.get(entry.step)
        if waiting is None:
            return
        if entry.loss is None and not entry.refused:
            self.forfeits += 1
            del self._waiting[entry.step]
            return
        self._waiting[entry.step] = waiting._replace(known=True, loss=entry.loss)
        self._look(entry.step)

    def _look(self, step: int) -> None:
        """Credit a round if its outcome is known and no earlier ticket is open."""
        waiting = self._waiting.get(step)
        if waiting is not None and waiting.known and waiting.ticket <= self._reached:
            del self._waiting[step]
            self._credit(waiting)

    def _credit(self, waiting: UncreditedRound) -> None:
        _, propensity, audited, _, loss = waiting
        self.loss.win(propensity, loss, audited=audited)
        if loss is not None:
            self.audits += 1
            self._sums[0] += loss / propensity
            self._sums[1] += 1.0 / propensity

    def _done(self, ticket: int) -> None:
        """A ticket is decided or withdrawn."""
        if ticket <= self._reached:
            self._charged.discard(ticket)
            return
        self._beyond.add(ticket)
        if len(self._beyond) > MOST_WAITING:
            self._give_up(self._reached + 1)
        self._advance()

    def _give_up(self, ticket: int) -> None:
        """Charge an open ticket for good, so that it holds up no others."""
        if ticket > self._reached and ticket not in self._beyond:
            self.loss.charge()
            self._beyond.add(ticket)
            self._charged.add(ticket)
            self._advance()

    def _advance(self) -> None:
        before = self._reached
        while self._reached + 1 in self._beyond:
            self._reached += 1
            self._beyond.discard(self._reached)
        if self._reached > before:
            for step in [step for step, one in self._waiting.items() if before < one.ticket <= self._reached]:
                self._look(step)

    def _cut_off(self) -> None:
        """Queries under way will not be decided: charge the earliest, and credit nothing beyond it."""
        # Whether one was under way is not known; it is charged all the same.
        self.loss.charge()
        self._waiting = {step: one for step, one in self._waiting.items() if one.ticket <= self._reached}
        self._renumber()

    def _renumber(self) -> None:
        self._waiting = {step: one._replace(ticket=0) for step, one in self._waiting.items()}
        self._restart()

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {
            "epoch": self.epoch,
            "running": self._running,
            "reached": self._reached,
            "beyond": sorted(self._beyond),
            "charged": sorted(self._charged),
            "waiting": [[step, *one] for step, one in self._waiting.items()],
            "counts": [self.audits, self.forfeits],
            "sums": list(self._sums),
            "loss": self.loss.state(),
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "SwitchEvidence":
        """The evidence that ``state`` returned."""
        evidence = cls()
        evidence.epoch, evidence._running, evidence._reached = state["epoch"], state["running"], state["reached"]
        evidence._beyond, evidence._charged = set(state["beyond"]), set(state["charged"])
        evidence._waiting = {step: UncreditedRound(*one) for step, *one in state["waiting"]}
        evidence.audits, evidence.forfeits = state["counts"]
        evidence._sums = list(state["sums"])
        evidence.loss = MeanLoss.load(state["loss"])
        return evidence
