import numpy as np
import pytest

from bpac import Router
from bpac.betting.payoff import Terms
from bpac.routing.coins import ListedCoins
from bpac.routing.exploration import Constant, GainDriven, NoExploration, TwoStage
from bpac.routing.policies import Portfolio
from tests.routing.streams import STREAMS, stream
from tests.transcriptions import rounded_down

TERMS = Terms(0.12, 0.05)


def wanted(traffic: list[float], losses: list[tuple[float, float]], threshold: float) -> float:
    """Section 3: ``clip(0.3·(F(top) − F(û))/F(û), 0.05, 0.7)``; all there is to gain while nothing is accepted."""
    scores = np.array([rounded_down(score) for score in traffic])
    budget = 0.12 * len(traffic)
    top = max(
        float((scores < u).mean())
        for u in (0.0, *scores, 2.0)
        if u == 0.0 or sum(weight for score, weight in losses if rounded_down(score) < u) <= budget
    )
    current = float((scores < rounded_down(threshold)).mean())
    return min(max(0.3 * (top - current) / current, 0.05), 0.7) if current else 0.7


@pytest.mark.parametrize("kind", STREAMS)
def test_exploration_follows_the_gain(kind: str) -> None:
    """The rate in force is the one that traffic and weighted losses asked for at the last look."""
    rows = stream(kind, 600)
    schedule = GainDriven(every=40)
    policy = Portfolio(memory="revocable")
    router = Router(0.12, 0.1, policy, exploration=schedule, coins=ListedCoins([row.coin for row in rows]))
    traffic: list[float] = []
    losses: list[tuple[float, float]] = []
    rate, rates = 0.7, set()
    for row in rows:
        decision = router.decide(row.uncertainty)
        if decision.threshold > 0.0:
            assert decision.least_propensity == pytest.approx(rate)
            rates.add(round(rate, 6))
        traffic.append(row.uncertainty)
        if len(traffic) % 40 == 0:
            rate = wanted(traffic, losses, decision.threshold)
        if decision.call_expert:
            router.observe(decision, row.loss)
            losses.append((row.uncertainty, 0.95 * row.loss / decision.propensity))
    assert len(rates) > 3, "the rate must move"


def test_nothing_that_looks_safe_is_explored_at_the_floor() -> None:
    """Where even the lowest scores lose, there is nothing to gain."""
    rates = GainDriven(every=3).start(TERMS)
    router = Router(0.12, policy=Portfolio(), seed=1)
    for _ in range(3):
        decision = router.decide(0.25)
        rates.charge(decision)
        rates.decided(decision._replace(threshold=0.5))
    assert rates.rate(4) == 0.05


def test_gain_driven_rates_survive_their_state() -> None:
    """Rates loaded from a state go on as those that wrote it."""
    steady, copy = GainDriven(every=5).start(TERMS), GainDriven(every=5).start(TERMS)
    rows = stream("graded", 60)
    router = Router(0.12, policy=Portfolio(), seed=1)
    for index, row in enumerate(rows):
        if index == 33:
            copy.load(steady.state())
        decision = router.decide(row.uncertainty)._replace(threshold=0.4)
        for rates in (steady, copy)[: 1 + (index >= 33)]:
            rates.decided(decision)
            rates.charge(decision)
            rates.refund(decision, row.loss)
    assert copy.state() == steady.state()
    assert (copy.rate(1), copy.steady_after) == (steady.rate(1), None)


@pytest.mark.parametrize(
    ("schedule", "floor", "rates"),
    [
        (TwoStage(), 0.05, [0.7, 0.7, 0.05, 0.05]),
        (TwoStage(0.5, 0.2, 0), 0.2, [0.2, 0.2, 0.2, 0.2]),
        (Constant(0.3), 0.3, [0.3] * 4),
        (NoExploration(), 0.0, [0.0] * 4),
    ],
)
def test_schedules_without_memory(schedule: TwoStage, floor: float, rates: list[float]) -> None:
    """Warm-up and deployment, one rate, or none; never below the floor, and at the floor where they say they are."""
    started = schedule.start(TERMS)
    assert [started.rate(step) for step in (1, 200, 201, 10_000)] == rates
    assert schedule.floor == floor == started.rate(schedule.steady_after + 1)


@pytest.mark.parametrize("warmup_steps", [10, 50, 100, 200, 300, 500])
def test_the_warm_up_ends_where_the_paper_says(warmup_steps: int) -> None:
    """The rate recorded with each decision is that of the schedule at its step."""
    router = Router(0.08, policy="paper", exploration=TwoStage(warmup_steps=warmup_steps), seed=1)
    rates = [router.decide(1.0).least_propensity for _ in range(520)]
    assert rates == [0.7] * warmup_steps + [0.05] * (520 - warmup_steps)


@pytest.mark.parametrize("memory", ["alarmed", "latched", "revocable"])
def test_a_rate_so_small_that_a_round_wins_nothing(memory: str) -> None:
    """At a rate of 1e-13 wealth stands still once drafts are kept; the router goes on with the threshold it has."""
    router = Router(0.2, 0.1, memory=memory, exploration=Constant(1e-13), seed=1)
    router.observe(router.decide(0.5), 1.0)
    while router.threshold == 0.0:
        router.observe(router.decide(0.2), 0.0)
    assert router.threshold == 0.5
    for _ in range(20):
        assert not router.decide(0.1).call_expert
    assert router.threshold == 0.5
