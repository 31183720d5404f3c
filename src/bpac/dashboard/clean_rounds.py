"""Before the first threshold opens: how many more rounds without loss that takes at least."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from bpac.betting.ledgers.levels import Levels
from bpac.betting.payoff import Terms, log_units
from bpac.dashboard.wealth import log_bar, log_mean
from bpac.routing.policies import Fixed, Offline, Portfolio
from bpac.routing.router import Router
from bpac.routing.settings import Settings

# Rounds played ahead for a policy whose wealth has no formula; "at least" stays true.
MOST_ROUNDS = 10_000


def clean_rounds_needed(router: Router) -> int | None:
    """The fewest further rounds without loss after which a threshold can open; none if one is open, or none ever will.

    With fewer none opens, however the rounds turn out that wait for their outcome or for earlier requests. With so many
    one does open, if all of those turn out without loss too (where several scores compete, perhaps a round or two
    later). An outcome that was given up and comes after all is not reckoned with.

    >>> router = Router(epsilon=0.05, alpha=0.1, seed=1)
    >>> needed = clean_rounds_needed(router)
    >>> for _ in range(needed):
    ...     thresholds = router.threshold
    ...     router.observe(router.decide(0.5), 0.0)
    >>> needed, thresholds, router.threshold
    (78, 0.0, 1.0)
    """
    policy = router.settings.policy
    if router.threshold > 0.0 or isinstance(policy, Fixed):
        return None
    needed = _by_formula(router, policy) if isinstance(policy, Portfolio) else _by_playing(router)
    held, _ = router.held_up  # rounds that were decided already
    return None if needed is None else max(0, needed - held)


def _by_formula(router: Router, policy: Portfolio) -> int:
    """The gamblers win the same in every clean round, so the number of rounds is found, not counted."""
    state = router.bettor_state()
    games = state["wealths"] if policy.scores else [state]
    shares = list(policy.scores.values()) or [1.0]
    return min(
        _until(_best_case(router, policy, game, index), _wins(router.settings, policy), bar)
        for index, (game, share) in enumerate(zip(games, shares, strict=True))
        for bar in [log_bar(router.settings, router.epoch, share)]
    )


def _best_case(router: Router, policy: Portfolio, game: Mapping[str, Any], score: int) -> list[int]:
    """Each gambler's log-wealth at the smallest threshold, should every outcome that is owed be without loss."""
    logs = list(game["common"])
    levels = cast(Levels, policy.levels)  # set by the policy itself
    # The smallest threshold sees the losses booked at the lowest level, and no others.
    for code, *losses in game["losses"]:
        if code == 0:
            logs = [log + loss for log, loss in zip(logs, losses, strict=True)]
    _, passed = router.held_up
    floor = router.settings.exploration.floor
    for charge in (_charges(router.settings, policy, floor, floor),) * passed:
        logs = [log - taken for log, taken in zip(logs, charge, strict=True)]
    for decision in router.owed:
        uncertainty = decision.uncertainties[score] if policy.scores else decision.uncertainty
        if decision.epoch == router.epoch and levels.code(uncertainty) == 0:
            charges = _charges(router.settings, policy, decision.propensity, decision.least_propensity)
            logs = [log - charge for log, charge in zip(logs, charges, strict=True)]
    return logs


def _until(logs: Sequence[int], wins: Sequence[int], bar: float) -> int:
    """The fewest rounds after which the mean reaches the bar; 0 if the outcomes that are owed may suffice."""

    def reached(rounds: int) -> bool:
        return log_mean([log + rounds * win for log, win in zip(logs, wins, strict=True)]) >= bar

    low, high = -1, 0  # not reached, and perhaps reached
    while not reached(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _wins(settings: Settings, policy: Portfolio) -> list[int]:
    """What each gambler wins in a round without loss, while every query goes to the expert."""
    bound = _bound(settings.terms, policy, 1.0)
    return [log_units(1.0 + fraction * settings.epsilon / bound) for fraction in sorted(policy.fractions)]


def _charges(settings: Settings, policy: Portfolio, propensity: float, least_propensity: float) -> list[int]:
    """What a loss of 1 takes from each gambler, in place of the win."""
    bound = _bound(settings.terms, policy, least_propensity)
    payoff = settings.terms.payoff(1.0, propensity)
    return [
        log_units(1.0 + fraction * payoff / bound) - log_units(1.0 + fraction * settings.epsilon / bound)
        for fraction in sorted(policy.fractions)
    ]


def _bound(terms: Terms, policy: Portfolio, least_propensity: float) -> float:
    return terms.payoff_bound(terms.floor if policy.assume == "any" else least_propensity)


def _by_playing(router: Router) -> int | None:
    """A copy of the router is played on, everything without loss, until a threshold opens."""
    copy = router.trial()
    for decision in copy.owed:
        copy.observe(decision, 0.0)
    policy = router.settings.policy
    for rounds in range(MOST_ROUNDS):
        if copy.threshold > 0.0:
            return rounds
        copy.observe(copy.decide(1.0), 0.0)
    # Who calibrates once and finds nothing never tries again.
    return None if isinstance(policy, Offline) and policy.size <= copy.step else MOST_ROUNDS
