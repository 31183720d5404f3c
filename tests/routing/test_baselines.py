import math
from typing import Any

import pytest

from bpac import Router
from bpac.betting.bounds.fixed_sample import calibrate
from bpac.betting.ledgers.levels import EvenLevels
from bpac.routing.coins import ListedCoins
from bpac.routing.exploration.schedules import Constant, Exploration
from bpac.routing.policies import Fixed, Hoeffding, Naive, Offline, Policy
from tests.routing.streams import STREAMS, stream
from tests.transcriptions import Row

EPSILON, ALPHA, RATE = 0.2, 0.2, 0.5
GRID = EvenLevels(101)


def largest(audits: list[tuple[float, float]], most: float) -> float:
    """The largest grid point whose audits below it weigh at most so much; 0 if there is none."""
    safe = [u / 100 for u in range(101) if sum(weight for score, weight in audits if score < u / 100) <= most]
    return max(safe, default=0.0) if most >= 0.0 else 0.0


def play(policy: Policy, rows: list[Row], exploration: Exploration | None = None, epsilon: float = EPSILON) -> Any:
    """Run a router over a stream, all outcomes known at once, and give every step's decision and threshold."""
    router = Router(epsilon, ALPHA, policy, exploration=exploration, coins=ListedCoins([row.coin for row in rows]))
    for row in rows:
        decision = router.decide(row.uncertainty)
        if decision.call_expert:
            router.observe(decision, row.loss)
        yield decision, row, router.threshold


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", STREAMS)
def test_naive_counts_unseen_losses_as_0(kind: str) -> None:
    """O-naive: the largest u whose seen losses average at most ε, those not seen counted as 0 (MATH 10)."""
    audits: list[tuple[float, float]] = []
    for decision, row, threshold in play(Naive(GRID), stream(kind, 200)):
        if decision.call_expert:
            audits.append((row.uncertainty, row.loss))
        assert threshold == largest(audits, EPSILON * decision.step + 1e-9)


@pytest.mark.no_cover
@pytest.mark.parametrize("union", [False, True], ids=["one point", "all points"])
@pytest.mark.parametrize("kind", STREAMS)
def test_hoeffding_leaves_room_for_its_interval(kind: str, union: bool) -> None:
    """IPS+Hoeffding: mean weighted loss and interval, at level ``6α/(π²t²)``, together at most ε (MATH 10)."""
    audits: list[tuple[float, float]] = []
    opened = False
    for decision, row, threshold in play(Hoeffding(union, GRID), stream(kind, 600), Constant(RATE)):
        if decision.call_expert:
            audits.append((row.uncertainty, (1.0 - RATE) * row.loss / decision.propensity))
        level = 6.0 * ALPHA / (math.pi * decision.step) ** 2
        width = (1.0 - RATE) / RATE * math.sqrt(math.log((101 if union else 1) / level) / (2 * decision.step))
        if decision.step % 7 == 0:
            assert threshold == largest(audits, decision.step * (EPSILON - width))
        opened = opened or threshold > 0.0
    assert opened, "the stream must open the threshold"


@pytest.mark.parametrize(("kind", "bound"), [("binary", None), ("graded", None), ("binary", "betting")])
def test_offline_calibrates_once(kind: str, bound: str | None) -> None:
    """Every query goes to the expert until the set is full; then the threshold is fixed, without exploration."""
    rows = stream(kind, 300)
    expected = bound or ("clopper-pearson" if kind == "binary" else "hoeffding-bentkus")
    scores, losses = [row.uncertainty for row in rows[:200]], [row.loss for row in rows[:200]]
    threshold = calibrate(scores, losses, 0.09, ALPHA, expected)
    assert 0.0 < threshold < 1.0
    for decision, row, after in play(Offline(200, bound), rows, epsilon=0.09):
        assert after == (threshold if decision.step >= 200 else 0.0)
        if decision.step > 200:
            assert decision.call_expert == (row.uncertainty >= threshold)


def test_offline_waits_for_every_outcome_of_its_set() -> None:
    """The set is its first rounds, in whatever order they are known; a loss that will never be known is 1."""
    rows = stream("binary", 60)
    router = Router(0.5, ALPHA, Offline(size=50))
    decisions = [router.decide(row.uncertainty) for row in rows]
    losses = [row.loss for row in rows[:50]]
    for decision in decisions[:0:-1]:
        router.observe(decision, rows[decision.step - 1].loss)
        assert router.threshold == 0.0
    router.forfeit(decisions[0])
    losses[0] = 1.0
    assert router.threshold == calibrate([row.uncertainty for row in rows[:50]], losses, 0.5, ALPHA) > 0.0


@pytest.mark.parametrize(
    ("policy", "calls"),
    [("always", [True] * 4), ("never", [False, False, False, True]), (Fixed(0.5), [False, False, True, True])],
)
def test_a_fixed_threshold_never_changes(policy: Any, calls: list[bool]) -> None:
    """Below the threshold the draft is kept, at it and above the expert is called; nothing that happens moves it."""
    router = Router(0.1, policy=policy)
    threshold = router.threshold
    for _ in range(20):
        decisions = [router.decide(score) for score in (0.0, 0.49, 0.5, 1.0)]
        assert [decision.call_expert for decision in decisions] == calls
        audits = [decision for decision in decisions if decision.call_expert]
        router.forfeit(audits[0])
        for decision in audits[1:]:
            router.observe(decision, 1.0)
    assert router.threshold == threshold


def test_the_oracle_explores() -> None:
    """A threshold set by hand may be audited at a rate, and then has a certificate like any other."""
    router = Router(0.1, policy=Fixed(0.5, explores=0.25), seed=1)
    decisions = [router.decide(0.2) for _ in range(2000)]
    assert {decision.propensity for decision in decisions} == {0.25}
    assert 400 < sum(decision.call_expert for decision in decisions) < 600
