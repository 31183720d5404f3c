"""Hours in which the expert costs less or is busy: what the route keys ``cheap_hours`` and ``busy_at`` are for."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bpac.arguments import positive, whole
from bpac.errors import InputError
from bpac.hours import Hours
from bpac.replay.simulation.events import Arrived, Drafted, Event
from bpac.routing.router import Router

SECONDS_OF_DAY = 86_400
# Days of successive runs begin at times that are spread evenly over the day: at multiples of the golden section.
SPREAD = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class ExpertHours:
    """Days of a simulated gateway with even traffic.

    Parameters
    ----------
    cheap: the hours in which a call of the expert costs less.
    price: price of a call in these hours, as a share of the price in others (default: 0.5).
    busy: the hours in which the expert is busy, so that audits are made at the least rate.
    queries_per_day: number of queries per day (default: 400).
    first: the time of the first query, as a share of the day (default: 0, midnight).
    known: whether the router knows these hours (default: true).
    priced: whether it knows the price of an audit, or only when the expert is busy (default: true).

    >>> hours = ExpertHours(cheap=(Hours.read("00:00-06:00"),), price=0.2, queries_per_day=4)
    >>> [hours.price_of(query) for query in (1, 2, 3, 4, 5)], hours.mean_price
    ([0.2, 1.0, 1.0, 1.0, 0.2], 0.8)
    """

    cheap: tuple[Hours, ...] = ()
    price: float = 0.5
    busy: tuple[Hours, ...] = ()
    queries_per_day: int = 400
    first: float = 0.0
    known: bool = True
    priced: bool = True

    def __post_init__(self) -> None:
        whole(self.queries_per_day, "queries-per-day", 1)
        if positive(self.price, "cheap-price") > 1.0:
            raise InputError(f"cheap-price must be at most 1, got {self.price!r}")

    @property
    def mean_price(self) -> float:
        """The mean price of a query's call over a day."""
        return sum(map(self.price_of, range(1, self.queries_per_day + 1))) / self.queries_per_day

    def of_run(self, number: int) -> "ExpertHours":
        """The same hours, with the first query of a run at a time of its own."""
        return replace(self, first=number * SPREAD % 1.0)

    def price_of(self, query: int) -> float:
        """Price of a call for the query of that number, from 1."""
        return self.price if _in(self.cheap, self._seconds(query)) else 1.0

    def told(self, router: Router, events: Iterable[Event], begins: type[Arrived] | type[Drafted]) -> Iterator[Event]:
        """The same events; before a query arrives, the router is told what is expected of it.

        Parameters
        ----------
        router: the router.
        events: the events.
        begins: the first event of a query.
        """
        # What audits save is saved in the hours to come, at their mean price.
        mean_price = self.mean_price
        for event in events:
            if self.known and isinstance(event, begins):
                price = self.price_of(event.query) / mean_price if self.priced else 1.0
                router.expect(audit_price=price, busy=_in(self.busy, self._seconds(event.query)))
            yield event

    def _seconds(self, query: int) -> float:
        return SECONDS_OF_DAY * ((query - 1) / self.queries_per_day + self.first)


def _in(several: tuple[Hours, ...], seconds: float) -> bool:
    return any(hours.has(seconds) for hours in several)
