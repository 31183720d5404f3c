"""What was not looked at (MATH section 11): bounds on a sum of values of any size, each seen only if a coin says so."""

import math
from dataclasses import dataclass, field

from bpac.betting.bounds.certificate import mixture_root
from bpac.betting.payoff import LOG_UNIT

# The rates of the mixture, per unit of value: one of them is within a factor of 2 of the best for any sum between a few
# units and some 10^15.
RATES = tuple(4.0**-power for power in range(2, 14))
# Of the largest rate that keeps every factor positive.
LARGEST_SHARE = 0.9
# The estimate is kept in whole multiples of this, like logarithms: sums of whole numbers know no order.
UNIT = 1 << 20


def _zeros() -> list[int]:
    return [0] * len(RATES)


@dataclass(slots=True)
class UnseenSum:
    """Follows a coin in each round, and bounds the sum of the values it left unseen, at all times at once.

    Only the coin is random; the values may be anything that does not depend on it. From below they may even be of any
    size. From above nothing can be said about values of any size, only *if none is larger than* ``ceiling``.

    Parameters
    ----------
    missed: rounds whose value was left unseen.
    unknown: rounds whose value was to be seen, and is not known (yet).
    largest: value seen so far, whatever its round's probability.
    least: probability in any round so far.
    units: the estimate, in multiples of 2^-20.
    below, above: logarithms of the factors of the two martingales, one for each rate, in log units.

    >>> unseen = UnseenSum()
    >>> for value in [300] * 40:
    ...     unseen.flip(0.5, looks=True)
    ...     unseen.see(0.5, value)
    ...     unseen.flip(0.5, looks=False)
    >>> unseen.estimate
    12000.0
    >>> unseen.at_least(0.05) < 12000.0 < unseen.at_most(0.05)
    True
    """

    missed: int = 0
    unknown: int = 0
    largest: float = 0
    least: float = 1.0
    units: int = 0
    below: list[int] = field(default_factory=_zeros)
    above: list[int] = field(default_factory=_zeros)

    def flip(self, propensity: float, *, looks: bool) -> None:
        """A coin was flipped; if it says to look, the value is still to come.

        Parameters
        ----------
        propensity: probability of looking (π).
        looks: what the coin says.
        """
        if propensity < 1.0:
            self.least = min(self.least, propensity)
            if looks:
                self.unknown += 1
            else:
                self.missed += 1

    def see(self, propensity: float, value: float) -> None:
        """The value of a round in which the coin said to look is known."""
        self.largest = max(self.largest, value)
        if propensity == 1.0:
            return
        self.unknown -= 1
        odds = (1.0 - propensity) / propensity
        self.units += math.floor(value * odds * UNIT)
        log1p, expm1, floor = math.log1p, math.expm1, math.floor
        for at, rate in enumerate(RATES):
            tilt = expm1(-rate * value)
            self.below[at] += floor(log1p(-odds * tilt) * LOG_UNIT)
            # e^x − 1 from e^−x − 1. A rate that is too large for this value is of no use from now on, see ``_usable``.
            gap = odds * (tilt / (1.0 + tilt) if tilt > -1.0 else -math.inf)
            if gap > -1.0:
                self.above[at] += floor(log1p(gap) * LOG_UNIT)

    @property
    def estimate(self) -> float:
        """An unbiased estimate of the sum: each value seen stands for (1 − π)/π that were not."""
        return self.units / UNIT

    @property
    def ceiling(self) -> float:
        """What ``at_most`` takes for granted: no value, seen or unseen, is larger; infinite if it can say nothing."""
        usable = self._usable()
        return LARGEST_SHARE * -math.log1p(-self.least) / RATES[usable] if usable < len(RATES) else math.inf

    def at_least(self, alpha: float) -> float:
        """The sum is at least this, at all times with probability at least 1 − α."""
        if not self.missed:
            return 0.0
        log_bar, count = -math.log(alpha), math.log(len(RATES))
        logs = [log / LOG_UNIT for log in self.below]
        start = max((log - log_bar - count) / rate for rate, log in zip(RATES, logs, strict=True))
        return max(0.0, mixture_root(start, [-rate for rate in RATES], logs, log_bar))

    def at_most(self, alpha: float) -> float:
        """The sum is at most this, at all times with probability at least 1 − α, if no value exceeds ``ceiling``."""
        if not self.missed:
            return 0.0
        usable = self._usable()
        if usable == len(RATES):
            return math.inf
        rates, most = RATES[usable:], self.ceiling
        # What is not known counts as the largest there can be, in the least likely round there was.
        odds = (1.0 - self.least) / self.least
        logs = [
            log / LOG_UNIT + self.unknown * math.log1p(-odds * math.expm1(rate * most))
            for rate, log in zip(rates, self.above[usable:], strict=True)
        ]
        # Rates that cannot be used have their share of α all the same: which they are was learnt on the way.
        log_bar = math.log(len(RATES) / len(rates)) - math.log(alpha)
        start = min((log_bar + math.log(len(rates)) - log) / rate for rate, log in zip(rates, logs, strict=True))
        return min(mixture_root(start, rates, logs, log_bar), self.missed * most)

    def _usable(self) -> int:
        """The first rate that is small enough for every value and every probability so far; all later ones are, too.

        A ceiling follows from each, and the one that follows from the first is chosen. That is no peeking: where no
        value exceeds some ceiling, the martingales of all rates that allow for it hold, and claims with a higher
        ceiling use only part of them. Before a value was seen no ceiling can be guessed.
        """
        if not 0.0 < self.least < 1.0 or not self.largest:
            return len(RATES)
        limit = LARGEST_SHARE * -math.log1p(-self.least)
        return next((at for at, rate in enumerate(RATES) if rate * self.largest <= limit), len(RATES))
