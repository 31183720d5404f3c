"""Watches whether callers use the tickets that they take; if many do not, the status and the dashboard say so."""

import logging
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from bpac.gateway.telemetry.log_rate import LogRate

log = logging.getLogger("bpac.gateway")

# The latest tickets that are looked at, and how many of them may be late before operators are warned.
LATEST, MOST_LATE = 100, 5


@dataclass(slots=True)
class _Route:
    latest: deque[bool] = field(default_factory=lambda: deque(maxlen=LATEST))
    since: float | None = None


class TicketWatch:
    """Counts the tickets that were not decided in time.

    >>> watch = TicketWatch()
    >>> for _ in range(MOST_LATE + 1):
    ...     watch.ended("homework", late=True)
    >>> [warning["count"] for warning in watch.warnings()]
    [6]
    """

    def __init__(self) -> None:
        self._routes: dict[str, _Route] = {}
        self._rate = LogRate()

    def ended(self, route: str, *, late: bool) -> None:
        """Add a ticket that was decided or withdrawn, or one that is late.

        Parameters
        ----------
        route: the name of its route.
        late: whether its draft deadline has passed before.
        """
        watched = self._routes.setdefault(route, _Route())
        watched.latest.append(late)
        if sum(watched.latest) <= MOST_LATE:
            watched.since = None
        elif watched.since is None:
            watched.since = round(time.time(), 3)
        if late and (times := self._rate.count(route)):
            log.warning(
                "a caller has not decided its ticket in time: it counts as a loss of 1 until it is decided",
                extra={"route": route, "since_last_line": times},
            )

    def warnings(self) -> list[dict[str, Any]]:
        """The routes whose callers leave tickets unused, as JSON values."""
        return [
            {
                "route": name,
                "since": route.since,
                "count": sum(route.latest),
                "what": f"{sum(route.latest)} of the last {len(route.latest)} tickets of callers were not decided "
                "within draft_deadline",
                "cost": "each counts as a loss of 1 at every threshold until it is decided, so the threshold stays low "
                "and the expert is called more often than needed",
                "remedy": "have callers decide or withdraw every ticket, also when their draft fails; if drafts take "
                f"longer, raise draft_deadline in routes.{name}",
            }
            for name, route in self._routes.items()
            if route.since is not None
        ]
