"""Replays: the metrics, the oracle, and that a replay is repeatable."""

from functools import partial

import numpy as np
import pytest

from bpac.errors import InputError
from bpac.replay.replay import Replay, metrics, oracle_expert_call_rate, oracle_policy
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.laws import PowerLaw
from bpac.replay.tables.table import Table
from bpac.routing.coins import Coins
from bpac.routing.policies import Fixed, named_policy
from bpac.routing.router import Router


def stream(rows: int, seed: int = 0) -> Table:
    """A made-up table with tokens."""
    rng = np.random.default_rng(seed)
    uncertainty, loss = PowerLaw(0.5, 1.0).draw(rows, rng)
    return Table(uncertainty, loss, draft_tokens=np.full(rows, 10.0), expert_tokens=np.full(rows, 100.0))


def portfolio(coins: Coins) -> Router:
    """A fresh default router."""
    return Router(0.08, 0.1, coins=coins)


def test_metrics_are_those_of_the_paper() -> None:
    """ECP, ER and TP on a table small enough to work out by hand."""
    table = Table(np.array([0.1, 0.2, 0.9, 0.95]), np.array([1.0, 0.0, 1.0, 0.0]),
                  np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 20.0, 30.0, 40.0]))  # fmt: skip
    run = metrics(*Replay(table, lambda coins: Router(0.1, policy=Fixed(0.5), coins=coins), order="given").one(0))
    assert run.expert_call_rate == 0.5
    assert run.empirical_risk == 0.25
    assert run.token_ratio == pytest.approx((10 + 70) / 100)


def test_risk_counts_what_was_served_in_the_shadow() -> None:
    """With shadow audits a draft below the threshold is served even when it is audited."""
    table = Table(np.full(50, 0.1), np.ones(50))
    replay = Replay(table, lambda coins: Router(0.1, policy=Fixed(0.5, explores=0.5), explore="shadow", coins=coins))
    run = metrics(*replay.one(0))
    assert 0.0 < run.expert_call_rate < 1.0
    assert run.empirical_risk == 1.0


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5])
def test_the_oracle_takes_the_largest_safe_threshold(epsilon: float) -> None:
    """Its risk is at most ε, that of the next score above it is not; ties included."""
    table = stream(500)
    table = Table(np.round(table.uncertainty, 1), table.loss)
    policy = oracle_policy(table, epsilon)
    assert isinstance(policy, Fixed)

    def risk(threshold: float) -> float:
        return 0.95 * float(np.mean(table.loss * (table.uncertainty < threshold)))

    assert risk(policy.threshold) <= epsilon
    if policy.threshold < 1.0:
        above = np.nextafter(policy.threshold, 2.0)
        assert risk(float(above)) > epsilon
    run = metrics(*Replay(table, lambda coins: Router(epsilon, policy=policy, coins=coins)).one(0))
    assert run.expert_call_rate == pytest.approx(oracle_expert_call_rate(table, epsilon), abs=0.05)


def test_runs_differ_and_repeat() -> None:
    """Two runs of a replay differ, the same run twice does not, and worker processes change nothing."""
    replay = Replay(stream(400), portfolio, runs=4, seed=3)
    alone, shared = replay.all(workers=1), replay.all(workers=2)
    plain = [(run.expert_call_rate, run.empirical_risk, run.threshold) for run in alone]
    assert plain == [(run.expert_call_rate, run.empirical_risk, run.threshold) for run in shared]
    assert len(set(plain)) > 1


def test_late_feedback_makes_the_portfolio_no_bolder() -> None:
    """At fixed rates of exploration, outcomes that come late or never can only cost expert calls."""
    table = stream(3000)
    latched = partial(Router, 0.1, memory="latched")
    prompt, late, lost = (
        metrics(
            *Replay(table, lambda coins: latched(coins=coins), order="given", delay=Delay.parse(text)).one(0)
        ).expert_call_rate
        for text in ("none", "losses:30", "lost:0.2")
    )
    assert prompt < late
    assert prompt < lost


NONSENSE = ["", "never", "independent:x", "independent:", "losses:-1", "lost:0.5", "none:3", "none:", "losses:nan"]


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_delays_are_refused(text: str) -> None:
    """A delay that cannot be read is quoted, with what could be."""
    with pytest.raises(InputError, match="none, independent:MEAN"):
        Delay.parse(text)


def test_no_runs_at_all_are_refused() -> None:
    """A replay needs at least one run, and a seed that random sources take."""
    with pytest.raises(InputError, match="at least 1"):
        Replay(stream(10), portfolio, runs=0)
    with pytest.raises(InputError, match="seed must be at least 0"):
        Replay(stream(10), portfolio, seed=-1)


def test_a_traced_replay_keeps_its_decisions() -> None:
    """With ``trace`` the path has every decision, in order."""
    _, path = Replay(stream(50), lambda coins: Router(0.1, policy=named_policy("paper"), coins=coins)).one(
        0, trace=True
    )
    assert [decision.step for decision in path.decisions] == list(range(1, 51))
