"""The least number of further requests without a loss before a threshold opens."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, cast

from bpac.betting.ledgers.levels import Levels
from bpac.betting.payoff import Terms, log_units
from bpac.dashboard.estimates.wealth import log_bar, log_mean
from bpac.routing.cascade.policy import Cascade
from bpac.routing.policies import Fixed, Offline, Portfolio
from bpac.routing.router import Router
from bpac.routing.settings import Settings

# Rounds simulated for a policy whose wealth has no formula; the result is still a lower bound.
MOST_ROUNDS = 10_000


def clean_rounds_needed(router: Router) -> int | None:
    """The least number of further rounds without loss after which a threshold opens.

    None if one is open already or none will ever open. With fewer rounds no threshold opens, whatever the outcomes of
    the rounds that are not graded yet. With exactly as many one opens, if those rounds turn out without loss too (where
    several scores compete, perhaps a round or two later). Outcomes that arrive after they were given up are ignored.

    >>> router = Router(epsilon=0.05, alpha=0.1, seed=1)
    >>> needed = clean_rounds_needed(router)
    >>> for _ in range(needed):
    ...     thresholds = router.threshold
    ...     router.observe(router.decide(0.5), 0.0)
    >>> needed, thresholds, router.threshold
    (92, 0.0, 1.0)
    """
    policy = router.settings.policy
    if router.threshold > 0.0 or isinstance(policy, Fixed):
        return None
    if isinstance(policy, Cascade):
        needed: int | None = _of_cascade(router, policy)
    else:
        needed = _by_formula(router, policy) if isinstance(policy, Portfolio) else _by_playing(router)
    held, _ = router.held_up  # rounds that are decided already
    return None if needed is None else max(0, needed - held)


def _by_formula(router: Router, policy: Portfolio) -> int:
    """Every round without loss multiplies the wealth by the same factors, so the number follows by bisection."""
    state = router.bettor_state()
    games = state["wealths"] if policy.scores or policy.learn else [state]
    shares = list(policy.scores.values()) or [1.0]
    if policy.learn is not None:
        shares = [policy.learn.share(score) for score in range(len(games))]
    return min(
        _until(_best_case(router, policy, game, index), _wins(router.settings, policy), bar)
        for index, (game, share) in enumerate(zip(games, shares, strict=True))
        if game  # a score that was not worth its share of α, or has retired, does not bet
        for bar in [log_bar(router.settings, router.epoch, share)]
    )


def _best_case(router: Router, policy: Portfolio, game: Mapping[str, Any], score: int) -> list[int]:
    """The log-wealth of each gambler at the smallest threshold if all outcomes that are owed are without loss."""
    logs = list(game["common"])
    levels = cast(Levels, policy.levels)  # set by the policy itself
    # Only losses at the lowest level count for the smallest threshold.
    for code, *losses in game["losses"]:
        if code == 0:
            logs = [log + loss for log, loss in zip(logs, losses, strict=True)]
    _, passed = router.held_up
    floor = router.settings.exploration.floor
    for charge in (_charges(router.settings, policy, floor, floor),) * passed:
        logs = _without(logs, charge)
    for decision in router.owed:
        scores = decision.uncertainties or (decision.uncertainty,)
        if score >= len(scores):
            continue  # it was decided before the score had joined
        uncertainty = scores[score]
        if decision.epoch == router.epoch and levels.code(uncertainty) == 0:
            charges = _charges(router.settings, policy, decision.propensity, decision.least_propensity)
            sets = 1 + sum(late < len(scores) for late in game.get("late", ()))
            logs = _without(logs[: sets * len(charges)], charges) + logs[sets * len(charges) :]
    return logs


def _without(logs: list[int], charges: list[int]) -> list[int]:
    """The log-wealth of all gamblers without a charge; each set of them has the same stakes."""
    return [log - charge for log, charge in zip(logs, cycle(charges), strict=False)]


def _of_cascade(router: Router, policy: Cascade) -> int:
    """The same for the rules of a cascade that have joined: the first that opens counts."""
    state, settings = router.bettor_state(), router.settings
    joined = len(policy.first) + len(state["fitted"])
    found = []
    for index, (game, share) in enumerate(zip(state["wealths"][:joined], policy.shares, strict=False)):
        logs = list(game["common"])
        for code, *losses in game["losses"]:
            if code == 0:
                logs = [log + loss for log, loss in zip(logs, losses, strict=True)]
        for decision in router.owed:
            part = decision.cascade
            if part is None or decision.epoch != router.epoch or index >= len(decision.uncertainties):
                continue
            if part.full and policy.levels.code(decision.uncertainties[index]) == 0:
                charges = _charges(settings, policy, part.full_propensity, decision.least_propensity)
                logs = [log - charge for log, charge in zip(logs, charges, strict=True)]
        found.append(_until(logs, _wins(settings, policy), log_bar(settings, router.epoch, share)))
    return min(found)


def _until(logs: Sequence[int], wins: Sequence[int], bar: float) -> int:
    """The least number of rounds after which the mean reaches the bar; 0 if the outcomes that are owed may suffice."""

    def reached(rounds: int) -> bool:
        return log_mean([log + rounds * win for log, win in zip(logs, cycle(wins), strict=False)], len(wins)) >= bar

    low, high = -1, 0  # not reached, and perhaps reached
    while not reached(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _wins(settings: Settings, policy: Portfolio | Cascade) -> list[int]:
    """The log-factor of each gambler for a round without loss while every query goes to the expert."""
    bound = _bound(settings.terms, policy, 1.0)
    return [log_units(1.0 + fraction * settings.epsilon / bound) for fraction in sorted(policy.stakes.fractions)]


def _charges(settings: Settings, policy: Portfolio | Cascade, propensity: float, least_propensity: float) -> list[int]:
    """The difference that a loss of 1 makes to the log-wealth of each gambler, compared with no loss."""
    bound = _bound(settings.terms, policy, least_propensity)
    payoff = settings.terms.payoff(1.0, propensity)
    bold = policy.stakes.floor_fractions if least_propensity <= settings.terms.floor else None
    return [
        log_units(1.0 + fraction * payoff / bound) - log_units(1.0 + fraction * settings.epsilon / bound)
        for fraction in sorted(bold or policy.stakes.fractions)
    ]


def _bound(terms: Terms, policy: Portfolio | Cascade, least_propensity: float) -> float:
    constant = isinstance(policy, Portfolio) and policy.assume == "any"
    return terms.payoff_bound(terms.floor if constant else least_propensity)


def _by_playing(router: Router) -> int | None:
    """Simulate rounds without loss on a copy of the router until a threshold opens."""
    copy = router.trial()
    for decision in copy.owed:
        copy.observe(decision, 0.0)
    policy = router.settings.policy
    for rounds in range(MOST_ROUNDS):
        if copy.threshold > 0.0:
            return rounds
        copy.observe(copy.decide(1.0), 0.0)
    # A calibration that found no threshold is never repeated.
    return None if isinstance(policy, Offline) and policy.size <= copy.step else MOST_ROUNDS
