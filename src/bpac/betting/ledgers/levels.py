"""Score levels: the finite set of scores at which losses are kept and thresholds may lie.

A loss is booked at the largest level that is not above its score. It then counts for at least the
thresholds it should count for, which can only lower wealth, so rounding never costs the promise.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bpac.arguments import closed_fraction, keep, some, whole
from bpac.errors import SettingsError

# Levels are numbered from 1 in two bytes each (see ``LossTable``).
MOST_LEVELS = (1 << 16) - 1


class Levels(Protocol):
    """A finite, increasing set of scores from 0 to 1, numbered from code 0 to code ``top``."""

    @property
    def top(self) -> int:
        """The code of score 1."""

    def code(self, score: float) -> int:
        """The number of the largest level that is not above ``score``."""

    def value(self, code: int) -> float:
        """The score of a level."""


@dataclass(frozen=True, slots=True)
class RelativeLevels:
    """Levels a fixed *relative* distance apart, because real confidences crowd near 0.

    Parameters
    ----------
    bits: leading mantissa bits that are kept, the first one included.
    octaves: scores below ``2**-octaves`` fall to level 0.

    >>> levels = RelativeLevels()
    >>> levels.value(levels.code(0.3)) <= 0.3 <= 1.001 * levels.value(levels.code(0.3))
    True
    >>> levels.value(levels.top)
    1.0
    """

    bits: int = 11
    octaves: int = 40
    _half: int = field(init=False, repr=False, compare=False)
    _double: int = field(init=False, repr=False, compare=False)
    _offset: int = field(init=False, repr=False, compare=False)
    _least: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole(self.bits, "bits", 1, 16)
        whole(self.octaves, "octaves", 1, 1000)
        half = 1 << (self.bits - 1)
        keep(self, _half=half, _double=2 * half, _offset=1 + (self.octaves - 2) * half)
        keep(self, _least=math.ldexp(1.0, -self.octaves))
        if self.top >= MOST_LEVELS:
            raise SettingsError(
                f"{self.top + 1} levels are too many (at most {MOST_LEVELS}): take fewer bits or octaves"
            )

    @property
    def top(self) -> int:
        """The code of score 1."""
        return 1 + self.octaves * self._half

    def code(self, score: float) -> int:
        """The number of the largest level that is not above ``score``."""
        if score < self._least:
            return 0
        mantissa, exponent = math.frexp(score)
        return int(mantissa * self._double) + exponent * self._half + self._offset

    def codes(self, scores: Sequence[float]) -> NDArray[np.int64]:
        """The codes of many scores at once."""
        # The leading bits of a double, exponent and mantissa, are its level already, but for where they start.
        leading: NDArray[np.int64] = np.array(scores, dtype=np.float64).view(np.int64) >> (53 - self.bits)
        codes: NDArray[np.int64] = np.maximum(leading - ((1023 - self.octaves) * self._half - 1), 0)
        return codes

    def value(self, code: int) -> float:
        """The score of a level."""
        if not code:
            return 0.0
        octave, step = divmod(code - 1, self._half)
        return math.ldexp(self._half + step, octave - self.octaves + 1 - self.bits)


@dataclass(frozen=True, slots=True)
class EvenLevels:
    """The paper's grid: ``count`` evenly spaced levels from 0 to 1.

    >>> EvenLevels(1001).code(0.0425)
    42
    """

    count: int = 1001

    def __post_init__(self) -> None:
        whole(self.count, "count", 2, MOST_LEVELS)

    @property
    def top(self) -> int:
        """The code of score 1."""
        return self.count - 1

    def code(self, score: float) -> int:
        """The number of the largest level that is not above ``score``."""
        code = int(score * self.top)
        # The product is rounded and may land on the wrong side of a level; the comparison decides.
        if code < self.top and (code + 1) / self.top <= score:
            return code + 1
        return code - 1 if code / self.top > score else code

    def value(self, code: int) -> float:
        """The score of a level."""
        return code / self.top


@dataclass(frozen=True, slots=True)
class ListedLevels:
    """Levels at thresholds the user lists; 0 and 1 are added where missing.

    >>> levels = ListedLevels((0.1, 0.5))
    >>> [levels.value(levels.code(score)) for score in (0.05, 0.1, 0.7, 1.0)]
    [0.0, 0.1, 0.5, 1.0]
    """

    thresholds: tuple[float, ...]
    _values: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        thresholds = some(self.thresholds, "thresholds", "threshold", closed_fraction)
        values = tuple(sorted({*thresholds, 0.0, 1.0}))
        whole(len(values), "the number of thresholds", 2, MOST_LEVELS)
        keep(self, thresholds=thresholds, _values=values)

    @property
    def top(self) -> int:
        """The code of score 1."""
        return len(self._values) - 1

    def code(self, score: float) -> int:
        """The number of the largest level that is not above ``score``."""
        return bisect_right(self._values, score) - 1

    def value(self, code: int) -> float:
        """The score of a level."""
        return self._values[code]
