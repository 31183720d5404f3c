"""Reads the rounds of an older game from its journal, as history for another router (MATH sections 3 and 12).

1. Rounds are independent in the order in which their queries arrived: one run of a process after the other, by ticket
   within a run; where tickets were not in use, in the order of the decisions.
2. Where a process died, or a journal ends before its process has stopped, queries were cut off that are likelier to
   lose. The earliest of them counts as a loss of 1 at score 0. Beyond it, rounds that cost something stay and the
   others go. A ticket whose deadline has passed and that was never decided counts as such a loss, too, and nothing
   else is lost for it.
3. An audit without an outcome counts as a loss of 1. A draft that was kept is a round whose loss was not seen.
   It belongs to the history like any other: the audited rounds alone are not a sample of the traffic.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Labelled, Overdue, Resolved, Started, Stopped, Withdrawn
from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.tickets.arrivals import cut_off_rounds


class PastRound(NamedTuple):
    """A round of an older game.

    Parameters
    ----------
    epoch: the epoch to which it belongs.
    decision: what was decided; none for a query that was cut off before.
    outcome: the latest outcome that was recorded; none for a draft that was kept, and for an open audit.
    """

    epoch: int
    decision: Decision | None = None
    outcome: Resolved | None = None

    @property
    def kept(self) -> bool:
        """Whether the draft was kept, so that its loss was not seen."""
        return self.decision is not None and not self.decision.call_expert

    @property
    def is_open(self) -> bool:
        """Whether its outcome is not known and was not given up."""
        return self.decision is not None and self.decision.call_expert and self.outcome is None

    @property
    def refused(self) -> bool:
        """Whether the expert refused to answer."""
        return self.outcome is not None and self.outcome.refused

    def is_harmless(self) -> bool:
        """Whether it is won at every threshold: its draft was kept, or its loss is known to be 0."""
        return self.kept or (not self.refused and self.loss == 0.0)

    @property
    def loss(self) -> float:
        """The loss of an audit; what is not known is 1."""
        return 1.0 if self.outcome is None or self.outcome.loss is None else self.outcome.loss


class _Stretch:
    """The queries of one run and one epoch.

    Parameters
    ----------
    epoch: the epoch.
    """

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.cut_off = False  # whether queries were under way when it ended
        self.done: dict[int, Decision | None] = {}  # by ticket; none for those withdrawn
        self.overdue: set[int] = set()

    def rounds(self, outcomes: dict[int, Resolved]) -> Iterator[PastRound]:
        """Its rounds in order of arrival."""
        done: dict[int, PastRound | None] = {number: PastRound(self.epoch) for number in self.overdue}
        done |= {
            number: decision and PastRound(self.epoch, decision, outcomes.get(decision.step))
            for number, decision in self.done.items()
        }
        # Where queries were cut off, at least the one after the last that is done was under way.
        last = max(done, default=0) + self.cut_off
        for round_ in cut_off_rounds(done, range(1, last + 1), PastRound.is_harmless):
            yield round_ or PastRound(self.epoch)


class Past(NamedTuple):
    """An older game.

    Parameters
    ----------
    labelled: the history that it began with.
    rounds: its own rounds, in order of arrival.
    epoch: its last epoch.
    """

    labelled: list[Labelled]
    rounds: list[PastRound]
    epoch: int


def past_of(entries: Iterable[Entry]) -> Past:
    """Read the whole journal of an older game; ``JournalError`` if no router can have written it.

    Parameters
    ----------
    entries: the journal, from its first entry on.
    """
    remaining = iter(entries)
    route = opened(next(remaining, None))
    labelled: list[Labelled] = []
    stretches: list[_Stretch] = []
    run: dict[int, _Stretch] = {}  # of the current process, by epoch
    outcomes: dict[int, Resolved] = {}

    def stretch(epoch: int) -> _Stretch:
        if epoch not in run:
            run[epoch] = _Stretch(epoch)
            stretches.append(run[epoch])
        return run[epoch]

    for entry in remaining:
        epoch, was_running = route.epoch, route.running
        follow(route, [entry])
        match entry:
            case Labelled():
                labelled.append(entry)
            case Resolved():
                outcomes[entry.step] = entry
            case Withdrawn():
                stretch(epoch).done[entry.ticket] = None
            case Overdue():
                stretch(epoch).overdue.add(entry.ticket)
            case Decision():
                done = stretch(entry.epoch).done
                done[entry.ticket or len(done) + 1] = entry
            case Started() | Stopped():
                if was_running and isinstance(entry, Started):
                    stretch(epoch).cut_off = True
                run = {}
    if route.running:
        stretch(route.epoch).cut_off = True
    rounds = [round_ for part in stretches for round_ in part.rounds(outcomes)]
    return Past(labelled, rounds, route.epoch)


def labelled_rows(entries: Iterable[Entry], floor: float, scores: int = 1) -> list[Labelled]:
    """The last epoch of an older game as rows of history, with the propensities they were decided with.

    Earlier epochs are left out: according to the drift alarm their traffic was different.

    Parameters
    ----------
    entries: the whole journal.
    floor, scores: least propensity of the router that they are for, and how many scores it has: a query that was cut
        off is charged by them.
    """
    past = past_of(entries)
    rows = list(past.labelled) if past.epoch == 1 else []
    for round_ in past.rounds:
        if round_.epoch != past.epoch:
            continue
        decision = round_.decision
        if decision is None:
            rows.append(Labelled((0.0,) * scores, 1.0, floor, floor))
            continue
        known = decision.uncertainties or (decision.uncertainty,)
        if decision.features:
            known = known[:1]  # a learned score says nothing to a router that has not learned it
        rows.append(
            Labelled(
                known,
                None if round_.kept or round_.refused else round_.loss,
                decision.propensity,
                decision.least_propensity,
                round_.refused,
            )
        )
    return rows
