"""Bounds for complete data: exact binomial bounds, and those that offline calibration uses."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from bpac.arguments import fraction, one_of, open_fraction, whole
from bpac.errors import InputError

Vector = NDArray[np.float64]
BISECTIONS = 60
# Stakes of the betting bound, as shares of the largest safe one.
FRACTIONS = tuple(0.9 * (k + 0.5) / 4 for k in range(4))


def binomial_cdf(successes: int, trials: int, chance: float) -> float:
    """P(X ≤ successes) for X ~ Binomial(trials, chance).

    >>> round(binomial_cdf(1, 2, 0.5), 12)
    0.75
    """
    if chance <= 0.0 or successes >= trials:
        return 1.0
    if chance >= 1.0:
        return 0.0
    ks = np.arange(successes + 1)
    log_choose = _log_factorials(trials)
    logs = log_choose[trials] - log_choose[ks] - log_choose[trials - ks]
    logs = logs + ks * math.log(chance) + (trials - ks) * math.log1p(-chance)
    return min(1.0, float(np.exp(logs).sum()))


def clopper_pearson_upper(successes: int, trials: int, alpha: float) -> float:
    """Exact upper bound on a chance, from a count (level 1 − α).

    >>> round(clopper_pearson_upper(0, 100, 0.05), 4)
    0.0295
    """
    whole(trials, "trials", 1)
    whole(successes, "successes", 0, trials)
    open_fraction(alpha, "alpha")
    if successes == trials:
        return 1.0
    return _smallest(lambda chance: binomial_cdf(successes, trials, chance) <= alpha)


def hoeffding_bentkus_upper(losses: Sequence[float], alpha: float) -> float:
    """Upper bound on a mean of losses in [0, 1]: the better of Hoeffding's and Bentkus's at each value."""
    count = len(_some(losses))
    mean = math.fsum(losses) / count

    def chance(risk: float) -> float:
        """How likely so small a mean is if the risk is ``risk``."""
        if risk <= mean:
            return 1.0
        hoeffding = math.exp(-count * _binary_divergence(mean, risk))
        bentkus = math.e * binomial_cdf(math.ceil(count * mean - 1e-9), count, risk)
        return min(hoeffding, bentkus)

    return _smallest(lambda risk: chance(risk) <= alpha)


def betting_upper(losses: Sequence[float], alpha: float) -> float:
    """Upper bound on a mean of losses in [0, 1], from the portfolio's wealth at its best moment."""
    values = np.asarray(_some(losses), dtype=np.float64)

    def refuted(risk: float) -> bool:
        """Whether the gamblers win enough against "the mean is at least ``risk``"."""
        payoffs = risk - values
        bound = max(risk, 1.0 - risk)
        logs = np.cumsum(np.log1p(np.outer(FRACTIONS, payoffs / bound)), axis=1)
        most = logs.max(axis=0)
        wealth = most + np.log(np.exp(logs - most).mean(axis=0))
        return bool(wealth.max() >= -math.log(alpha))

    return _smallest(refuted)


def binary_upper(losses: Sequence[float], alpha: float) -> float:
    """Clopper–Pearson for losses that are all 0 or 1."""
    if any(loss not in (0.0, 1.0) for loss in losses):
        raise InputError("clopper-pearson needs losses that are 0 or 1: use hoeffding-bentkus or betting")
    return clopper_pearson_upper(int(sum(losses)), len(losses), alpha)


RiskBound = Callable[[Sequence[float], float], float]
RISK_BOUNDS: dict[str, RiskBound] = {
    "clopper-pearson": binary_upper,
    "hoeffding-bentkus": hoeffding_bentkus_upper,
    "betting": betting_upper,
}


def calibrate(
    uncertainties: Sequence[float],
    losses: Sequence[float],
    epsilon: float,
    alpha: float,
    bound: str = "clopper-pearson",
) -> float:
    """The largest threshold whose upper confidence bound on risk is at most ε (offline PAC).

    Every bound grows with the losses it is given, and a higher threshold accepts more of them, so
    the thresholds that pass are all those up to the one returned, and one α pays for all.

    Parameters
    ----------
    uncertainties, losses: the calibration set, every loss known.
    epsilon, alpha: the promise.
    bound: ``clopper-pearson`` (0–1 losses), ``hoeffding-bentkus`` or ``betting``.

    >>> calibrate([0.1] * 100 + [0.9] * 50, [0.0] * 100 + [1.0] * 50, epsilon=0.05, alpha=0.1)
    0.9
    """
    open_fraction(epsilon, "epsilon")
    open_fraction(alpha, "alpha")
    one_of(bound, "bound", tuple(RISK_BOUNDS))
    if not uncertainties or len(uncertainties) != len(losses):
        raise InputError(
            f"the calibration set has {len(uncertainties)} scores and {len(losses)} losses: give one of each per row"
        )
    scores = np.array([fraction(score, "uncertainty") for score in uncertainties])
    known = np.array([fraction(loss, "loss") for loss in losses])
    candidates = [*sorted(set(scores.tolist())), 1.0]

    def safe(threshold: float) -> bool:
        accepted = np.where(scores < threshold, known, 0.0)
        return RISK_BOUNDS[bound](accepted.tolist(), alpha) <= epsilon

    # Find the last candidate that is safe; all before it are.
    low, high = 0, len(candidates)
    while low < high:
        middle = (low + high) // 2
        if safe(candidates[middle]):
            low = middle + 1
        else:
            high = middle
    return candidates[low - 1] if low else 0.0


def _some(losses: Sequence[float]) -> Sequence[float]:
    if not len(losses):
        raise InputError("a bound needs at least one loss")
    return losses


def _binary_divergence(mean: float, risk: float) -> float:
    """Kullback–Leibler divergence between two coins, for mean < risk."""
    if risk >= 1.0:
        return math.inf
    near = mean * math.log(mean / risk) if mean > 0.0 else 0.0
    return near + (1.0 - mean) * math.log((1.0 - mean) / (1.0 - risk))


@lru_cache(maxsize=8)
def _log_factorials(most: int) -> Vector:
    return np.array(list(accumulate((math.log(k) for k in range(1, most + 1)), initial=0.0)))


def _smallest(holds: Callable[[float], bool]) -> float:
    """The smallest number in [0, 1] from which a monotone statement holds, from above; 1 if none."""
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
