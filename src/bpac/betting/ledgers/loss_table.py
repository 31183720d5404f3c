"""Sums booked at score levels, with one movable limit and the sums of everything below it."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from operator import add as plus
from operator import sub as minus

import numpy as np
from numpy.typing import NDArray

# A level whose sum falls to this is dead: no threshold above it passes again. So every sum stays within
# 64 bits, and rounding of this kind can only lower a threshold.
DEAD = -(1 << 61)

Test = Callable[[Sequence[int]], bool]


class LossTable:
    """Whole-number sums at score levels, and a limit that moves among them.

    ``below`` holds the sums over all levels under ``limit``. The sums seen by a threshold are
    constant between two booked levels, so a limit only ever rests on a booked level or on the top.

    Parameters
    ----------
    width: how many sums each level has.
    top: code of the highest threshold.

    >>> table = LossTable(width=1, top=1000)
    >>> table.add(300, [5]); table.add(100, [2])
    >>> table.climb(lambda sums: sums[0] <= 4)      # the largest limit whose sum below is at most 4
    >>> table.limit, table.below
    (300, [2])
    """

    __slots__ = ("_booked", "_places", "_sums", "_width", "below", "limit", "top")

    def __init__(self, width: int, top: int) -> None:
        self._width = width
        self.top = top
        # Which levels are booked, to find neighbours fast; where the sums of each level begin, in
        # units of ``width``; and the sums, in the order in which levels were first booked. The
        # first place belongs to no level, so that 0 means "not booked".
        self._booked = bytearray(top + 1)
        self._places = array("H", bytes(2 * (top + 1)))
        self._sums = array("q", bytes(8 * width))
        self.limit = 0
        self.below = [0] * width

    def add(self, code: int, amounts: Sequence[int]) -> None:
        """Book ``amounts`` at a level; their negatives take them out again.

        Of amounts below 0 the last must be the lowest: it alone is watched for the level's death.
        """
        sums, width = self._sums, self._width
        place = self._places[code]
        if not place:
            self._places[code] = len(sums) // width
            self._booked[code] = 1
            sums.extend(amounts)
            last = len(sums) - 1
        else:
            index = place * width
            last = index + width - 1
            if sums[last] <= DEAD:
                return
            for amount in amounts:
                sums[index] += amount
                index += 1
        if sums[last] <= DEAD:
            sums[last - width + 1 : last + 1] = array("q", [DEAD] * width)
            self.below = self.sums_below(self.limit)
        elif code < self.limit:
            self.below = list(map(plus, self.below, amounts))

    def widen(self, by: int) -> None:
        """Give every level that many further sums, all 0."""
        rows = np.array(self._sums, dtype=np.int64).reshape(-1, self._width)
        self._sums = array("q", np.pad(rows, ((0, 0), (0, by))).tobytes())
        self._width += by
        self.below = [*self.below, *[0] * by]

    def climb(self, passes: Test) -> None:
        """Raise the limit while the next stretch above it passes the test."""
        while self.limit < self.top:
            place = self._places[self.limit]
            sums = list(map(plus, self.below, self._at(place))) if place else self.below
            if not passes(sums):
                return
            self.below = sums
            above = self._booked.find(1, self.limit + 1)
            self.limit = above if above >= 0 else self.top

    def fall(self, passes: Test) -> None:
        """Lower the limit until the stretch just under it passes the test, or to 0."""
        while self.limit and not passes(self.below):
            self.limit = max(self._booked.rfind(1, 0, self.limit), 0)
            place = self._places[self.limit]
            if place:
                self.below = list(map(minus, self.below, self._at(place)))

    def sums_below(self, code: int) -> list[int]:
        """The sums over all levels under ``code``."""
        total = [0] * self._width
        for level in compress(range(code), self._booked):
            total = list(map(plus, total, self._at(self._places[level])))
        return total

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The booked levels in order, and their sums, one row each."""
        codes = np.flatnonzero(np.frombuffer(self._booked, dtype=np.uint8))
        places = np.array(self._places, dtype=np.int64)[codes]
        return codes, np.array(self._sums, dtype=np.int64).reshape(-1, self._width)[places]

    def rows(self) -> list[list[int]]:
        """The levels at which anything is booked: ``[code, sum, …]`` each."""
        codes, sums = self.arrays()
        rows = np.column_stack((codes, sums))[sums.any(axis=1)]
        plain: list[list[int]] = rows.tolist()
        return plain

    def load(self, rows: Iterable[Sequence[int]], limit: int) -> None:
        """Take over the rows and the limit of another table."""
        for code, *sums in rows:
            self.add(code, sums)
        self.limit = limit
        self.below = self.sums_below(limit)

    def _at(self, place: int) -> Sequence[int]:
        return self._sums[place * self._width : (place + 1) * self._width]
