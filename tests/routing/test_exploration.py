import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from bpac import Router
from bpac.betting.payoff import Terms
from bpac.routing.coins import ListedCoins
from bpac.routing.exploration.gain_schedules import GainDriven, WhileItPays
from bpac.routing.exploration.schedules import Constant, NoExploration, TwoStage
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import Portfolio
from tests.routing.streams import STREAMS, stream
from tests.transcriptions import rounded_down

TERMS = Terms(0.12, 0.05)


def gain(traffic: list[float], losses: list[tuple[float, float]], threshold: float) -> float:
    """Section 3: ``(F(top) − F(û)) / F(û)``, on scores rounded to 6 bits; without end while nothing is accepted."""
    scores = np.array([rounded_down(score, 6) for score in traffic])
    budget = 0.12 * len(traffic)
    top = max(
        float((scores < u).mean())
        for u in (0.0, *scores, 2.0)
        if u == 0.0 or sum(weight for score, weight in losses if rounded_down(score, 6) < u) <= budget
    )
    accepted = float((scores < rounded_down(threshold, 6)).mean())
    return (top - accepted) / accepted if accepted else math.inf


def gain_driven(share: float, rounds: int, audits: float) -> float:
    """Section 3: ``clip(0.3 · gain, 0.05, 0.7)``."""
    return min(max(0.3 * share, 0.05), 0.7)


def while_it_pays(share: float, rounds: int, audits: float) -> float:
    """0.9 while ``audits < 0.25 · max(rounds, 300) · gain``, then 0.05."""
    return 0.9 if audits < 0.25 * max(rounds, 300) * share else 0.05


def until_paid(share: float, rounds: int, audits: float) -> float:
    """Rounds at 0.9 until ``audits = 0.25 · max(rounds, 300) · gain``; at 0.05 no limit, and 0 if it is not known."""
    if share == math.inf:
        return 0.0
    missing = 0.25 * max(rounds, 300) * share - audits
    return math.ceil(missing / 0.9) if missing > 0.0 else math.inf


def unlimited(share: float, rounds: int, audits: float) -> float:
    """Looks depend on the number of rounds alone."""
    return math.inf


Formula = Callable[[float, int, float], float]


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize(
    ("schedule", "wanted", "longest", "least_rates"),
    [
        (GainDriven(every=40), gain_driven, unlimited, 3),
        (WhileItPays(horizon=300, every=40), while_it_pays, until_paid, 2),
        (WhileItPays(horizon=300, every=40, in_time=False), while_it_pays, unlimited, 2),
    ],
    ids=["gain", "while-it-pays", "late"],
)
def test_exploration_follows_the_gain(
    kind: str, schedule: GainDriven | WhileItPays, wanted: Formula, longest: Formula, least_rates: int
) -> None:
    """The rate in force is the one that followed from traffic and weighted losses when it was last computed.

    It is computed again when the stream has grown by a quarter, or when the audits that pay have been made.
    """
    rows = stream(kind, 800)
    policy = Portfolio(memory="revocable")
    router = Router(0.12, 0.1, policy, exploration=schedule, coins=ListedCoins([row.coin for row in rows]))
    traffic: list[float] = []
    losses: list[tuple[float, float]] = []
    rate, rates, audits, next_look = schedule.most, set(), 0.0, 40
    for row in rows:
        decision = router.decide(row.uncertainty)
        if decision.threshold > 0.0:
            assert decision.least_propensity == pytest.approx(rate)
            rates.add(round(rate, 6))
        traffic.append(row.uncertainty)
        audits += rate if decision.threshold > 0.0 else 1.0
        if len(traffic) == next_look:
            seen = gain(traffic, losses, decision.threshold), len(traffic), audits
            rate = wanted(*seen)
            next_look += int(max(40, min(len(traffic) // 4, longest(*seen))))
        if decision.call_expert:
            router.observe(decision, row.loss)
            losses.append((row.uncertainty, 0.95 * row.loss / decision.propensity))
    assert len(rates) >= least_rates, "the rate must move"


@pytest.mark.parametrize("schedule", [GainDriven(every=3), WhileItPays(every=3)])
def test_nothing_that_looks_safe_is_explored_at_the_floor(schedule: GainDriven | WhileItPays) -> None:
    """Where even the lowest scores lose, there is nothing to gain."""
    rates = schedule.start(TERMS)
    router = Router(0.12, policy=Portfolio(), seed=1)
    assert rates.rate(1) == schedule.most
    for _ in range(3):
        decision = router.decide(0.25)
        rates.charge(decision)
        rates.decided(decision._replace(threshold=0.5))
    assert rates.rate(4) == 0.05


@pytest.mark.parametrize("schedule", [GainDriven(every=5), WhileItPays(horizon=0, every=5)])
def test_learned_rates_continue_from_their_saved_state(schedule: GainDriven | WhileItPays) -> None:
    """Rates loaded from a state, also one written between two looks, go on as those that wrote it."""
    steady, copy = schedule.start(TERMS), schedule.start(TERMS)
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
    assert (copy.rate(1), copy.steady_after) == (steady.rate(1), steady.steady_after)


def test_only_the_alarmed_memory_leaves_the_papers_schedule() -> None:
    """The default explores while it pays; latched and revocable keep the two stages they are defined with."""
    assert Portfolio().exploration == WhileItPays()
    assert Portfolio(memory="latched").exploration == Portfolio(memory="revocable").exploration == TwoStage()


@pytest.mark.parametrize(
    ("schedule", "floor", "rates"),
    [
        (TwoStage(), 0.05, [0.7, 0.7, 0.05, 0.05]),
        (TwoStage(0.5, 0.2, 0), 0.2, [0.2, 0.2, 0.2, 0.2]),
        (Constant(0.3), 0.3, [0.3] * 4),
        (NoExploration(), 0.0, [0.0] * 4),
    ],
)
def test_schedules_never_go_below_their_floor(schedule: TwoStage, floor: float, rates: list[float]) -> None:
    """Warm-up and deployment, one rate, or none: never below the floor, and steady from the step they name."""
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
def test_a_tiny_exploration_rate_keeps_the_threshold(memory: str) -> None:
    """At a rate of 1e-6 wealth hardly moves once drafts are kept; the router keeps its threshold."""
    router = Router(0.2, 0.1, memory=memory, exploration=Constant(1e-6), seed=1)
    router.observe(router.decide(0.5), 1.0)
    while router.threshold == 0.0:
        router.observe(router.decide(0.2), 0.0)
    assert router.threshold == 0.5
    for _ in range(20):
        assert not router.decide(0.1).call_expert
    assert router.threshold == 0.5


@pytest.mark.no_cover
@pytest.mark.parametrize("whole_game", [True, False])
def test_after_an_alarm_as_much_traffic_is_expected_as_the_whole_game_had(whole_game: bool) -> None:
    """A long game explores longer after a drift than a new one would; a rebuilt router has the same rates."""
    entries: list[Entry] = []
    router = Router(0.1, exploration=WhileItPays(whole_game=whole_game), seed=1, journal=entries.append)
    dice = random.Random(1)
    expected: list[int] = []
    for step in range(12_000):
        decision = router.decide(dice.random())
        if decision.call_expert:
            router.observe(decision, float(dice.random() < (0.3 if step > 9000 else 0.02)))
        if router.epoch > 1 and not expected:
            learner = router._route.current.learner
            assert learner is not None
            expected.append(learner.prospects.before)
    assert (expected[0] > 9000) == whole_game
    assert Router.rebuild(entries).snapshot() == router.snapshot()
    again = Router.rebuild([], snapshot=router.snapshot())._route.current.learner
    assert again is not None
    assert (again.prospects.before > 9000) == whole_game
