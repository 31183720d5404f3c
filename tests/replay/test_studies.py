"""The studies show what they claim: drift and recovery, hostile streams, the certificate, and the paper's orderings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bpac.replay.parallel import Engine, run_tasks
from bpac.replay.studies.certificate import CertificateTask
from bpac.replay.studies.comparison import ComparisonStudy
from bpac.replay.studies.drift import PHASE, DriftTask
from bpac.replay.studies.experiments import RoutingMethod, named_experiment
from bpac.replay.studies.hostile import ATTACKS, HostileTask
from bpac.replay.studies.replay_results import ReplayResult
from bpac.routing.policies import Budget, Portfolio

pytestmark = pytest.mark.promise
ONE_PROCESS = Engine(workers=1)
PORTFOLIO = RoutingMethod("portfolio", Portfolio(), 0.08)
LATCHED = RoutingMethod("latched", Portfolio(memory="latched"), 0.08)
BUDGET = RoutingMethod("budget", Budget(), 0.08)


def twenty_runs(task: DriftTask | HostileTask | CertificateTask, keep: Path) -> dict[str, NDArray[Any]]:
    """The arrays of 20 runs."""
    return dict(run_tasks([task], 20, keep, ONE_PROCESS)[0])


def test_the_drift_alarm_recovers_and_latched_thresholds_do_not(tmp_path: Path) -> None:
    """When questions become hard, the alarmed memory is safe again within the hard phase; the latched one never is."""
    assert np.median(twenty_runs(DriftTask(PORTFOLIO), tmp_path)["recovery"]) < PHASE / 2
    assert np.isinf(twenty_runs(DriftTask(LATCHED), tmp_path)["recovery"]).all()


def test_the_budget_withstands_attacks_that_break_the_latched_portfolio(tmp_path: Path) -> None:
    """On every hostile stream the average loss stays below ε with ``budget`` in 19 of 20 runs; latched wealth fails."""
    for attack in ATTACKS:
        assert twenty_runs(HostileTask(BUDGET, attack), tmp_path)["above"].sum() <= 1
    assert twenty_runs(HostileTask(LATCHED, "ambush"), tmp_path)["above"].all()


def test_the_certificate_bounds_the_actual_loss(tmp_path: Path) -> None:
    """In all but a few of 20 runs the actual loss is within the bounds at every recorded step."""
    bounds = twenty_runs(CertificateTask(PORTFOLIO, "mmlu-pro-then-bbh"), tmp_path)["bounds"]
    lower, served, upper = (bounds[:, k] for k in range(3))
    missed = ((served < lower - 1e-9) | (served > upper + 1e-9)).any(axis=1)
    assert missed.sum() <= 7, "with 20 runs at 2α = 0.2, more misses have a probability below 1 %"
    assert served[:, -1].min() > 0.0


def test_methods_are_ordered_as_in_the_paper(tmp_path: Path) -> None:
    """O-naive exceeds ε, Hoeffding nearly always calls the expert, offline PAC fails under shift, adaptive bets win."""
    names = ("baselines-mmlu-pro-like", "baselines-bbh-like", "shift", "bets", "exploration", "delays")
    studies = [ComparisonStudy(named_experiment(name)) for name in names]
    arrays = iter(run_tasks([task for study in studies for task in study.tasks()], 12, tmp_path, ONE_PROCESS))
    results = {study.name: [ReplayResult.of(task, next(arrays)) for task in study.tasks()] for study in studies}

    def means(name: str, metric: str) -> dict[str, float]:
        return {result.method.label: result.final(metric)[0] for result in results[name]}

    for name in names[:2]:
        risk, calls = means(name, "empirical_risk"), means(name, "expert_call_rate")
        assert risk["O naive"] > 0.08 > risk["portfolio"] > risk["paper"]
        assert calls["IPS Hoeffding"] > 0.95
        assert calls["portfolio"] < calls["paper"]
    shift = means("shift", "empirical_risk")
    assert shift["offline PAC"] > 0.05 > max(shift["paper"], shift["portfolio"])
    bets = means("bets", "expert_call_rate")
    assert bets["portfolio"] < bets["adaptive"] < bets["fixed"]
    for label in ("paper", "portfolio"):
        rates = {r.method.at: r.final("expert_call_rate")[0] for r in results["exploration"] if r.method.label == label}
        assert min(rates, key=rates.__getitem__) == 0.0, "its own schedule is better than every fixed rate"
    delays = means("delays", "expert_call_rate")
    assert delays["losses late by 60 requests"] == pytest.approx(delays["portfolio"], abs=0.05)
    assert delays["a tenth lost"] > delays["portfolio"] + 0.1
    for compared in results.values():
        for result in compared:
            if result.method.label in ("paper", "portfolio", "adaptive"):
                assert result.paths[:, 0].mean(axis=0).max() <= result.method.epsilon
