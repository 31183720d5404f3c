"""What if the limit were another one: an estimate from the weighted losses of the journal, and no promise.

For a threshold u, ``κ/n Σ ξ l/π 1{U < u}`` estimates its risk without bias, whatever threshold was in force when a
round was decided: every audit stands for as many rounds as its propensity says. The largest threshold whose estimate is
at most another ε is where a router with that ε would end up; ``1 − (1 − ρ) P(U < u)`` is how often it would call the
expert there: for drafts that are not below u, and to check those that are, at the least exploration rate ρ.

The interval says how far chance may have led this astray. The risk of each threshold gets an approximate 95 % interval
(the score interval of a count, in which a loss that was not seen would have weighed as much as audits do on average);
the thresholds whose interval holds ε give the ends, widened by one bin and by the spread of ``P(U < u)``. It leans on
large numbers, and on traffic that stays as it was in this epoch. Outcomes that are not known count as losses. While it
learns, a router calls the expert more often than this.
"""

from collections.abc import Sequence

import numpy as np

from bpac.dashboard.bins import Bins, Counts, Sums
from bpac.dashboard.history import History
from bpac.routing.router import Router
from bpac.routing.settings import Settings

# Of a standard normal variable, two-sided 95 %.
WIDTH = 1.959964
# Limits that are tried, as multiples of the one in force.
MULTIPLES = (0.25, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)


def what_if(router: Router, history: History) -> list[dict[str, float]]:
    """Estimated expert call rate at limits around the one in force, as JSON values; none if nothing is known.

    Parameters
    ----------
    router: of the game.
    history: of the game.
    """
    settings = router.settings
    # Without coins nothing is seen of drafts that are kept; with several scores a bin is of one now, of another then.
    if not history.step or not settings.exploration.floor or settings.policy.score_names:
        return []
    limits = [settings.epsilon * multiple for multiple in MULTIPLES]
    return estimates(settings, history.bins, [limit for limit in limits if limit < 1.0])


def estimates(settings: Settings, bins: Bins, limits: Sequence[float]) -> list[dict[str, float]]:
    """The expert call rate at other limits, each with an approximate 95 % interval.

    Parameters
    ----------
    settings: of the router.
    bins: traffic and weighted losses.
    limits: the other limits (ε).
    """
    below, deviation = _traffic(bins)
    risk, lower, upper = _risks(settings, bins)
    last, floor = len(below) - 1, settings.exploration.floor

    def rate(share: float) -> float:
        return 1.0 - (1.0 - floor) * min(max(float(share), 0.0), 1.0)

    found = []
    for limit in limits:
        # Index i is the threshold below which bins 0 … i−1 lie. The risk rises with it, and so does its estimate; of
        # the bounds the outer crossings count: each end can only be wrong if the bound at one fixed threshold is.
        best = int(np.searchsorted(risk, limit, side="right")) - 1
        least = int(np.argmax(upper > limit)) - 1 if (upper > limit).any() else last
        most = min(int(np.flatnonzero(lower <= limit)[-1]) + 1, last)
        found.append(
            {
                "epsilon": limit,
                "expert_call_rate": rate(below[best]),
                "low": rate(below[most] + WIDTH * deviation[most]),
                "high": rate(below[least] - WIDTH * deviation[least]),
            }
        )
    return found


def _traffic(bins: Bins) -> tuple[Sums, Sums]:
    """The share of traffic below each threshold, and the standard deviation of that."""
    counts = _below(bins.traffic())
    rounds = max(counts[-1], 1.0)
    shares = counts[:-1] / rounds  # the last bin holds scores of 1, which no threshold accepts
    return shares, np.sqrt(shares * (1.0 - shares) / rounds)


def _risks(settings: Settings, bins: Bins) -> tuple[Sums, Sums, Sums]:
    """The estimated risk of each threshold, and an interval for it."""
    rounds = max(bins.traffic().sum(), 1.0)
    kept_share = settings.terms.kept_share
    losses, squares = (_below(sums)[:-1] for sums in bins.losses())
    weights, weight_squares = (_below(sums)[:-1] for sums in bins.audits())
    # What a loss below the threshold would weigh; where nothing was audited, the most that it could.
    heaviest = np.full_like(weights, 1.0 / settings.exploration.floor)
    weight = np.divide(weight_squares, weights, out=heaviest, where=weights > 0.0)
    risk = kept_share * losses / rounds
    unit = kept_share * weight / rounds
    centre = risk + unit * WIDTH**2 / 2.0
    spread = WIDTH * np.sqrt(kept_share**2 * squares / rounds**2 + (unit * WIDTH / 2.0) ** 2)
    # A threshold cannot lose more than it accepts; and the lowest accepts nothing.
    below, deviation = _traffic(bins)
    accepted = kept_share * (below + WIDTH * deviation + WIDTH**2 / rounds)
    upper = np.minimum(centre + spread, accepted)
    upper[0] = 0.0
    return risk, np.maximum(centre - spread, 0.0), upper


def _below(values: Counts | Sums) -> Sums:
    return np.concatenate(([0.0], np.cumsum(values)))
