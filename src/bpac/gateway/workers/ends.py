"""How often a process of the gateway has ended and was started again, in all and lately."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

# Seconds after which the end of a process is long ago, and ends of a process that are remembered with their time.
LATELY, MOST_TIMES = 600.0, 10


class ProcessEnds:
    """The ends of one process.

    Parameters
    ----------
    count: how often it has ended so far (default: 0).
    times: when it has ended the latest times, in seconds since 1970 (default: none is known).

    >>> ProcessEnds(3, [0.0, 5000.0, 5100.0]).to_json(now=5200.0)
    {'restarts': 3, 'lately': 2, 'since': 5000.0}
    """

    def __init__(self, count: int = 0, times: Iterable[float] = ()) -> None:
        self.count = count
        self._times = deque(times, MOST_TIMES)

    @property
    def times(self) -> list[float]:
        """When it has ended the latest times, in seconds since 1970."""
        return list(self._times)

    def add(self) -> None:
        """It has ended now."""
        self.count += 1
        self._times.append(time.time())

    def to_json(self, now: float | None = None) -> dict[str, Any]:
        """How often it was started again, how often of them lately, and the first time of these, as JSON values.

        Parameters
        ----------
        now: the time in seconds since 1970 (default: that of this machine).
        """
        now = time.time() if now is None else now
        lately = [at for at in self._times if now - at < LATELY]
        return {"restarts": self.count, "lately": len(lately), "since": lately[0] if lately else None}
