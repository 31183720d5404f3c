"""Events in the life of queries, in the order in which they are reported to a router."""

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bpac.replay.simulation.delays import Delay


class Arrived(NamedTuple):
    """A query arrives and its draft is requested. Reported only where drafts take time.

    Parameters
    ----------
    query: its number in the order of arrival, from 1.
    """

    query: int


class Drafted(NamedTuple):
    """The draft of a query is complete.

    Parameters
    ----------
    query: its number.
    uncertainty: score of the draft; None if it has no score.
    loss: loss of the draft, which the router does not know.
    refused: whether the expert will refuse to answer the query, which the router does not know either.
    row: its number in the stream, from 1; 0 if an attacker sent it.
    """

    query: int
    uncertainty: float | None
    loss: float
    refused: bool = False
    row: int = 0


class Late(NamedTuple):
    """The draft of a query is not complete at its deadline.

    Parameters
    ----------
    query: its number.
    """

    query: int


class Answered(NamedTuple):
    """The outcome of a query becomes known.

    Parameters
    ----------
    query: its number.
    loss: loss of its draft; None if it will never be known.
    refused: whether the expert refused to answer.
    """

    query: int
    loss: float | None
    refused: bool = False


class CutOff(NamedTuple):
    """The draft model's server fails, and every draft in flight fails with it."""


class Crashed(NamedTuple):
    """The process crashes: queries in flight and outcomes that have not arrived are lost."""


Event = Arrived | Drafted | Late | Answered | CutOff | Crashed


class PendingOutcomes:
    """Outcomes that have not arrived yet.

    Parameters
    ----------
    delay: when they arrive.
    rng: random source of the delays.
    """

    def __init__(self, delay: Delay, rng: np.random.Generator) -> None:
        self._delay = delay
        self._rng = rng
        self._waiting: list[tuple[int, int, float | None]] = []

    def expect(self, query: int, loss: float, now: int) -> None:
        """Add the outcome of a draft that was decided as number ``now``."""
        wait, lost = self._delay.draw(loss, self._rng)
        heapq.heappush(self._waiting, (now + wait, query, None if lost else loss))

    def give_up(self, query: int, now: int) -> None:
        """Let the outcome of a draft that was decided as number ``now`` be given up at the deadline."""
        heapq.heappush(self._waiting, (now + self._delay.deadline, query, None))

    def due(self, now: int) -> Iterator[Answered]:
        """The outcomes that have arrived by the time decision ``now`` is made."""
        while self._waiting and self._waiting[0][0] <= now:
            _, query, outcome = heapq.heappop(self._waiting)
            yield Answered(query, outcome)

    def forget(self) -> None:
        """Lose all pending outcomes."""
        self._waiting.clear()


def delayed(
    rounds: Iterable[tuple[float, float]], delay: Delay, rng: np.random.Generator
) -> Iterator[Drafted | Answered]:
    """Queries in order, each decided when it arrives, and between them the outcomes of earlier ones.

    Every query has an outcome here; callers use only those of the drafts that were audited.

    Parameters
    ----------
    rounds: uncertainty and loss of every draft.
    delay: when outcomes arrive.
    rng: random source of the delays.

    >>> list(delayed([(0.1, 0.0)], Delay(), np.random.default_rng(0)))
    [Drafted(query=1, uncertainty=0.1, loss=0.0, refused=False, row=1), Answered(query=1, loss=0.0, refused=False)]
    """
    outcomes = PendingOutcomes(delay, rng)
    at_once = delay == Delay()
    for query, (uncertainty, loss) in enumerate(rounds, start=1):
        yield Drafted(query, uncertainty, loss, row=query)
        if at_once:
            yield Answered(query, loss)
        else:
            outcomes.expect(query, loss, query)
            yield from outcomes.due(query)
