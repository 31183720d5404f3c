"""Bounds on a sum of values of any size, each seen only with a known probability (MATH section 11)."""

import math
from dataclasses import dataclass, field

from bpac.betting.bounds.mixtures import mixture_root
from bpac.betting.payoff import LOG_UNIT

# The rates of the mixture, per unit of value: one of them is within a factor of 2 of the best for any sum between a few
# units and some 10^15.
RATES = tuple(4.0**-power for power in range(2, 14))
# Of the largest rate that keeps every factor positive.
LARGEST_SHARE = 0.9
# The estimate is kept in whole multiples of this, like logarithms: sums of integers do not depend on the order.
UNIT = 1 << 20


def _zeros() -> list[int]:
    return [0] * len(RATES)


@dataclass(slots=True)
class UnseenSum:
    """Bounds the sum of the values that were not seen, at all times at once. A coin in each round decides what is seen.

    Only the coin is random; the values may be anything that does not depend on it. The lower
    bound holds for values of any size. The upper bound holds *if no value is larger than* ``ceiling``.

    Parameters
    ----------
    missed: rounds whose value was not seen.
    unknown: rounds whose value was to be seen, and is not known (yet).
    largest: the largest value seen so far, in any round.
    least: the smallest probability in any round so far.
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
        """Count a coin flip; if it decides to look, ``see`` must follow with the value.

        Parameters
        ----------
        propensity: probability of looking (π).
        looks: whether the value is looked at.
        """
        if propensity < 1.0:
            self.least = min(self.least, propensity)
            if looks:
                self.unknown += 1
            else:
                self.missed += 1

    def see(self, propensity: float, value: float, *, exact: bool = True) -> None:
        """Count the value of a round in which the coin decided to look.

        Parameters
        ----------
        propensity: probability of looking (π).
        value: the value, or less than it.
        exact: whether it is all of the value. If not, the upper bound treats the value as unknown.
        """
        self.largest = max(self.largest, value)
        if propensity == 1.0:
            return
        self.unknown -= exact
        if not value:
            return
        odds = (1.0 - propensity) / propensity
        self.units += math.floor(value * odds * UNIT)
        log1p, expm1, floor = math.log1p, math.expm1, math.floor
        for at, rate in enumerate(RATES):
            tilt = expm1(-rate * value)
            self.below[at] += floor(log1p(-odds * tilt) * LOG_UNIT)
            # e^x − 1 from e^−x − 1. A rate that is too large for this value is of no use from now on, see ``_usable``.
            gap = odds * (tilt / (1.0 + tilt) if tilt > -1.0 else -math.inf)
            if exact and gap > -1.0:
                self.above[at] += floor(log1p(gap) * LOG_UNIT)

    @property
    def estimate(self) -> float:
        """An unbiased estimate of the sum: each value seen counts for (1 − π)/π values that were not seen."""
        return self.units / UNIT

    @property
    def ceiling(self) -> float:
        """What ``at_most`` assumes: no value, seen or unseen, is larger; infinite if there is no upper bound."""
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
        # A value that is not known counts as the largest possible one, in the round with the smallest probability.
        odds = (1.0 - self.least) / self.least
        logs = [
            log / LOG_UNIT + self.unknown * math.log1p(-odds * math.expm1(rate * most))
            for rate, log in zip(rates, self.above[usable:], strict=True)
        ]
        # Rates that cannot be used keep their share of α, because the data decided which they are.
        log_bar = math.log(len(RATES) / len(rates)) - math.log(alpha)
        start = min((log_bar + math.log(len(rates)) - log) / rate for rate, log in zip(rates, logs, strict=True))
        return min(mixture_root(start, rates, logs, log_bar), self.missed * most)

    def _usable(self) -> int:
        """The first rate that is small enough for every value and every probability so far; all later ones are, too.

        A ceiling follows from each rate, and that of the first is chosen. Choosing it after the fact is allowed: if no
        value exceeds some ceiling, the martingales of all rates that allow for it hold, and a claim with a higher
        ceiling uses only part of them. Before a value was seen there is nothing to choose a ceiling by.
        """
        if not 0.0 < self.least < 1.0 or not self.largest:
            return len(RATES)
        limit = LARGEST_SHARE * -math.log1p(-self.least)
        return next((at for at, rate in enumerate(RATES) if rate * self.largest <= limit), len(RATES))
