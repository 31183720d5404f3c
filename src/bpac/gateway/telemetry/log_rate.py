"""How often the same thing is logged: others must not be able to fill the disk with it."""

import time
from collections.abc import Callable

# Seconds between two lines about the same thing.
LOG_EVERY = 60.0


class LogRate:
    """Lets the first event of each kind into the log, and then at most one line a minute for each kind.

    Parameters
    ----------
    clock: seconds that only grow.

    >>> rate = LogRate(clock=iter([0.0, 1.0, 2.0, 61.0]).__next__)
    >>> [rate.count("slow") for _ in range(4)]
    [1, 0, 0, 3]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # For each kind: when it was logged last, and how often it came since.
        self._logged: dict[str, tuple[float, int]] = {}

    def count(self, kind: str) -> int:
        """How many events a line about this one stands for; 0 if it gets none.

        Parameters
        ----------
        kind: of the event; one of a fixed set.
        """
        now = self._clock()
        last, more = self._logged.get(kind, (now - LOG_EVERY, 0))
        if now - last < LOG_EVERY:
            self._logged[kind] = (last, more + 1)
            return 0
        self._logged[kind] = (now, 0)
        return more + 1
