"""Mixtures of martingales, each with a rate of its own, and the bounds that follow from them (MATH section 7)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from bpac.betting.ledgers.ledger import Ledger, Round
from bpac.betting.payoff import LOG_UNIT, Terms, log_units

CertificateKind = Literal["plain", "sharp"]


@dataclass(frozen=True, slots=True)
class RateMixture:
    """The rates η of a mixture, and the guess.

    Parameters
    ----------
    shares: the rates, as shares of the largest that keeps every factor positive.
    weights: of the rates; they sum to 1.
    guess: the guess of each loss, in multiples of ε.
    """

    shares: tuple[float, ...]
    weights: tuple[float, ...]
    guess: float = 0.0

    def rates(self, floor: float) -> tuple[float, ...]:
        """The rates, given the least probability of an audit."""
        largest = -math.log1p(-floor)
        return tuple(share * largest for share in self.shares)

    def log_weights(self) -> tuple[float, ...]:
        """Logarithms of the weights relative to equal ones, which are those of a mean."""
        return tuple(math.log(len(self.weights) * weight) for weight in self.weights)


def _sharp(count: int = 12, least: float = 0.01, most: float = 0.97) -> RateMixture:
    """Rates in equal proportions, with weights like a bell around 0.5, and a tenth of the weight for all alike.

    Centre, width and guess have the least excess over the actual loss on the built-in tables at half, once and four
    times their length, among those that are not worse than a wider bell at any of them.
    """
    shares = tuple(least * (most / least) ** (k / (count - 1)) for k in range(count))
    bell = [math.exp(-0.5 * (math.log(share / 0.5) / 0.3) ** 2) for share in shares]
    return RateMixture(shares, tuple(0.9 * one / math.fsum(bell) + 0.1 / count for one in bell), guess=2.0)


RATE_MIXTURES: dict[CertificateKind, RateMixture] = {
    "plain": RateMixture((0.1, 0.3, 0.6, 0.9), (0.25,) * 4),
    "sharp": _sharp(),
}
# A guess must leave room for losses above it.
LARGEST_GUESS = 0.5


class _Mixture(Ledger):
    """Log-factors of the losses of audits by coin, for each rate of the mixture.

    ``sign`` is +1 for the martingale that bounds the served loss from above, −1 from below.
    """

    __slots__ = ("_changes", "_guess", "_rates", "_shadow", "_sign", "_weights", "logs")

    def __init__(self, terms: Terms, mixture: RateMixture, guess: float, *, sign: int) -> None:
        self._rates = mixture.rates(terms.floor)
        self._weights = mixture.log_weights()
        self._guess = guess
        self._shadow = terms.shadow
        self._sign = sign
        self.logs = [0] * len(self._rates)
        # Most losses are 0 or 1, and propensities take few values.
        self._changes = lru_cache(maxsize=64)(self._compute_changes)

    def audited(self, propensity: float) -> None:
        """Book an audit as if it were without loss."""
        self.logs = [log + unit for log, unit in zip(self.logs, self._changes(propensity, 0.0), strict=True)]

    def add(self, decision: Round, loss: float) -> None:
        """Book the loss of an audit."""
        changes = self._changes(decision.propensity, loss)
        self.logs = [log + unit for log, unit in zip(self.logs, changes, strict=True)]

    def remove(self, decision: Round, loss: float) -> None:
        """Take a booked loss out again."""
        changes = self._changes(decision.propensity, loss)
        self.logs = [log - unit for log, unit in zip(self.logs, changes, strict=True)]

    def _compute_changes(self, propensity: float, loss: float) -> list[int]:
        """The log-factors of an audit without loss, or the difference that a loss makes to them."""
        units = self._units(propensity, loss)
        if not loss or not self._guess:  # without a guess, an audit without loss has not been booked
            return units
        return [unit - base for unit, base in zip(units, self._units(propensity, 0.0), strict=True)]

    def _units(self, propensity: float, loss: float) -> list[int]:
        kept = 1.0 - propensity
        tilts = [math.exp(self._sign * rate * (loss - self._guess)) for rate in self._rates]
        # With shadow audits the audited draft was served as well, hence the other form.
        return [
            log_units(((1.0 / tilt - kept) if self._shadow else (1.0 - kept * tilt)) / propensity) for tilt in tilts
        ]

    def _log_terms(self) -> list[float]:
        return [log / LOG_UNIT + weight for log, weight in zip(self.logs, self._weights, strict=True)]


class UpperBound(_Mixture):
    """Audits that are not resolved count as loss 1, which is the careful guess for an upper bound."""

    __slots__ = ()

    def bound(self, log_bar: float) -> float:
        """Solve ``mean exp(η S + a) = bar`` for S, without the guesses."""
        return upper_root(self._rates, self._log_terms(), log_bar)

    def bound_after(self, audits: int, propensity: float, log_bar: float) -> float:
        """The same after so many more audits with this propensity and without an outcome."""
        known = self.logs
        units = self._units(propensity, 1.0)
        self.logs = [log + audits * unit for log, unit in zip(known, units, strict=True)]
        try:
            return self.bound(log_bar)
        finally:
            self.logs = known

    def best(self, log_bar: float) -> float:
        """The least bound that one of the rates alone gives."""
        return min((log_bar - log / LOG_UNIT) / rate for rate, log in zip(self._rates, self.logs, strict=True))


class LowerBound(_Mixture):
    """Audits that are not resolved count as loss 0: for a lower bound that is the careful guess."""

    __slots__ = ()

    def charge(self, decision: Round) -> None:
        """Book nothing."""

    def refund(self, decision: Round, loss: float) -> None:
        """Book the loss; there is no charge to take out."""
        self.resolve(decision, loss)

    def bound(self, log_bar: float) -> float:
        """Solve ``mean exp(−η S + a) = bar`` for S, without the guesses."""
        logs = self._log_terms()
        count = math.log(len(logs))
        start = max((log - log_bar - count) / rate for rate, log in zip(self._rates, logs, strict=True))
        # As above, from below.
        return mixture_root(start, [-rate for rate in self._rates], logs, log_bar)


def upper_root(rates: Sequence[float], logs: Sequence[float], log_bar: float) -> float:
    """Solve ``log mean exp(rate · x + log) = log_bar`` for positive rates."""
    count = math.log(len(logs))
    start = min((log_bar + count - log) / rate for rate, log in zip(rates, logs, strict=True))
    # Newton's method on a convex function comes from above and never goes below the root.
    return mixture_root(start, rates, logs, log_bar)


def mixture_root(start: float, slopes: Sequence[float], logs: Sequence[float], log_bar: float) -> float:
    """Solve ``log mean exp(slope · x + log) = log_bar`` from a point on the convex side of the root."""
    x, step = start, math.inf
    # Written so that the loop also ends if ``step`` is NaN.
    while abs(step) > 1e-12 * (1.0 + abs(x)):
        values = [slope * x + log for slope, log in zip(slopes, logs, strict=True)]
        most = max(values)
        weights = [math.exp(value - most) for value in values]
        total = sum(weights)
        gap = most + math.log(total / len(weights)) - log_bar
        slope = sum(w * s for w, s in zip(weights, slopes, strict=True)) / total
        step = gap / slope
        x -= step
    return x
