"""Sums booked at score levels, with one movable limit and the sums of everything below it."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

# A level that has lost this much is dead: no threshold above it passes again. This keeps every sum
# within 64 bits for ever, and errs on the careful side.
DEAD = -(1 << 61)

Test = Callable[[Sequence[int]], bool]


class LossTable:
    """Whole-number sums at score levels, in order, and a limit that moves among them.

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

    __slots__ = ("below", "codes", "columns", "limit", "top")

    def __init__(self, width: int, top: int) -> None:
        self.codes = array("H")
        self.columns = tuple(array("q") for _ in range(width))
        self.top = top
        self.limit = 0
        self.below = [0] * width

    def add(self, code: int, amounts: Sequence[int]) -> None:
        """Book ``amounts`` at a level; its negative takes them out again."""
        index = bisect_left(self.codes, code)
        if index == len(self.codes) or self.codes[index] != code:
            self.codes.insert(index, code)
            for column in self.columns:
                column.insert(index, 0)
        counted = code < self.limit
        for k, column in enumerate(self.columns):
            was = column[index]
            now = was + amounts[k]
            if was <= DEAD or now < DEAD:
                now = DEAD
            column[index] = now
            if counted:
                self.below[k] += now - was

    def climb(self, passes: Test) -> None:
        """Raise the limit while the next stretch above it passes the test."""
        index = bisect_left(self.codes, self.limit)
        while self.limit < self.top:
            booked = index < len(self.codes) and self.codes[index] == self.limit
            sums = [b + c[index] for b, c in zip(self.below, self.columns, strict=True)] if booked else self.below
            if not passes(sums):
                return
            index += booked
            self.below = list(sums)
            # A loss at score 1 lies above every threshold.
            self.limit = min(self.codes[index], self.top) if index < len(self.codes) else self.top

    def fall(self, passes: Test) -> None:
        """Lower the limit until the stretch just under it passes the test, or to 0."""
        index = bisect_left(self.codes, self.limit)
        while self.limit and not passes(self.below):
            index -= 1
            if index < 0:
                self.limit = 0
                return
            self.limit = self.codes[index]
            self.below = [b - c[index] for b, c in zip(self.below, self.columns, strict=True)]

    def sums_below(self, code: int) -> list[int]:
        """The sums over all levels under ``code``."""
        index = bisect_left(self.codes, code)
        return [sum(column[:index]) for column in self.columns]

    def rows(self) -> list[list[int]]:
        """The levels at which anything is booked: ``[code, sum, …]`` each."""
        return [[code, *sums] for code, *sums in zip(self.codes, *self.columns, strict=True) if any(sums)]

    def load(self, rows: Iterable[Sequence[int]], limit: int) -> None:
        """Take over the rows and the limit of another table."""
        for code, *sums in rows:
            self.add(code, sums)
        self.limit = limit
        self.below = self.sums_below(limit)
