"""The wealth of the bets on each threshold: how close it is to being certified."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from bpac.betting.ledgers.levels import Levels
from bpac.betting.payoff import LOG_UNIT
from bpac.betting.wealth.thresholds import PriorThreshold
from bpac.routing.policies import Paper, Portfolio
from bpac.routing.router import Router
from bpac.routing.settings import Settings


def wealth_curve(router: Router) -> dict[str, Any] | None:
    """Log-wealth at thresholds from 0 to 1, and the goal that certifies one, as JSON values.

    None for policies that do not bet on each threshold. The values are those of ``Router.log_wealth``, computed for all
    thresholds at once.

    >>> curve = wealth_curve(Router(epsilon=0.05, alpha=0.1))
    >>> abs(curve["log_wealth"][0]) < 1e-9, round(math.exp(curve["goal"]))
    (True, 11)
    """
    policy = router.settings.policy
    if not isinstance(policy, Portfolio | Paper) or policy.score_names:
        return None
    levels: Any = policy.levels if isinstance(policy, Portfolio) else policy.grid
    thresholds = _shown(levels, router.threshold)
    state, share = router.bettor_state(), 1.0
    if policy.learned is not None:  # the bets of the score in force
        state, share = state["wealths"][state["active"]], policy.learned.share(state["active"])
    if isinstance(policy, Portfolio):
        logs = _portfolio_logs(state, levels, thresholds, len(policy.stakes.fractions))
    else:
        kept = state["wealth"]
        everywhere = np.log(kept["mantissa"]) + np.array(kept["exponent"]) * np.log(2.0)
        logs = [float(everywhere[levels.code(threshold)]) for threshold in thresholds]
    return {"threshold": thresholds, "log_wealth": logs, "goal": log_bar(router.settings, router.epoch, share)}


def log_bar(settings: Settings, epoch: int, share: float = 1.0) -> float:
    """The log-wealth that certifies a threshold in an epoch.

    Parameters
    ----------
    settings: settings of the router.
    epoch: number of the epoch.
    share: share of α, where several scores divide it (default: 1.0).
    """
    alpha = settings.alpha_of(epoch) * share
    policy = settings.policy
    if isinstance(policy, Portfolio) and policy.assume == "any" and policy.levels is not None:
        return math.log(policy.levels.top / alpha)
    if isinstance(policy, Paper) and isinstance(policy.rule, PriorThreshold):
        # Each threshold has its own goal; the lowest is shown.
        return float(policy.rule.log_bars(policy.grid.count, alpha).min())
    return -math.log(alpha)


def log_mean(logs: Sequence[int], count: int) -> float:
    """``log(sum(exp(logs)) / count)`` of logarithms in log units.

    Parameters
    ----------
    logs: the log-wealth of each gambler.
    count: how many gamblers there were first; those that were added later have brought money of their own.
    """
    most = max(logs)
    return most / LOG_UNIT + math.log(sum(math.exp((log - most) / LOG_UNIT) for log in logs) / count)


def _shown(levels: Levels, threshold: float) -> list[float]:
    """Thresholds to show: at equal distances, by half octaves near 0, the one in use, and the next above it."""
    code = levels.code(threshold)
    near = {levels.value(1), threshold, levels.value(min(code + 1, levels.top))}
    wanted = {part / 100 for part in range(1, 101)} | {2.0 ** (-half / 2) for half in range(14, 40)} | near
    return sorted(value for value in wanted if value >= levels.value(1))


def _portfolio_logs(state: Mapping[str, Any], levels: Levels, thresholds: Sequence[float], count: int) -> list[float]:
    codes = [row[0] for row in state["losses"]]
    # Sums over the losses below each recorded level, one list for each gambler. Python integers, because the sums of
    # levels that have lost everything may exceed 64 bits.
    columns = list(zip(*state["losses"], strict=True))[1:] or [()] * len(state["common"])
    below = [list(accumulate(column, initial=common)) for column, common in zip(columns, state["common"], strict=True)]
    logs = []
    for threshold in thresholds:
        code = levels.code(threshold)
        # Losses recorded at the lower of two levels count for a threshold between them.
        seen = bisect_left(codes, code + (threshold > levels.value(code)))
        logs.append(log_mean([sums[seen] for sums in below], count))
    return logs
