"""The document: complete, equal to the router, and small enough."""

import json
import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from bpac.dashboard.decisions import DecisionView
from bpac.dashboard.document import Subject, game_document, policy_name, whole_document
from bpac.dashboard.estimates.wealth import wealth_curve
from bpac.dashboard.history.history import MOST_EVENTS, MOST_POINTS, History
from bpac.gateway.games.money.savings import SavingsReport
from bpac.gateway.http.dashboard.dashboard import MOST_FULL
from bpac.gateway.http.dashboard.game_list import MOST_GAMES
from bpac.replay.simulation.laws import PowerLaw
from bpac.routing.decision import Decision
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies import POLICIES, Fixed, Policy, Portfolio, named_policy
from bpac.routing.router import Router
from bpac.wire.usage import Usage
from tests.dashboard.played import played

LAW = PowerLaw(most=0.5, power=1.0, crowding=3.0)
ALL: dict[str, Policy] = {
    **POLICIES,
    "revocable": Portfolio(memory="revocable"),
    "any": Portfolio(assume="any"),
}
# The fields that the page reads; there may be more.
FIELDS = {
    "game", "route", "segment", "policy", "memory", "explore", "score", "loss", "epsilon", "alpha", "steps",
    "expert_calls", "expert_call_rate", "threshold", "epoch", "owed", "forfeits", "alarm", "certificate", "savings",
    "verdict", "clean_rounds_needed", "series", "events", "wealth", "uncertainty", "latency", "what_if",
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_every_policy_has_a_document(name: str) -> None:
    """It is JSON, has every field, and its numbers are those of the router."""
    router, history = played(LAW, 700, policy=ALL[name])
    decision = router.decide(1.0)
    history.decided(decision, 0.0, router)
    document = game_document(Subject("homework", "de", 3, "entropy", "judge"), router, history)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document.keys() >= FIELDS
    summary = router.summary().to_json()
    same = ["steps", "threshold", "expert_calls", "expert_call_rate", "owed", "forfeits", "epoch", "certificate"]
    assert {key: document[key] for key in same} == {key: summary[key] for key in same}
    assert (document["alarm"] or {}).get("level") == summary["alarm"]
    assert (document["route"], document["segment"], document["game"]) == ("homework", "de", 3)
    assert document["series"]["expert_calls"][-1] == summary["expert_calls"]
    assert sum(document["uncertainty"]["called"]) == summary["expert_calls"]
    assert (document["wealth"] is None) == (name not in ("portfolio", "revocable", "any", "paper", "paper-prior"))
    assert document["verdict"]["level"] in ("safe", "warming", "watch", "stopped", "broken")


@pytest.mark.parametrize("name", ["portfolio", "revocable", "any", "paper"])
@pytest.mark.parametrize("rounds", [0, 5, 1500])
def test_the_curve_is_the_wealth(name: str, rounds: int) -> None:
    """Each value is that of the router, and the goal is where a threshold is certified."""
    router, _ = played(LAW, rounds, policy=ALL[name])
    curve = wealth_curve(router)
    assert curve is not None
    thresholds, logs = curve["threshold"], curve["log_wealth"]
    assert thresholds == sorted(set(thresholds))
    assert len(thresholds) <= 200
    assert logs == pytest.approx([router.log_wealth(threshold) for threshold in thresholds], abs=1e-12)
    if name == "revocable" and router.threshold:
        # This memory follows the wealth: up to the threshold it is certified, just above it is not.
        assert all(log >= curve["goal"] for at, log in zip(thresholds, logs, strict=True) if at <= router.threshold)
        assert next(log for at, log in zip(thresholds, logs, strict=True) if at > router.threshold) < curve["goal"]


def test_a_level_that_lost_everything_does_not_overflow() -> None:
    """Many losses add up to more than 64 bits; the curve stays right."""
    router = Router(0.05, 0.1, policy=Portfolio(memory="latched"), seed=1)
    wealth: Any = router._route.bettor
    for level in range(1, 9):
        wealth._table.add(level, [-(1 << 61)] * 4)
    curve = wealth_curve(router)
    assert curve is not None
    assert curve["log_wealth"][-1] == router.log_wealth(1.0) < -1e6


def test_a_short_document_leaves_the_charts_out() -> None:
    """And nothing else."""
    router, history = played(LAW, 700)
    subject = Subject("homework")
    long, short = game_document(subject, router, history), game_document(subject, router, history, short=True)
    charts = {"series", "wealth", "uncertainty", "what_if"}
    assert all(short[name] is None for name in charts)
    assert {key: value for key, value in short.items() if key not in charts | {"events"}} == {
        key: value for key, value in long.items() if key not in charts | {"events"}
    }


def test_with_the_most_games_it_stays_below_two_megabytes() -> None:
    """Twenty-four games in full and the rest in short, each as large as a game can be."""
    router, history = Router(0.1, 0.1, memory="revocable", seed=1), History()
    for step in range(1, 8 * MOST_POINTS - 9):
        decision = router.decide(1.0)
        router.observe(decision, 0.0)
        # Numbers and texts as long as they can be.
        odd = decision._replace(uncertainty=(step * 0.618034) % 1.0, threshold=0.123456789 * (step // 3 % 2))
        history.decided(odd, 1.7e9 + step / 7, router, lambda step=step: (step * 12345, step * 67890.1234))  # type: ignore[misc]
    numbers: list[Any] = [123456789.12345] * len(fields(SavingsReport))
    savings = replace(
        SavingsReport(*numbers), usage={whose: Usage(*[10**12] * 4).to_json() for whose in ("draft", "expert", "judge")}
    )
    stage = dict.fromkeys(("count", "mean", "p50", "p90", "p99"), 0.12345678901234567)
    latency = [{"stage": name, **stage} for name in ("draft", "journal", "expert", "grading")]
    subject = Subject("r" * 60, "s" * 200, savings=savings, latency=latency)
    full = game_document(subject, router, history)
    assert len(full["series"]["step"]) > MOST_POINTS - 5
    assert len(full["events"]) == MOST_EVENTS
    short = game_document(subject, router, history, short=True)
    games = [full] * MOST_FULL + [short] * (MOST_GAMES - MOST_FULL)
    document = whole_document(games, title="bpac gateway", live=True, generated=1.7e9)
    assert len(json.dumps(document, separators=(",", ":")).encode()) < 2_000_000


def test_names_of_policies() -> None:
    """As in the configuration; a policy made in code is named by its class."""
    assert {policy_name(policy) for policy in POLICIES.values()} == POLICIES.keys()
    assert policy_name(named_policy("portfolio", "latched")) == "portfolio"
    assert policy_name(Fixed(0.3, 0.1)) == "fixed"


def test_a_game_that_learns_shows_its_scores() -> None:
    """Which score is in force, what it was fitted to, and its wealth; estimates are about the route's own score."""
    learn = LearnedScore(("length",), fit_at=(100,), least_losses=5.0)
    router, history = Router(0.15, 0.1, Portfolio(learn=learn), seed=2), History()
    rng = np.random.default_rng(0)
    for uncertainty, length, draw in rng.random((600, 3)).tolist():
        decision = router.decide(uncertainty, features=(length,))
        history.decided(decision, 0.0, router)
        if decision.call_expert:
            loss = float(draw < 0.6 * length**3)
            router.observe(decision, loss)
            history.resolved(decision, loss)
        if router.step == 10:
            early = game_document(Subject("homework"), router, history)
    assert early["clean_rounds_needed"] is not None
    assert early["what_if"] is not None
    document = game_document(Subject("homework"), router, history)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert [score["rounds"] for score in document["scores"]] == [None, 100]
    # Of the draft's own score, all uncertainties below 0.5 are half of the traffic; of the learned one, many more.
    histogram = document["uncertainty"]
    halves = sum(histogram["kept"][:16]) + sum(histogram["called"][:16])
    assert len(histogram["edges"]) == 33
    assert 250 < halves < 350
    assert document["what_if"]
    in_force = next(score for score in document["scores"] if score["in_force"])
    assert document["wealth"]["goal"] == pytest.approx(-math.log(0.09 * in_force["share"]))
    for threshold, log_wealth in zip(document["wealth"]["threshold"], document["wealth"]["log_wealth"], strict=True):
        assert log_wealth == pytest.approx(router.log_wealth(threshold))


def test_a_decision_by_a_learned_score_says_so() -> None:
    """The uncertainty that is compared with the threshold is not that of the route then."""
    decision = Decision(1, 0.2, 0.5, 0.05, 0.05, False, True, 1, (0.9, 0.2), features=(1.0,))
    texts = [DecisionView(one)._decision_text("request") for one in (decision, decision._replace(uncertainty=0.9))]
    assert texts[0].startswith("Learned score 0.2 is below the threshold 0.5")
    assert texts[1].startswith("Uncertainty 0.9 is not below the threshold 0.5")
