"""Queries under load: many drafts in flight at once, and faults."""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.events import Answered, Arrived, Crashed, CutOff, Drafted, Event, Late, PendingOutcomes
from bpac.replay.simulation.faults import Faults

NO_FAULTS = Faults()


def under_load(
    rounds: Iterable[tuple[float, float]],
    drafting: Drafting,
    delay: Delay,
    rng: np.random.Generator,
    *,
    faults: Faults = NO_FAULTS,
    accepting: Callable[[], bool] = bool,
) -> Iterator[Event]:
    """All events of a stream, in the order in which they happen.

    Parameters
    ----------
    rounds: uncertainty and loss of every draft, in the order in which queries arrive.
    drafting: how many drafts are in flight at once, and how long they take.
    delay: when outcomes arrive, counted in decisions.
    rng: random source of times, delays and attacks.
    faults: what goes wrong.
    accepting: returns whether a draft with the score 0 would be accepted now, for timed attacks.

    >>> [event.query for event in under_load([(0.1, 1.0), (0.2, 0.0)], Drafting(2, loss_factor=3.0), Delay(),
    ...                                      np.random.default_rng(0)) if isinstance(event, Drafted)]
    [2, 1]
    """
    return _Load(drafting, delay, rng, faults, accepting).events(iter(rounds))


class _Load:
    """A closed loop: when a draft ends, the next query arrives."""

    def __init__(
        self, drafting: Drafting, delay: Delay, rng: np.random.Generator, faults: Faults, accepting: Callable[[], bool]
    ) -> None:
        self._drafting = drafting
        self._rng = rng
        self._faults = faults
        self._accepting = accepting
        self._outcomes = PendingOutcomes(delay, rng)
        self._at_once = delay == Delay()
        # Drafts in flight: when each ends, and its query.
        self._in_flight: list[tuple[float, Drafted]] = []
        self._deadlines: list[tuple[float, int]] = []
        self._arrived = self._decided = self._row = 0
        self._now = 0.0
        self._over = False

    def events(self, rounds: Iterator[tuple[float, float]]) -> Iterator[Event]:
        """All events until every query is decided, withdrawn or lost."""
        crash_every = self._faults.crash_every
        while True:
            if crash_every and (self._decided + 1) % crash_every == 0:
                self._lose_drafts()
                self._outcomes.forget()
                yield Crashed()
            while len(self._in_flight) < self._drafting.in_flight:
                query = self._next(rounds)
                if query is None:
                    break
                out = self._faults.out("draft", query.query)
                if out and self._in_flight:
                    self._lose_drafts()
                    yield CutOff()
                yield Arrived(query.query)
                if out:
                    yield query._replace(uncertainty=None)
                else:
                    self._start(query)
            if not self._in_flight or self._in_flight[0][0] == math.inf:
                return
            self._now, drafted = heapq.heappop(self._in_flight)
            while self._deadlines and self._deadlines[0][0] <= self._now:
                yield Late(heapq.heappop(self._deadlines)[1])
            self._decided += 1
            yield drafted
            yield from self._answers(drafted)

    def _lose_drafts(self) -> None:
        self._in_flight.clear()
        self._deadlines.clear()

    def _start(self, query: Drafted) -> None:
        """Start the draft of a query."""
        drafting = self._drafting
        time = drafting.draw(query.query, query.loss, self._rng)
        heapq.heappush(self._in_flight, (self._now + time, query))
        if time > drafting.deadline:
            heapq.heappush(self._deadlines, (self._now + drafting.deadline, query.query))

    def _next(self, rounds: Iterator[tuple[float, float]]) -> Drafted | None:
        """The next query, from an attacker or from the stream; None when the stream is over."""
        faults = self._faults
        if self._over:
            return None  # attacks end with the stream
        if faults.refusals != "none" and faults.attacks(self._rng.random(), self._accepting()):
            self._arrived += 1
            return Drafted(self._arrived, 0.0, 0.0, refused=True)
        values = next(rounds, None)
        if values is None:
            self._over = True
            return None
        self._arrived += 1
        self._row += 1
        return Drafted(self._arrived, *values, row=self._row)

    def _answers(self, drafted: Drafted) -> Iterator[Answered]:
        """The outcomes that arrive after a decision."""
        query, now = drafted.query, self._decided
        if drafted.refused:
            yield Answered(query, None, refused=True)
        elif self._faults.out("expert", now):
            yield Answered(query, None)
        elif self._faults.out("grader", now):
            self._outcomes.give_up(query, now)
        elif self._at_once:
            yield Answered(query, drafted.loss)
        else:
            self._outcomes.expect(query, drafted.loss, now)
        yield from self._outcomes.due(now)
