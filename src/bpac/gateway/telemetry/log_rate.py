"""A limit on repeated log lines, so that callers and servers cannot fill the disk with them."""

import time
from collections.abc import Callable

# Seconds between two lines about the same kind of event.
LOG_EVERY = 60.0


class LogRate:
    """Logs the first event of each kind, and then at most one line per minute for each kind.

    Parameters
    ----------
    clock: a monotonic clock, in seconds.

    >>> rate = LogRate(clock=iter([0.0, 1.0, 2.0, 61.0]).__next__)
    >>> [rate.count("slow") for _ in range(4)]
    [1, 0, 0, 3]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # For each kind: the time of its last line, and the number of events since then.
        self._logged: dict[str, tuple[float, int]] = {}

    def count(self, kind: str) -> int:
        """The number of events that a line written now stands for; 0 if no line should be written.

        Parameters
        ----------
        kind: the kind of the event; one of a fixed set.
        """
        now = self._clock()
        last, more = self._logged.get(kind, (now - LOG_EVERY, 0))
        if now - last < LOG_EVERY:
            self._logged[kind] = (last, more + 1)
            return 0
        self._logged[kind] = (now, 0)
        return more + 1
