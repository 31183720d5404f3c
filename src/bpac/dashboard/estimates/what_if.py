"""The expert call rate at other limits: an estimate from the weighted losses of the journal, not a guarantee.

For a threshold u, ``κ/n Σ ξ l/π 1{U < u}`` is an unbiased estimate of its risk, whatever threshold was in use when a
round was decided: an audit with propensity π counts for 1/π rounds. The largest threshold whose estimated risk is at
most another ε is where a router with that ε would end up. There it would call the expert at a rate of
``1 − (1 − ρ) P(U < u)``: for all drafts that are not below u, and to audit the others at the least exploration rate ρ.

The interval is approximate, at 95 %. The risk of each threshold gets a score interval (as for a count, in which an
unseen loss has the average weight of the audits); the thresholds whose interval contains ε give the ends, widened by
one bin and by the standard deviation of ``P(U < u)``. It assumes many requests and traffic that stays as it was in this
epoch. Unknown outcomes count as losses. While it learns, a router calls the expert more often than estimated here.
Where scores are learned, the estimate is for thresholds of the route's own score.
"""

from collections.abc import Sequence

import numpy as np

from bpac.dashboard.history.bins import Bins, Counts, Sums
from bpac.dashboard.history.history import History
from bpac.routing.router import Router
from bpac.routing.settings import Settings

# The two-sided 95 % quantile of the standard normal distribution.
WIDTH = 1.959964
# The limits of the estimate, as multiples of the configured one.
MULTIPLES = (0.25, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)


def what_if(router: Router, history: History) -> list[dict[str, float]]:
    """Estimated expert call rate at limits around the configured one, as JSON values; empty if it cannot be estimated.

    Parameters
    ----------
    router: the router of the game.
    history: the history of the game.
    """
    settings = router.settings
    # Without random audits the losses of kept drafts are unknown; with several scores, a bin mixes different scores.
    if not history.step or not settings.exploration.floor or settings.policy.score_names:
        return []
    limits = [settings.epsilon * multiple for multiple in MULTIPLES]
    return estimates(settings, history.bins, [limit for limit in limits if limit < 1.0])


def estimates(settings: Settings, bins: Bins, limits: Sequence[float]) -> list[dict[str, float]]:
    """The expert call rate at other limits, each with an approximate 95 % interval.

    Parameters
    ----------
    settings: settings of the router.
    bins: number of requests and weighted losses by uncertainty.
    limits: the other limits (ε).
    """
    below, deviation = _traffic(bins)
    risk, lower, upper = _risks(settings, bins)
    last, floor = len(below) - 1, settings.exploration.floor

    def rate(share: float) -> float:
        return 1.0 - (1.0 - floor) * min(max(float(share), 0.0), 1.0)

    found = []
    for limit in limits:
        # Index i is the threshold above bins 0 … i−1. Its risk rises with i, and so does the estimate. Of the bounds
        # the outer crossings are used: an end can then be wrong only if the bound at one fixed threshold is.
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
    """The share of traffic below each threshold, and its standard deviation."""
    counts = _below(bins.traffic())
    rounds = max(counts[-1], 1.0)
    shares = counts[:-1] / rounds  # the last bin contains scores of 1, which no threshold accepts
    return shares, np.sqrt(shares * (1.0 - shares) / rounds)


def _risks(settings: Settings, bins: Bins) -> tuple[Sums, Sums, Sums]:
    """The estimated risk of each threshold, and its interval."""
    rounds = max(bins.traffic().sum(), 1.0)
    kept_share = settings.terms.kept_share
    losses, squares = (_below(sums)[:-1] for sums in bins.losses())
    weights, weight_squares = (_below(sums)[:-1] for sums in bins.audits())
    # The weight of an unseen loss below the threshold; where nothing was audited, the largest weight possible.
    heaviest = np.full_like(weights, 1.0 / settings.exploration.floor)
    weight = np.divide(weight_squares, weights, out=heaviest, where=weights > 0.0)
    risk = kept_share * losses / rounds
    unit = kept_share * weight / rounds
    centre = risk + unit * WIDTH**2 / 2.0
    spread = WIDTH * np.sqrt(kept_share**2 * squares / rounds**2 + (unit * WIDTH / 2.0) ** 2)
    # A threshold cannot lose more than it accepts, and the lowest accepts nothing.
    below, deviation = _traffic(bins)
    accepted = kept_share * (below + WIDTH * deviation + WIDTH**2 / rounds)
    upper = np.minimum(centre + spread, accepted)
    upper[0] = 0.0
    return risk, np.maximum(centre - spread, 0.0), upper


def _below(values: Counts | Sums) -> Sums:
    return np.concatenate(([0.0], np.cumsum(values)))
