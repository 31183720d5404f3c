"""Hours in which the expert is cheap or busy, in replays and in ``bpac reproduce cheap-hours``."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bpac.cli.program import main
from bpac.hours import Hours
from bpac.replay.metrics import replay_metrics
from bpac.replay.replay import Replay
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.expert_hours import ExpertHours
from bpac.replay.studies.on_tables.cheap_hours import EPSILONS, WAYS
from bpac.replay.tables.builtin import builtin_table
from bpac.replay.tables.writing import write_table
from bpac.routing.policies import Portfolio
from tests.cli.running import run_json

NIGHT, DAY = (Hours.read("00:00-12:00"),), (Hours.read("12:00-00:00"),)
REPLAY = Replay(builtin_table("bbh-like", rows=1200), RouterFactory(Portfolio(), 0.15, 0.1))


def least_propensities(replay: Replay) -> tuple[np.ndarray, np.ndarray]:
    """The least propensities of a run while a threshold is open, in the first half of each day and in the second."""
    decisions = replay.run(0, trace=True)[1].decisions
    rates = np.array([decision.least_propensity if decision.threshold else np.nan for decision in decisions])
    first = np.arange(len(rates)) % 200 < 100
    return rates[first & ~np.isnan(rates)], rates[~first & ~np.isnan(rates)]


@pytest.mark.parametrize("drafting", [Drafting(), Drafting(8)], ids=["one at a time", "in flight"])
def test_audits_are_made_in_cheap_hours_and_not_in_busy_ones(drafting: Drafting) -> None:
    """By the hours of the arrival; a router that does not know the hours has the same rates in all of them."""
    cheap = ExpertHours(NIGHT, 0.1, queries_per_day=200)
    night, day = least_propensities(replace(REPLAY, hours=cheap, drafting=drafting))
    assert night.mean() > day.mean() + 0.1
    night, day = least_propensities(
        replace(REPLAY, hours=ExpertHours(busy=DAY, queries_per_day=200), drafting=drafting)
    )
    assert day.max() == 0.05 < night.max()


def test_hours_that_the_router_does_not_know_change_the_cost_and_nothing_else() -> None:
    """Every call counts at the price of its hour."""
    plain = replay_metrics(*REPLAY.run(0))
    hours = ExpertHours(NIGHT, 0.25, known=False, queries_per_day=200)
    priced = replay_metrics(*replace(REPLAY, hours=hours).run(0))
    assert (priced.expert_call_rate, priced.threshold) == (plain.expert_call_rate, plain.threshold)
    assert plain.expert_cost is None
    assert priced.expert_cost is not None
    calls = replace(REPLAY, hours=hours).run(0)[1].call_expert
    prices = np.where(np.arange(1200) % 200 < 100, 0.25, 1.0)
    assert priced.expert_cost == pytest.approx(float((prices * calls).mean()))


def test_runs_begin_at_different_times_of_the_day() -> None:
    """Otherwise the start of every run, when most audits are made, would always be cheap or never."""
    hours = ExpertHours(NIGHT, 0.5)
    cheap = [hours.of_run(number).price_of(1) for number in range(20)]
    assert 8 <= cheap.count(0.5) <= 12


def test_replay_reports_the_cost_with_and_without(capsys: pytest.CaptureFixture[str]) -> None:
    """The hours are written as in a route; without them there is no such cost; cascades have no such option."""
    command = ["replay", "builtin:bbh-like", "--runs", "2"]
    hours = ["--cheap-hours", "16:30-00:30,06:00-07:00", "--cheap-price", "0.25", "--queries-per-day", "300"]
    report = run_json(capsys, *command, *hours)
    assert 0.0 < report["expert_cost"]["mean"] < report["expert_call_rate"]["mean"]
    assert 0.0 < report["expert_cost_if_unknown"]["mean"] < 1.0
    assert "expert_cost" not in run_json(capsys, *command)
    assert main([*command, "--busy-hours", "08:00-20:00"]) == 0
    assert "\n  expert cost   " in capsys.readouterr().out
    assert main([*command, "--policy", "never", *hours]) == 0
    assert "as much as if the hours are unknown" in capsys.readouterr().out
    for options, message in (
        (["--cheap-hours", "25:00-06:00"], "expected hours in UTC"),
        (["--cheap-hours", "01:00-06:00", "--cheap-price", "2"], "cheap-price must be at most 1"),
        (["--busy-hours", "01:00-06:00", "--queries-per-day", "0"], "queries-per-day must be at least 1"),
    ):
        assert main([*command, *options]) == 2
        assert message in capsys.readouterr().err
    assert main(["replay", "builtin:effort-like", *hours]) == 2
    assert "--cheap-hours is for tables of two models" in capsys.readouterr().err


def test_the_study_prints_calls_cost_and_promise(tmp_path: Path) -> None:
    """One row for each stream, ε and thing that the router may know, and a picture."""
    write_table(builtin_table("bbh-like", rows=300), tmp_path / "answers.csv")
    out = ["--runs", "2", "--workers", "1", "--out", str(tmp_path / "report")]
    assert main(["reproduce", "cheap-hours", "--tables", str(tmp_path / "answers.csv"), *out]) == 0
    rows = list(csv.DictReader((tmp_path / "report" / "cheap-hours.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == len(EPSILONS) * len(WAYS)
    for row in rows:
        assert 0.0 < float(row["cost_mean"]) <= float(row["expert_call_rate_mean"]) <= 1.0
        assert float(row["unsafe_share"]) in {0.0, 0.5, 1.0}
    assert (tmp_path / "report" / "cheap-hours.svg").exists()
