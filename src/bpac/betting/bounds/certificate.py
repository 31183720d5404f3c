"""Bounds on the loss of the drafts that were served, which is never seen (MATH section 7).

1. Given the past, the query and its loss, only the coin is random. ``S`` is the sum of the losses ``l`` of the drafts
   that were served. For each rate η, ``exp(η S)`` times a factor for each audit by coin is a martingale with mean 1.
2. The same holds for ``l − g`` with any guess ``g`` that is made before the coin. The guesses of the drafts that were
   served are known, so that only the sum of the rest is bounded. Then audits *without* loss count, too: they show that
   the guess was too high. The guess is a constant here. Guesses by score, learned from all audits, are no better,
   because losses of drafts that are accepted are rare whatever their score (``bpac reproduce certificate``).
3. No rate is the best for all lengths of a stream. A mixture of martingales is a martingale, and nearly as good as its
   best part: many rates near the best one for some ten losses seen, and a few small ones for streams without end.
4. How much better could it be? With losses of 0 or 1, a factor is given by its values for a kept draft with and without
   loss, which are a rate and a guess. A mixture is never above its best part, so no choice of weights gives a bound
   below that of the best rate, which is known in hindsight only (``best_upper``). It is shown beside the bound.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

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


@dataclass(frozen=True, slots=True)
class Certificate:
    """Bounds on the loss served so far, valid at all times at once.

    Parameters
    ----------
    rounds: queries answered so far.
    lower, upper: bounds on the sum of the losses of the drafts that were served.
    confidence: each of the two bounds holds at all times with at least this probability.
    """

    rounds: int
    lower: float
    upper: float
    confidence: float

    @property
    def average_upper(self) -> float:
        """The average loss over all rounds is at most this."""
        return self.upper / self.rounds if self.rounds else 0.0

    @property
    def average_lower(self) -> float:
        """The average loss over all rounds is at least this."""
        return self.lower / self.rounds if self.rounds else 0.0

    def __str__(self) -> str:
        return (
            f"served loss ≤ {self.average_upper:.2%} with {self.confidence:.0%} confidence after {self.rounds} rounds"
        )


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


class _Upper(_Mixture):
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


class _Lower(_Mixture):
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


class ServedLoss:
    """Follows the audits of a route and bounds the loss of the drafts it served.

    Given the past, the query and its loss, only the coin is random. So the bounds hold on any
    stream, drifting and hostile ones included.

    Parameters
    ----------
    terms: the terms of the bets; without exploration only trivial bounds exist.
    alpha: chance of failure of each bound.
    kind: ``plain``: four rates and no guess (MATH section 7), or ``sharp``: more rates, and a guess of 2ε.
    """

    __slots__ = (
        "_alpha",
        "_guess",
        "_log_bar",
        "_lower",
        "_solved_lower",
        "_solved_upper",
        "_uncovered",
        "_upper",
        "kept",
    )

    def __init__(self, terms: Terms, alpha: float, kind: CertificateKind = "plain") -> None:
        self._alpha = alpha
        self._log_bar = -math.log(alpha)
        mixture = RATE_MIXTURES[kind]
        self._guess = min(mixture.guess * terms.epsilon, LARGEST_GUESS)
        # Drafts served because the coin did not call the expert; the route counts them.
        self.kept = 0
        explores = terms.floor > 0.0
        self._upper = _Upper(terms, mixture, self._guess, sign=1) if explores else None
        self._lower = _Lower(terms, mixture, self._guess, sign=-1) if explores else None
        self._uncovered = 0.0
        # The bounds before uncovered losses, until something changes them.
        self._solved_upper: float | None = None
        self._solved_lower: float | None = None

    def served_instead(self, loss: float = 1.0) -> None:
        """A draft was served in place of an expert that failed or refused: no coin covers it, so it counts in full."""
        self._uncovered += loss

    def audited(self, propensity: float) -> None:
        """Book an audit by coin, before its outcome is known; what it loses is booked on top of it."""
        if self._guess and self._upper and self._lower:  # without a guess an audit without loss changes nothing
            self._upper.audited(propensity)
            self._lower.audited(propensity)
            self._solved_upper = self._solved_lower = None

    def resolve(self, decision: Round, loss: float) -> None:
        """Book the loss of an audit that was not charged."""
        # Without a coin, or without a loss, nothing changes.
        if self._upper and self._lower and loss > 0.0 and decision.propensity < 1.0:
            self._upper.resolve(decision, loss)
            self._lower.resolve(decision, loss)
            self._solved_upper = self._solved_lower = None

    def charge(self, decision: Round) -> None:
        """Count an unresolved audit as loss 1 for the upper bound."""
        if self._upper and decision.propensity < 1.0:
            self._upper.charge(decision)
            self._solved_upper = None

    def refund(self, decision: Round, loss: float) -> None:
        """Replace the charge by the true loss."""
        if self._upper and self._lower and decision.propensity < 1.0:
            self._upper.refund(decision, loss)
            self._lower.refund(decision, loss)
            self._solved_upper = self._solved_lower = None

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Book the loss of the other round instead of the charge."""
        if charged:
            self.refund(decision, loss)
        else:
            self.resolve(decision, loss)

    def decided(self, decision: Round) -> None:
        """Nothing: only audits carry information."""

    def forfeit(self, decision: Round) -> None:
        """Leave the charge where it is."""

    def upper(self) -> float:
        """An upper bound on the loss served so far, and on what this round's coin may add to it."""
        if self._solved_upper is None:
            self._solved_upper = self._upper.bound(self._log_bar) if self._upper else math.inf
        return self._solved_upper + self._guess * self.kept + self._uncovered

    def upper_after(self, audits: int, propensity: float) -> float:
        """What the upper bound would be after so many more audits by coin without an outcome.

        Parameters
        ----------
        audits: how many.
        propensity: the least with which any of them was made.
        """
        solved = self._upper.bound_after(audits, propensity, self._log_bar) if self._upper else math.inf
        return solved + self._guess * self.kept + self._uncovered

    def certificate(self, rounds: int, kept: int) -> Certificate:
        """Both bounds as a value.

        Parameters
        ----------
        rounds: queries answered so far.
        kept: drafts served so far because the coin did not call the expert.
        """
        self.kept = kept
        upper = self.upper()
        if self._solved_lower is None:
            self._solved_lower = self._lower.bound(self._log_bar) if self._lower else -math.inf
        return Certificate(
            rounds=rounds,
            lower=max(0.0, self._solved_lower + self._guess * kept),
            upper=min(upper, kept + self._uncovered),
            confidence=1.0 - self._alpha,
        )

    def best_upper(self, kept: int) -> float:
        """What the upper bound would be if the best of its rates had been known before the first round.

        It is no bound, because it is known afterwards only; but no weights of the rates give a bound below it.

        Parameters
        ----------
        kept: drafts served so far because the coin did not call the expert.
        """
        best = self._upper.best(self._log_bar) + self._guess * kept if self._upper else math.inf
        return min(best, kept) + self._uncovered

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {
            "uncovered": self._uncovered,
            "upper": self._upper.logs if self._upper else None,
            "lower": self._lower.logs if self._lower else None,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._uncovered = state["uncovered"]
        if self._upper and self._lower:
            self._upper.logs, self._lower.logs = list(state["upper"]), list(state["lower"])
        self._solved_upper = self._solved_lower = None


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
