"""Several whole numbers side by side in one: adding two of those adds all their parts at once.

Python adds two integers of some hundred bits about as fast as two small ones, and much faster than two lists.
"""

from collections.abc import Iterable

# Bits of a lane. A level keeps sums of less than 2**62 (see ``loss_table.py``), and there are less than 2**16 levels, so
# that the sum over all of them still has room.
BITS = 80
_HALF = 1 << (BITS - 1)
_LOW = (1 << BITS) - 1


class Lanes:
    """How a list of whole numbers of either sign, each of less than 2**79, is one number.

    Parameters
    ----------
    width: how many numbers there are.

    >>> lanes = Lanes(3)
    >>> lanes.apart(lanes.together([1, -2, 3]) + lanes.together([10, 0, -30]))
    [11, -2, -27]
    """

    __slots__ = ("_bias", "_shifts", "bits", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.bits = BITS * width
        self._shifts = range(0, self.bits, BITS)
        # Makes every part positive, so that none borrows from the next one.
        self._bias = sum(_HALF << shift for shift in self._shifts)

    def together(self, numbers: Iterable[int]) -> int:
        """The numbers as one."""
        return sum(number << shift for number, shift in zip(numbers, self._shifts, strict=True))

    def apart(self, number: int) -> list[int]:
        """The numbers again."""
        positive = number + self._bias
        return [(positive >> shift & _LOW) - _HALF for shift in self._shifts]

    def last_at_most(self, most: int) -> int:
        """The least number whose last part is larger than ``most``: the last part of all smaller ones is not."""
        last = self._shifts[-1]
        # The other parts together make up less than half of the last one's unit, on either side.
        return (most << last) + (1 << last >> 1 or 1)
