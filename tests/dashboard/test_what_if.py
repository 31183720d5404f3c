"""The estimate at other limits, against laws whose true expert call rate is known."""

from collections import Counter
from typing import Any

import pytest

from bpac.betting.bounds.fixed_sample import binomial_cdf
from bpac.dashboard.estimates.what_if import estimates, what_if
from bpac.dashboard.history.bins import Bins
from bpac.dashboard.history.history import History
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
    """In how many games the interval does not contain the true expert call rate, by limit."""
    missed: Counter[float] = Counter()
    for seed in range(GAMES):
        router, history = played(law, 1200, seed=seed, epsilon=0.08, weighted=weighted, **options)
        terms, floor = router.settings.terms, router.settings.exploration.floor
        for limit, row in zip(LIMITS, estimates(router.settings, history.bins, LIMITS), strict=True):
            true = 1.0 - (1.0 - floor) * accepted(law, largest_safe(law, limit / terms.kept_share))
            assert row["low"] <= row["expert_call_rate"] <= row["high"]
            missed[limit] += not row["low"] <= true <= row["high"]
    return missed


def chance(count: int) -> float:
    """How likely it is that so many games, or more, are missed if the interval holds what it says."""
    return 1.0 - binomial_cdf(count - 1, GAMES, PROMISED) if count else 1.0


@pytest.mark.parametrize(
    ("law", "options"),
    [(RISING, {}), (LEVELS, {}), (RISING, {"policy": "budget"}), (RISING, {"explore": "shadow"})],
    ids=["rising", "levels", "budget", "shadow"],
)
def test_the_interval_contains_the_true_rate(law: Law, options: Any) -> None:
    """At limits below, at and above the configured one, in about 95 % of all games."""
    missed = misses(law, **options)
    assert all(chance(missed[limit]) > SIGNIFICANT for limit in LIMITS), missed


def test_without_weights_the_interval_is_wrong() -> None:
    """The same test fails if rarely audited rounds do not count for those that are not audited."""
    missed = misses(RISING, weighted=False)
    assert all(chance(missed[limit]) < SIGNIFICANT for limit in LIMITS), missed
    assert min(missed.values()) > GAMES / 2


def test_the_interval_narrows_with_more_requests() -> None:
    """After many rounds only the width of a bin and some chance are left."""
    router, history = played(RISING, 40_000, epsilon=0.08)
    rows = {row["epsilon"]: row for row in what_if(router, history)}
    assert len(rows) == 12
    assert [row["expert_call_rate"] for row in rows.values()] == sorted(
        (row["expert_call_rate"] for row in rows.values()), reverse=True
    )
    now = rows[0.08]
    true = 1.0 - 0.95 * largest_safe(RISING, 0.08 / 0.95)
    assert now["expert_call_rate"] == pytest.approx(true, abs=0.05)
    assert now["high"] - now["low"] < 0.15


def test_audits_at_the_floor_are_counted() -> None:
    """Where every draft may be kept, only audits call the expert."""
    router, history = Router(0.2, seed=1), History()
    feed(router, history, [(0.3, 0.0)] * 3000)
    (row,) = (row for row in what_if(router, history) if row["epsilon"] == 0.2)
    assert row["expert_call_rate"] == pytest.approx(router.settings.exploration.floor)


def test_no_estimate_without_data() -> None:
    """Before the first round, without random audits, and where several scores compete, there is no estimate."""
    assert what_if(Router(0.1), History()) == []
    router, history = Router(0.1, policy="never"), History()
    history.decided(router.decide(0.5), 0.0, router)
    assert what_if(router, history) == []
    router, history = Router(0.1, policy=Portfolio(scores={"one": 0.5, "two": 0.5})), History()
    history.decided(router.decide({"one": 0.1, "two": 0.2}), 0.0, router)
    assert what_if(router, history) == []


def test_unknown_losses_count_as_losses() -> None:
    """Open outcomes raise the estimate, and known ones lower it again."""
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
    """The losses before a drift do not count after it."""
    router, history = Router(0.1, 0.1, seed=5), History()
    feed(router, history, [(0.5, 0.0)] * 1000)
    easy = what_if(router, history)[4]
    feed(router, history, [(0.5, 1.0)] * 600)
    assert router.epoch > 1
    hard = what_if(router, history)[4]
    assert easy["expert_call_rate"] == pytest.approx(0.05)
    assert hard["expert_call_rate"] == pytest.approx(1.0)
