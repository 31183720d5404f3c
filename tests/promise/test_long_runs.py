"""A million easy rounds, then trouble: nothing overflows, memory stays small, thresholds fall."""

import math
import statistics
import tracemalloc

import numpy as np
import pytest

from bpac.betting.ledgers.levels import RelativeLevels
from bpac.routing.coins import SeededCoins
from bpac.routing.router import Router

EASY = 1_000_000
pytestmark = pytest.mark.promise


def after_easy_rounds(memory: str) -> dict[str, object]:
    """A snapshot of a router that has seen a million rounds without a loss."""
    router = Router(0.08, 0.1, memory=memory, coins=SeededCoins(0))
    scores = np.random.default_rng(0).random(1000).tolist()
    for _ in range(EASY // 1000):
        for score in scores:
            decision = router.decide(score)
            if decision.call_expert:
                router.observe(decision, 0.0)
    return router.snapshot()


# Scores are uniform: with 50 % losses the risk of a threshold u is 0.95 · 0.5 · u.
SAFE = 0.08 / 0.95 / 0.5


def rounds_until(threshold: float, snapshot: dict[str, object], seed: int, most: int) -> int:
    """Rounds with 50 % losses until no higher threshold is in force."""
    router = Router.rebuild([], snapshot=snapshot, coins=SeededCoins(seed))
    rng = np.random.default_rng(seed)
    for step in range(1, most + 1):
        decision = router.decide(rng.random())
        if decision.call_expert:
            router.observe(decision, float(rng.random() < 0.5))
        if router.threshold <= threshold:
            return step
    return most + 1


def test_the_alarm_ends_a_long_easy_stretch_within_a_thousand_rounds() -> None:
    """Alarmed: safe again within 1,000 rounds in the median of 21 shifts."""
    snapshot = after_easy_rounds("alarmed")
    assert statistics.median(rounds_until(SAFE, snapshot, seed, 5000) for seed in range(21)) <= 1000


def test_revocable_wealth_is_finite_and_can_be_lost() -> None:
    """Revocable: a million wins are a number like any other, and losses use it up."""
    snapshot = after_easy_rounds("revocable")
    router = Router.rebuild([], snapshot=snapshot)
    assert math.isfinite(router.log_wealth(1.0))
    assert router.log_wealth(1.0) > math.log(1e300)
    assert rounds_until(0.9, snapshot, 0, 400_000) <= 400_000


def test_plain_float_products_never_recover() -> None:
    """Control: wealth multiplied up as a float becomes infinite and stays so, whatever is lost."""
    wealth, win, loss = 1.0, 1.0 + 0.79 * 0.08 / 18.92, 1.0 - 0.79
    for _ in range(EASY):
        wealth *= win
    assert math.isinf(wealth)
    for _ in range(200_000):
        wealth *= loss
    assert math.isinf(wealth)


def test_the_state_of_a_route_stays_below_four_megabytes() -> None:
    """Even with a loss at every level there is and all the audits that may be outstanding."""
    levels = RelativeLevels()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    router = Router(0.08, 0.1, memory="latched")
    for code in range(levels.top):
        router.observe(router.decide(levels.value(code)), 1.0)
    for code in range(3 * router.settings.max_owed):
        router.decide(levels.value(code))
    for decision in router.owed:
        router.forfeit(decision)
    for code in range(3 * router.settings.max_owed):
        router.decide(levels.value(code))
    assert len(router.owed) == len(router._route.given_up) == router.settings.max_owed
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert used < 4_000_000
