"""Replays: the metrics, the oracle, and that equal seeds give equal replays."""

from functools import partial
from typing import Literal

import numpy as np
import pytest

from bpac.errors import InputError
from bpac.replay.metrics import replay_metrics
from bpac.replay.oracle import oracle_expert_call_rate, oracle_policy
from bpac.replay.replay import Replay
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.laws import PowerLaw
from bpac.replay.tables.table import Table
from bpac.routing.coins import Coins
from bpac.routing.policies import Fixed
from bpac.routing.router import Router


def stream(rows: int, seed: int = 0) -> Table:
    """A random table with tokens."""
    rng = np.random.default_rng(seed)
    uncertainty, loss = PowerLaw(0.5, 1.0).draw(rows, rng)
    return Table(uncertainty, loss, draft_tokens=np.full(rows, 10.0), expert_tokens=np.full(rows, 100.0))


def portfolio(coins: Coins) -> Router:
    """A fresh default router."""
    return Router(0.08, 0.1, coins=coins)


def test_the_metrics_are_those_of_the_paper() -> None:
    """ECP, ER and TP on a table that is small enough to compute them by hand."""
    table = Table(np.array([0.1, 0.2, 0.9, 0.95]), np.array([1.0, 0.0, 1.0, 0.0]),
                  np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 20.0, 30.0, 40.0]))  # fmt: skip
    run = replay_metrics(
        *Replay(table, lambda coins: Router(0.1, policy=Fixed(0.5), coins=coins), order="given").run(0)
    )
    assert run.expert_call_rate == 0.5
    assert run.empirical_risk == 0.25
    assert run.token_ratio == pytest.approx((10 + 70) / 100)


def test_empirical_risk_counts_drafts_that_are_audited_in_the_shadow() -> None:
    """With ``explore="shadow"`` a draft below the threshold is served even when it is audited."""
    table = Table(np.full(50, 0.1), np.ones(50))
    replay = Replay(table, lambda coins: Router(0.1, policy=Fixed(0.5, explores=0.5), explore="shadow", coins=coins))
    run = replay_metrics(*replay.run(0))
    assert 0.0 < run.expert_call_rate < 1.0
    assert run.empirical_risk == 1.0


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5])
def test_the_oracle_has_the_largest_safe_threshold(epsilon: float) -> None:
    """Its risk is at most ε, and that of the next larger threshold is above; many scores are equal."""
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
    run = replay_metrics(*Replay(table, lambda coins: Router(epsilon, policy=policy, coins=coins)).run(0))
    assert run.expert_call_rate == pytest.approx(oracle_expert_call_rate(table, epsilon), abs=0.05)


def test_runs_differ_and_can_be_repeated() -> None:
    """Runs of a replay differ from each other, and the number of processes changes none of them."""
    replay = Replay(stream(400), portfolio, runs=4, seed=3)
    alone, shared = replay.run_all(workers=1), replay.run_all(workers=2)
    plain = [(run.expert_call_rate, run.empirical_risk, run.threshold) for run in alone]
    assert plain == [(run.expert_call_rate, run.empirical_risk, run.threshold) for run in shared]
    assert len(set(plain)) > 1


def test_late_and_lost_feedback_cost_expert_calls() -> None:
    """With fixed exploration rates, outcomes that arrive late or never increase the expert calls."""
    table = stream(3000)
    latched = partial(Router, 0.1, memory="latched")
    prompt, late, lost = (
        replay_metrics(
            *Replay(table, lambda coins: latched(coins=coins), order="given", delay=Delay.parse(text)).run(0)
        ).expert_call_rate
        for text in ("none", "losses:30", "lost:0.2")
    )
    assert prompt < late
    assert prompt < lost


INVALID = ["", "never", "independent:x", "independent:", "losses:-1", "lost:0.5", "none:3", "none:", "losses:nan"]


@pytest.mark.parametrize("text", INVALID)
def test_invalid_delays_are_refused(text: str) -> None:
    """The error quotes the text and lists what is possible."""
    with pytest.raises(InputError, match="none, independent:MEAN"):
        Delay.parse(text)


def test_zero_runs_and_negative_seeds_are_refused() -> None:
    """A replay needs at least one run and a seed of at least 0."""
    with pytest.raises(InputError, match="at least 1"):
        Replay(stream(10), portfolio, runs=0)
    with pytest.raises(InputError, match="seed must be at least 0"):
        Replay(stream(10), portfolio, seed=-1)


@pytest.mark.parametrize("delay", ["none", "losses:5"])
@pytest.mark.parametrize("explore", ["serve", "shadow"])
def test_a_traced_replay_records_every_decision(explore: Literal["serve", "shadow"], delay: str) -> None:
    """With ``trace`` the path contains every decision in order, and everything else is as without it."""
    replay = Replay(stream(600), lambda coins: Router(0.1, explore=explore, coins=coins), delay=Delay.parse(delay))
    (_, path), (_, untraced) = replay.run(0, trace=True), replay.run(0)
    assert [decision.step for decision in path.decisions] == list(range(1, 601))
    assert path.call_expert.tolist() == untraced.call_expert.tolist()
    assert path.serve_draft.tolist() == untraced.serve_draft.tolist()
    assert path.threshold == untraced.threshold > 0.0
    assert not untraced.decisions
