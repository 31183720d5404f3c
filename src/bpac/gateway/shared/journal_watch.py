"""How fast the journal of a shared game grows, and since when it has been behind the decisions."""

import time
from collections import deque
from collections.abc import Callable

# Seconds over which the speed is measured, and between two samples.
WINDOW, SAMPLE_EVERY = 10.0, 0.5


class JournalWatch:
    """Follows the length of a journal and the rounds that are decided and not in it yet.

    Parameters
    ----------
    clock: a monotonic clock (default: that of this machine).
    wall_clock: gives seconds since 1970 (default: that of this machine).

    >>> watch, entries = JournalWatch(iter([0.0, 4.0]).__next__), iter([100, 140])
    >>> watch.look(next(entries), lag=0)
    >>> watch.look(next(entries), lag=3)
    >>> watch.entries_per_second
    10.0
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._wall_clock = wall_clock
        self._samples: deque[tuple[float, int]] = deque()
        self._entries = -1
        self._still_from = self._now = 0.0
        self.behind_since: float | None = None

    def look(self, entries: int, lag: int) -> None:
        """Note where the journal stands.

        Parameters
        ----------
        entries: the number of its entries.
        lag: rounds that are decided and not in it.
        """
        now = self._now = self._clock()
        if entries != self._entries or not lag:
            self._entries, self._still_from = entries, now
        if not lag:
            self.behind_since = None
        elif self.behind_since is None:
            self.behind_since = self._wall_clock()
        if not self._samples or now - self._samples[-1][0] >= SAMPLE_EVERY:
            self._samples.append((now, entries))
        while len(self._samples) > 1 and now - self._samples[1][0] >= WINDOW:
            self._samples.popleft()

    @property
    def entries_per_second(self) -> float | None:
        """The average speed of the latest seconds; none before there are two samples."""
        if len(self._samples) < 2:
            return None
        (began, before), (ended, after) = self._samples[0], self._samples[-1]
        return max(0.0, (after - before) / (ended - began))

    @property
    def seconds_still(self) -> float:
        """For how long rounds have been waiting without a single new entry; 0 if none waits."""
        return self._now - self._still_from
