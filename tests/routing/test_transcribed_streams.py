import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bpac import Router
from bpac.betting.ledgers.levels import EvenLevels
from bpac.betting.wealth.bets import FixedBet
from bpac.betting.wealth.thresholds import PriorThreshold
from bpac.routing.coins import ListedCoins
from bpac.routing.exploration.schedules import Constant, Exploration, TwoStage
from bpac.routing.policies import Paper, Policy, Portfolio
from bpac.routing.policies.stakes import DEFAULT_STAKES
from tests.routing.streams import STREAMS, drifting, stream
from tests.transcriptions import (
    AlarmTranscription,
    PaperTranscription,
    PortfolioTranscription,
    Row,
    rounded_down,
    transcribed_trace,
)

pytestmark = pytest.mark.no_cover

EPSILON, ALPHA, KEPT_SHARE = 0.12, 0.1, 0.95
GRID = EvenLevels(201)
PAPERS: dict[str, tuple[Policy, Callable[[], PaperTranscription]]] = {
    "paper": (Paper(), partial(PaperTranscription, EPSILON, ALPHA, KEPT_SHARE)),
    "paper with a prior": (
        Paper(rule=PriorThreshold(), grid=GRID),
        partial(PaperTranscription, EPSILON, ALPHA, KEPT_SHARE, points=201, prior=(1.0,) * 201),
    ),
    "paper with a fixed bet": (
        Paper(bet=FixedBet(0.05)),
        partial(PaperTranscription, EPSILON, ALPHA, KEPT_SHARE, fixed_bet=0.05),
    ),
}


def compare(policy: Policy, rows: list[Row], trace: Any, exploration: Exploration | None = None) -> list[float]:
    """Run a router beside a transcription, assert that every step agrees, and return the thresholds."""
    coins = ListedCoins([row.coin for row in rows])
    router = Router(EPSILON, ALPHA, policy, exploration=exploration, alpha_epochs="each", coins=coins)
    thresholds = []
    for row, expected in zip(rows, trace, strict=True):
        decision = router.decide(row.uncertainty)
        assert decision.threshold == pytest.approx(expected.threshold_before, abs=1e-9)
        assert decision.propensity == expected.propensity
        assert decision.least_propensity == expected.least_propensity
        assert decision.call_expert == expected.call_expert
        assert decision.epoch == expected.epoch
        if decision.call_expert:
            router.observe(decision, row.loss)
        assert router.threshold == pytest.approx(expected.threshold_after, abs=1e-9)
        thresholds.append(router.threshold)
    return thresholds


@pytest.mark.parametrize("variant", PAPERS)
@pytest.mark.parametrize("kind", STREAMS)
def test_the_papers_policy_agrees_at_every_step(kind: str, variant: str) -> None:
    """Algorithm 1 and its variants do what their transcription does, on every kind of stream."""
    policy, start = PAPERS[variant]
    rows = stream(kind, 800)
    thresholds = compare(policy, rows, transcribed_trace(start, rows, certain_while_closed=False))
    assert max(thresholds) > 0.0, "the stream must open the threshold"


@pytest.mark.parametrize("memory", ["revocable", "latched"])
@pytest.mark.parametrize("kind", STREAMS)
def test_the_portfolio_agrees_at_every_step(kind: str, memory: Any) -> None:
    """The portfolio does what section 3 says, on every kind of stream and with both memories."""
    rows = stream(kind, 1200)
    start = partial(
        PortfolioTranscription,
        EPSILON,
        ALPHA,
        KEPT_SHARE,
        [row.uncertainty for row in rows],
        latched=memory == "latched",
    )
    trace = transcribed_trace(start, rows, certain_while_closed=True)
    thresholds = compare(Portfolio(memory=memory), rows, trace)
    assert max(thresholds) > 0.0, "the stream must open the threshold"


@pytest.mark.parametrize("kind", STREAMS)
def test_the_portfolio_for_any_stream_agrees_at_every_step(kind: str) -> None:
    """With ``assume = "any"`` the bound is constant and each of the 161 thresholds has an equal prior (MATH 4)."""
    rows = stream(kind, 1200)
    start = partial(
        PortfolioTranscription,
        EPSILON,
        ALPHA / 161,
        0.7,
        [row.uncertainty for row in rows],
        round_down=partial(rounded_down, bits=4, octaves=20),
        constant_bound=0.7 / 0.3 - EPSILON,
    )
    trace = transcribed_trace(start, rows, certain_while_closed=True, warmup=(0.3, 0), floor=0.3)
    thresholds = compare(Portfolio(assume="any"), rows, trace, Constant(0.3))
    assert max(thresholds) > 0.0, "the stream must open the threshold"


def test_the_alarmed_portfolio_agrees_at_every_step() -> None:
    """Through a drift, the alarm raises exploration and then starts a new epoch exactly where section 3 says."""
    rows = drifting(2500, turn=1000)
    start = partial(
        PortfolioTranscription,
        EPSILON,
        ALPHA,
        KEPT_SHARE,
        [row.uncertainty for row in rows],
        latched=True,
        floor=0.05,
        **DEFAULT_STAKES._asdict(),
    )
    trace = list(transcribed_trace(start, rows, certain_while_closed=True, alarm=partial(AlarmTranscription, EPSILON)))
    compare(Portfolio(), rows, trace, TwoStage())
    assert {0.7, 0.05, 0.5, 1.0} == {step.propensity for step in trace}, "the alarm must make the router careful"
    assert trace[-1].epoch > 1, "the stream must ring the alarm"
    assert math.isclose(max(step.threshold_after for step in trace), 1.0)


@pytest.mark.parametrize("losing", [False, True], ids=["won", "lost"])
def test_a_threshold_never_latches_on_a_round_whose_outcome_is_still_to_come(losing: bool) -> None:
    """The round that would reach the bar is only counted with its outcome: lost, it certifies nothing above it."""
    scores = [0.5] * 200
    bettor = PortfolioTranscription(EPSILON, ALPHA, KEPT_SHARE, scores, latched=True)
    router = Router(EPSILON, ALPHA, Portfolio(memory="latched"), seed=1)
    won = 0
    while bettor.threshold == 0.0:
        bettor.settle(0.5, 1.0, 1.0, 0.0)
        won += 1
    for step in range(1, won + 1):
        decision = router.decide(0.5)
        router.observe(decision, 1.0 if losing and step == won else 0.0)
    assert router.threshold == (0.5 if losing else 1.0)
