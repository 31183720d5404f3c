"""Sums booked at score levels, with one movable limit and the sums of everything below it."""

from collections.abc import Callable, Iterable, Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from bpac.betting.ledgers.lanes import Lanes

# A level whose last sum falls to this is dead: no threshold above it passes again. So every sum stays within 64 bits,
# and rounding of this kind can only lower a threshold.
DEAD = -(1 << 61)

Test = Callable[[int], bool]


class LossTable:
    """Whole-number sums at score levels, and a limit that moves among them.

    The sums of a level are one number (``Lanes``), and so are amounts. ``below`` holds the sums over all levels under
    ``limit``. The sums seen by a threshold are constant between two booked levels, so a limit only ever rests on a
    booked level or on the top.

    Parameters
    ----------
    width: how many sums each level has.
    top: code of the highest threshold.

    >>> table = LossTable(width=1, top=1000)
    >>> table.add(300, 5); table.add(100, 2)
    >>> table.climb(lambda sums: sums <= 4)      # the largest limit whose sum below is at most 4
    >>> table.limit, table.below
    (300, 2)
    """

    __slots__ = ("_alive_from", "_booked", "_dead", "_sums", "below", "lanes", "limit", "top")

    def __init__(self, width: int, top: int) -> None:
        self.top = top
        # Which levels are booked, to find neighbours fast, and their sums.
        self._booked = bytearray(top + 1)
        self._sums: dict[int, int] = {}
        self.limit = 0
        self.below = 0
        self._set_width(width)

    def _set_width(self, width: int) -> None:
        self.lanes = Lanes(width)
        self._dead = self.lanes.together([DEAD] * width)
        self._alive_from = self.lanes.last_at_most(DEAD)

    def add(self, code: int, amounts: int) -> None:
        """Book ``amounts`` at a level; their negatives take them out again.

        Of amounts below 0 the last must be the lowest: it alone is watched for the level's death.
        """
        sums = self._sums
        before = sums.get(code)
        if before is None:
            self._booked[code] = 1
            before = 0
        elif before < self._alive_from:
            return
        after = before + amounts
        if after < self._alive_from:
            sums[code] = self._dead
            self.below = self.sums_below(self.limit)
            return
        sums[code] = after
        if code < self.limit:
            self.below += amounts

    def widen(self, by: int) -> None:
        """Give every level that many further sums, all 0."""
        self._set_width(self.lanes.width + by)

    def climb(self, passes: Test) -> None:
        """Raise the limit while the next stretch above it passes the test."""
        while self.limit < self.top:
            sums = self.below + self._sums.get(self.limit, 0)
            if not passes(sums):
                return
            self.below = sums
            above = self._booked.find(1, self.limit + 1)
            self.limit = above if above >= 0 else self.top

    def fall(self, passes: Test) -> None:
        """Lower the limit until the stretch just under it passes the test, or to 0."""
        while self.limit and not passes(self.below):
            self.limit = max(self._booked.rfind(1, 0, self.limit), 0)
            self.below -= self._sums.get(self.limit, 0)

    def sums_below(self, code: int) -> int:
        """The sums over all levels under ``code``."""
        return sum(map(self._sums.__getitem__, compress(range(code), self._booked)))

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The booked levels in order, and their sums, one row each."""
        codes = np.flatnonzero(np.frombuffer(self._booked, dtype=np.uint8))
        sums = [self.lanes.apart(self._sums[code]) for code in codes.tolist()]
        return codes, np.array(sums, dtype=np.float64).reshape(-1, self.lanes.width)

    def rows(self) -> list[list[int]]:
        """The levels at which anything is booked: ``[code, sum, …]`` each."""
        return [[code, *self.lanes.apart(sums)] for code, sums in sorted(self._sums.items()) if sums]

    def load(self, rows: Iterable[Sequence[int]], limit: int) -> None:
        """Take over the rows and the limit of another table."""
        for code, *sums in rows:
            self.add(code, self.lanes.together(sums))
        self.limit = limit
        self.below = self.sums_below(limit)
