"""The estimate at other limits, against laws whose true expert call rate is known."""

from collections import Counter
from typing import Any

import pytest

from bpac.betting.bounds.fixed_sample import binomial_cdf
from bpac.dashboard.bins import Bins
from bpac.dashboard.history import History
from bpac.dashboard.what_if import estimates, what_if
from bpac.replay.simulation.laws import Law, LevelLaw, PowerLaw, largest_safe
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router
from tests.dashboard.played import audit, feed, played

RISING, LEVELS = PowerLaw(most=0.5, power=1.5), LevelLaw()
LIMITS = (0.04, 0.08, 0.14)
GAMES = 60
# The interval is promised to miss in 1 of 20 games, about; and a test that holds may fail once in a thousand.
PROMISED, SIGNIFICANT = 0.05, 0.001


def accepted(law: Law, threshold: float) -> float:
    """The true share of traffic below a threshold."""
    if isinstance(law, LevelLaw):
        pairs = zip(law.levels, law.weights, strict=True)
        return sum(weight for level, weight in pairs if level < threshold)
    return threshold


def misses(law: Law, *, weighted: bool = True, **options: Any) -> Counter[float]:
    """In how many games the interval does not hold the true expert call rate, by limit."""
    missed: Counter[float] = Counter()
    for seed in range(GAMES):
        router, history = played(law, 1200, seed=seed, epsilon=0.08, weighted=weighted, **options)
        terms, floor = router.settings.terms, router.settings.exploration.floor
        for limit, told in zip(LIMITS, estimates(router.settings, history.bins, LIMITS), strict=True):
            true = 1.0 - (1.0 - floor) * accepted(law, largest_safe(law, limit / terms.kept_share))
            assert told["low"] <= told["expert_call_rate"] <= told["high"]
            missed[limit] += not told["low"] <= true <= told["high"]
    return missed


def chance(count: int) -> float:
    """How likely it is that so many games, or more, are missed if the interval holds what it says."""
    return 1.0 - binomial_cdf(count - 1, GAMES, PROMISED) if count else 1.0


@pytest.mark.parametrize(
    ("law", "options"),
    [(RISING, {}), (LEVELS, {}), (RISING, {"policy": "budget"}), (RISING, {"explore": "shadow"})],
    ids=["rising", "levels", "budget", "shadow"],
)
def test_the_interval_holds_the_truth(law: Law, options: Any) -> None:
    """At limits below, at and above the one in force, as often as it says."""
    missed = misses(law, **options)
    assert all(chance(missed[limit]) > SIGNIFICANT for limit in LIMITS), missed


def test_without_weights_it_does_not() -> None:
    """The same test finds out that rounds which are seldom looked at must count for those that are not."""
    missed = misses(RISING, weighted=False)
    assert all(chance(missed[limit]) < SIGNIFICANT for limit in LIMITS), missed
    assert min(missed.values()) > GAMES / 2


def test_it_narrows_down_to_the_truth() -> None:
    """After many rounds little is left to guess; what is left is the width of a bin, and chance."""
    router, history = played(RISING, 40_000, epsilon=0.08)
    told = {row["epsilon"]: row for row in what_if(router, history)}
    assert len(told) == 12
    assert [row["expert_call_rate"] for row in told.values()] == sorted(
        (row["expert_call_rate"] for row in told.values()), reverse=True
    )
    now = told[0.08]
    true = 1.0 - 0.95 * largest_safe(RISING, 0.08 / 0.95)
    assert now["expert_call_rate"] == pytest.approx(true, abs=0.05)
    assert now["high"] - now["low"] < 0.15


def test_audits_at_the_floor_are_counted() -> None:
    """Where everything may be kept, what is left are the checks."""
    router, history = Router(0.2, seed=1), History()
    feed(router, history, [(0.3, 0.0)] * 3000)
    (row,) = (row for row in what_if(router, history) if row["epsilon"] == 0.2)
    assert row["expert_call_rate"] == pytest.approx(router.settings.exploration.floor)


def test_nothing_is_known() -> None:
    """Before the first round, without coins, and where several scores compete, no estimate is made up."""
    assert what_if(Router(0.1), History()) == []
    router, history = Router(0.1, policy="never"), History()
    history.decided(router.decide(0.5), 0.0, router)
    assert what_if(router, history) == []
    router, history = Router(0.1, policy=Portfolio(scores={"one": 0.5, "two": 0.5})), History()
    history.decided(router.decide({"one": 0.1, "two": 0.2}), 0.0, router)
    assert what_if(router, history) == []


def test_a_loss_that_is_not_known_counts() -> None:
    """Outcomes that are open raise the estimate, and known ones lower it again."""
    settings, audits = Router(0.1).settings, [audit(step, 0.25) for step in range(1, 41)]
    bins = Bins()
    bins.decided(audits)
    bins.decided([decision._replace(uncertainty=0.75) for decision in audits])
    (before,) = estimates(settings, bins, [0.5])
    bins.resolved([(decision, 0.0) for decision in audits])
    (after,) = estimates(settings, bins, [0.5])
    assert before["expert_call_rate"] == 1.0
    # Audits made with a chance of a half stand for two rounds each: what lies above is still all lost.
    assert after["expert_call_rate"] == pytest.approx(1.0 - 0.95 * 0.5)


def test_a_new_epoch_starts_afresh() -> None:
    """What was learnt of the traffic before a drift says nothing about the traffic after it."""
    router, history = Router(0.1, 0.1, seed=5), History()
    feed(router, history, [(0.5, 0.0)] * 1000)
    easy = what_if(router, history)[4]
    feed(router, history, [(0.5, 1.0)] * 600)
    assert router.epoch > 1
    hard = what_if(router, history)[4]
    assert easy["expert_call_rate"] == pytest.approx(0.05)
    assert hard["expert_call_rate"] == pytest.approx(1.0)
