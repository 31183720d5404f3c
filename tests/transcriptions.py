"""Slow, obvious transcriptions of the specification (MATH), against which the fast code is compared."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
EQUAL_SHARES = dict.fromkeys((0.1, 0.3, 0.6, 0.9), 0.25)
FOUR_FRACTIONS = (0.1125, 0.3375, 0.5625, 0.7875)  # 0.9 (k + ½) / 4
# With them, the stakes at the exploration floor that were the default before ``DEFAULT_STAKES``.
FLOOR_FRACTIONS = (0.45, 0.9, 0.9, 0.9)


class Row(NamedTuple):
    """One query of a stream, with the uniform draw that decides about exploration."""

    uncertainty: float
    loss: float
    coin: float


class Step(NamedTuple):
    """The results of a transcription for one step."""

    threshold_before: float
    propensity: float
    least_propensity: float
    call_expert: bool
    threshold_after: float
    epoch: int


class Transcription(Protocol):
    """A bettor whose outcomes are known at once."""

    threshold: float

    def settle(self, uncertainty: float, propensity: float, least_propensity: float, loss: float) -> None:
        """Apply a round; the loss of a draft that was kept is 0."""


class PaperTranscription:
    """Section 2 on all grid points; ``fixed_bet`` and ``prior`` select its variants."""

    def __init__(
        self,
        epsilon: float,
        alpha: float,
        kept_share: float,
        *,
        points: int = 1001,
        fixed_bet: float | None = None,
        prior: Sequence[float] | None = None,
    ) -> None:
        self.epsilon, self.kept_share, self.fixed_bet = epsilon, kept_share, fixed_bet
        self.grid: Vector = np.arange(points) / (points - 1)
        self.log_wealth: Vector = np.zeros(points)
        self.payoffs: Vector = np.zeros(points)
        self.squares: Vector = np.zeros(points)
        self.prior = None if prior is None else np.array(prior) / np.sum(prior)
        self.alpha = alpha
        self.threshold = 0.0

    def settle(self, uncertainty: float, propensity: float, least_propensity: float, loss: float) -> None:
        """Bet, pay, and look for the threshold."""
        payoff = self.epsilon - self.kept_share * (loss / propensity) * (uncertainty < self.grid)
        bound = max(self.epsilon, self.kept_share / least_propensity - self.epsilon)
        bets = np.clip(self.payoffs / (self.squares + 1.0), 0.0, 0.9 / bound)
        if self.fixed_bet is not None:
            bets = np.full(len(self.grid), self.fixed_bet)
        self.log_wealth += np.log(1.0 + bets * payoff)
        self.payoffs += payoff
        self.squares += payoff**2
        if self.prior is None:
            safe = np.logical_and.accumulate(self.log_wealth >= math.log(1.0 / self.alpha))
        else:
            safe = self.log_wealth >= np.log(1.0 / (self.alpha * self.prior))
        self.threshold = float(self.grid[safe].max()) if safe.any() else 0.0


def rounded_down(score: float, bits: int = 11, octaves: int = 40) -> float:
    """The leading mantissa bits of a score; 0 below ``2**-octaves``."""
    if score < 2.0**-octaves:
        return 0.0
    mantissa, exponent = math.frexp(score)
    return math.ldexp(math.floor(math.ldexp(mantissa, bits)), exponent - bits)


class PortfolioTranscription:
    """Sections 3 and 4 on all thresholds at which wealth may change: the given scores, rounded down, and 1."""

    def __init__(
        self,
        epsilon: float,
        alpha: float,
        kept_share: float,
        scores: Iterable[float],
        *,
        latched: bool = False,
        round_down: Callable[[float], float] = rounded_down,
        constant_bound: float | None = None,
        fractions: Sequence[float] = FOUR_FRACTIONS,
        floor: float = 0.0,
        floor_fractions: Sequence[float] = (),
        weights: Sequence[float] = (),
    ) -> None:
        self.epsilon, self.kept_share = epsilon, kept_share
        self.bar = math.log(1.0 / alpha)
        self.round_down = round_down
        self.thresholds: Vector = np.array(sorted({round_down(score) for score in scores} | {1.0}))
        first = np.log(np.array(weights) * len(weights)) if weights else np.zeros(len(fractions))
        self.logs: Vector = np.tile(first[:, np.newaxis], len(self.thresholds))
        self.fractions: Vector = np.array(fractions)[:, np.newaxis]
        self.floor = floor
        self.floor_fractions: Vector = np.array(floor_fractions or fractions)[:, np.newaxis]
        self.latched = latched
        self.constant_bound = constant_bound
        self.threshold = 0.0

    @property
    def log_wealth(self) -> Vector:
        """The mean of the gamblers, at every threshold."""
        most = self.logs.max(axis=0)
        mean: Vector = most + np.log(np.exp(self.logs - most).mean(axis=0))
        return mean

    def settle(self, uncertainty: float, propensity: float, least_propensity: float, loss: float) -> None:
        """Multiply every gambler at every threshold, and look for the largest that is safe."""
        seen = self.round_down(uncertainty) < self.thresholds
        payoff = self.epsilon - self.kept_share * (loss / propensity) * seen
        bound = self.constant_bound or max(self.epsilon, self.kept_share / least_propensity - self.epsilon)
        stakes = self.floor_fractions if least_propensity == self.floor else self.fractions
        self.logs += np.log(1.0 + stakes * payoff / bound)
        safe = self.log_wealth >= self.bar
        now = float(self.thresholds[safe].max()) if safe.any() else 0.0
        self.threshold = max(self.threshold, now) if self.latched else now


class AlarmTranscription:
    """The drift alarm of section 3, one round after another."""

    def __init__(self, epsilon: float, stakes: Sequence[float] = (0.4, 1.0, 2.0)) -> None:
        self.epsilon, self.stakes = epsilon, stakes
        self.gamblers = [1.0] * len(stakes)

    def update(self, weighted_loss: float, least_propensity: float) -> None:
        """``C ← max(C, 1)·(1 + min(φ·p, 0.9/ε)·(Z(û) − ε))``."""
        for k, stake in enumerate(self.stakes):
            bet = min(stake * least_propensity, 0.9 / self.epsilon)
            self.gamblers[k] = max(self.gamblers[k], 1.0) * (1.0 + bet * (weighted_loss - self.epsilon))

    @property
    def level(self) -> float:
        """The mean of the three."""
        return sum(self.gamblers) / len(self.gamblers)


def transcribed_trace(
    start: Callable[[], Any],
    rows: Iterable[Row],
    *,
    certain_while_closed: bool,
    warmup: tuple[float, int] = (0.7, 200),
    floor: float = 0.05,
    alarm: Callable[[], AlarmTranscription] | None = None,
    kept_share: float = 0.95,
) -> Iterator[Step]:
    """Sections 1 to 3 in a loop: every outcome is known before the next query arrives."""
    bettor: Transcription = start()
    watch = alarm() if alarm else None
    epoch, epoch_step = 1, 0
    for row in rows:
        epoch_step += 1
        before = bettor.threshold
        rate = warmup[0] if epoch_step <= warmup[1] else floor
        if watch and watch.level >= 5.0:
            rate = max(rate, 0.5)
        accepted = row.uncertainty < before
        propensity = rate if accepted else 1.0
        least = 1.0 if certain_while_closed and before == 0.0 else rate
        call_expert = row.coin < propensity
        loss = row.loss if call_expert else 0.0
        bettor.settle(row.uncertainty, propensity, least, loss)
        now = epoch
        if watch and alarm:
            watch.update(kept_share * loss / propensity if accepted else 0.0, least)
            if watch.level >= 10_000.0:
                bettor, watch, epoch, epoch_step = start(), alarm(), epoch + 1, 0
        yield Step(before, propensity, least, call_expert, bettor.threshold, now)


def served_loss_bound(
    audits: Sequence[tuple[float, float]],
    floor: float,
    alpha: float,
    *,
    shadow: bool = False,
    upper: bool = True,
    shares: Mapping[float, float] = EQUAL_SHARES,
    guess: float = 0.0,
) -> float:
    """Section 7 by bisection: where the mean of ``E(η)`` reaches 1/α; audits are (propensity, loss).

    With a guess, it bounds the sum of what the losses are above their guess.
    """
    sign = 1.0 if upper else -1.0
    rates = {sign * share * -math.log(1.0 - floor): weight for share, weight in shares.items()}

    def mean(served: float) -> float:
        total = 0.0
        for rate, weight in rates.items():
            log = rate * served
            for propensity, loss in audits:
                kept, rest = 1.0 - propensity, loss - guess
                factor = math.exp(-rate * rest) - kept if shadow else 1.0 - kept * math.exp(rate * rest)
                log += math.log(factor / propensity)
            total += math.exp(min(log, 700.0)) * weight
        return total

    low, high = (-1e9, 1e9) if guess else (0.0, 1e9)
    for _ in range(200):
        middle = (low + high) / 2.0
        if (mean(middle) >= 1.0 / alpha) == upper:
            high = middle
        else:
            low = middle
    return high
