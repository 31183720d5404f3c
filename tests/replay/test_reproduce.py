"""Experiments: they resume, they repeat wherever they run, and they order the methods as the paper does."""

import csv
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bpac.cli.main import main
from bpac.errors import InputError
from bpac.replay.experiments import EXPERIMENTS, PUBLISHED, RoutingMethod, named_experiment
from bpac.replay.outcomes import Outcome
from bpac.replay.parallel import HERE, Engine, run_tasks
from bpac.replay.reproduce import NAMES, reproduce
from bpac.replay.simulation.certificates import CertificateTask
from bpac.replay.simulation.drift import PHASE, DriftTask
from bpac.replay.simulation.hostile import ATTACKS, HostileTask
from bpac.replay.studies import ComparisonStudy
from bpac.replay.tables.builtin import BENCHMARKS, builtin_table
from bpac.replay.tables.table import Table, write_table
from bpac.routing.policies import Budget, Portfolio

ONE_PROCESS = Engine(workers=1)
BETS = ComparisonStudy(named_experiment("bets"))


@dataclass(frozen=True, slots=True)
class Counted:
    """A task that leaves a file for every run it makes."""

    folder: Path

    def key(self) -> dict[str, Any]:
        """Always the same."""
        return {}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """Its own number."""
        (self.folder / f"{number}").touch(exist_ok=False)
        return {"number": np.array(number)}


def test_a_stopped_campaign_goes_on(tmp_path: Path) -> None:
    """Finished runs are not made again, half-written ones are, and the numbers are the same either way."""
    made = tmp_path / "made"
    made.mkdir()
    keep = tmp_path / "keep"
    run_tasks([Counted(made)], 10, keep, ONE_PROCESS)
    (keep / "left-behind.part").write_bytes(b"half")
    (result,) = run_tasks([Counted(made)], 23, keep, ONE_PROCESS)
    assert result["number"].tolist() == list(range(23))
    assert len(list(made.iterdir())) == 23


def test_a_stream_of_another_shape_is_another_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that were kept are not taken for those of a built-in stream that was shaped otherwise since."""
    task = BETS.tasks()[0]
    before = task.key()
    assert task.key() == before
    other = replace(BENCHMARKS[task.stream], law=replace(BENCHMARKS[task.stream].law, most=0.5))
    monkeypatch.setitem(BENCHMARKS, task.stream, other)
    assert task.key() != before


def test_the_number_of_processes_leaves_no_trace(tmp_path: Path) -> None:
    """One process and two give the same numbers to the last bit."""
    tasks = BETS.tasks()
    one, two = (run_tasks(tasks, 11, tmp_path / str(n), Engine(workers=n)) for n in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert first["paths"].shape == (11, 4, 100)
        assert np.array_equal(first["paths"], second["paths"])


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """A real Dask scheduler with two worker processes."""
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    log = tmp_path / "scheduler.log"
    processes = []
    try:
        with log.open("w") as out:
            processes.append(subprocess.Popen([*dask, "--no-dashboard"], stderr=out, stdout=out))
        address = ""
        while not address:
            assert processes[0].poll() is None, log.read_text()
            found = re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text())
            address = found[1] if found else ""
            time.sleep(0.02)
        for number in range(2):
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
            worker += ["--no-nanny", "--local-directory", str(tmp_path / str(number))]
            processes.append(subprocess.Popen(worker, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        yield address
    finally:
        for process in reversed(processes):
            process.kill()  # a worker that is asked to end politely may wait for its scheduler for ever
            process.wait()


@pytest.mark.filterwarnings("default")  # Dask's own
def test_a_cluster_gives_the_same_numbers(scheduler: str, tmp_path: Path) -> None:
    """On a real scheduler with two worker processes every number is the same to the last digit."""
    out = ["--runs", "11", "--out"]
    assert main(["reproduce", "bets", *out, str(tmp_path / "dask"), "--dask", scheduler]) == 0
    assert main(["reproduce", "bets", *out, str(tmp_path / "here")]) == 0
    for name in ("bets.csv", "bets-paths.csv"):
        assert (tmp_path / "dask" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.filterwarnings("default")
def test_a_scheduler_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says so, and nothing hangs."""
    arguments = ["reproduce", "bets", "--runs", "1", "--out", str(tmp_path), "--dask", "tcp://127.0.0.1:9"]
    assert main(arguments) == 2
    assert "--dask tcp://127.0.0.1:9: no scheduler answers there" in capsys.readouterr().err


def test_every_experiment_can_be_named() -> None:
    """Names are unique; one that is not known is answered with those that are."""
    assert len(set(NAMES)) == len(NAMES)
    assert {experiment.name for experiment in EXPERIMENTS} < set(NAMES)
    with pytest.raises(InputError, match="shift"):
        named_experiment("cold-fusion")
    with pytest.raises(InputError, match="runs must be at least 1"):
        run_tasks([], 0, Path("unused"))
    with pytest.raises(InputError, match="nothing to reproduce"):
        reproduce([], 1, Path("unused"))


def test_a_report_is_one_page_that_needs_nothing_else(tmp_path: Path) -> None:
    """Tables, pictures and a list of contents in one file, without a link to anything outside it."""
    written = reproduce(["stall", "bets", "bets"], 1, tmp_path).written
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert written[-1].name == "report.html"
    assert page.count("<section") == page.count("<svg") == 2
    assert 'href="#bets"' in page
    assert 'src="' not in page
    assert 'href="http' not in page
    rows = (tmp_path / "bets.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("method,at,epsilon,empirical_risk_mean,empirical_risk_std,expert_call_rate_mean")
    assert len(rows) == 1 + len(BETS.experiment.methods)


def test_the_papers_figures_stand_beside_ours(tmp_path: Path) -> None:
    """The page begins with a table: the paper's figures, ours, and the oracle's."""
    reproduce(["stall", "summary"], 1, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.index('id="summary"') < page.index('id="stall"')
    rows = (tmp_path / "summary.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + 4 * len(PUBLISHED)
    assert sum("%" in row.rsplit(",", 1)[1] for row in rows) == len(PUBLISHED)


@pytest.mark.promise
def test_every_study_writes_its_section(tmp_path: Path) -> None:
    """All names at once: a section each, with numbers, and a picture for all but the table of prompting methods."""
    reproduce(["all"], 1, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in NAMES:
        assert f'<section id="{name}">' in page
        assert (tmp_path / f"{name}.csv").exists()
        assert (tmp_path / f"{name}.png").exists() == (tmp_path / f"{name}.svg").exists() == (name != "prompting")
    assert "nan" not in page.lower().replace("finance", "")


def test_what_you_would_save_on_your_own_tables(tmp_path: Path) -> None:
    """``--tables`` shows both policies and the oracle on each table, at two promises; without tokens TP is empty."""
    whole = builtin_table("math-like", rows=600)
    write_table(whole, tmp_path / "answers.csv")
    write_table(Table(whole.uncertainty, whole.loss), tmp_path / "bare.jsonl.gz")
    (tmp_path / "other").mkdir()
    write_table(whole, tmp_path / "other" / "answers.csv")
    places = [str(tmp_path / name) for name in ("answers.csv", "bare.jsonl.gz", "other/answers.csv")]
    assert main(["reproduce", "--tables", *places, "--runs", "2", "--out", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert page.count("<section") == 2 + 3
    assert places[0] in page, "two files of one name are told apart by their places"
    rows = list(csv.reader((tmp_path / "report" / "gap-0.05.csv").read_text(encoding="utf-8").splitlines()))
    assert [row[4] for row in rows if row[0] == "bare.jsonl.gz"] == ["", "", ""]
    assert len(rows) == 1 + 3 * 3


def test_graded_answers_of_prompting_methods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A method's own graded answers make its row; without them the row says what to give."""
    table = Table(np.full(4, 0.5), np.array([0.0, 1.0, 0.0, 0.0]), np.full(4, 10.0), np.full(4, 40.0))
    write_table(table, tmp_path / "draft.csv")
    arguments = ["reproduce", "prompting", "--runs", "1", "--out", str(tmp_path)]
    assert main([*arguments, "--graded", f"Chain of Draft={tmp_path / 'draft.csv'}"]) == 0
    rows = (tmp_path / "prompting.csv").read_text(encoding="utf-8")
    assert "Chain of Draft,4 of yours,your graded answers,25.0 %,25.0 %,none" in rows
    assert 'NoThinking,,"none yet: give --graded' in rows
    assert main([*arguments, "--graded", "NoThinking"]) == 2
    assert "give METHOD=TABLE" in capsys.readouterr().err


def _one(task: DriftTask | HostileTask | CertificateTask, runs: int, keep: Path) -> dict[str, NDArray[Any]]:
    return dict(run_tasks([task], runs, keep, HERE)[0])


@pytest.mark.promise
def test_drift_is_noticed_and_recovered_from(tmp_path: Path) -> None:
    """After the turn the alarmed memory is safe again within the hard phase; the latched one never is."""
    alarmed = _one(DriftTask(RoutingMethod("", Portfolio(), 0.08)), 20, tmp_path)
    latched = _one(DriftTask(RoutingMethod("", Portfolio(memory="latched"), 0.08)), 20, tmp_path)
    assert np.median(alarmed["recovery"]) < PHASE / 2
    assert np.isinf(latched["recovery"]).all()


@pytest.mark.promise
def test_the_budget_stands_where_the_portfolio_falls(tmp_path: Path) -> None:
    """Whatever the attack, the budget's average stays below ε in at least 19 of 20 runs; latched wealth falls."""
    for attack in ATTACKS:
        assert _one(HostileTask(RoutingMethod("", Budget(), 0.08), attack), 20, tmp_path)["above"].sum() <= 1
    assert _one(HostileTask(RoutingMethod("", Portfolio(memory="latched"), 0.08), "ambush"), 20, tmp_path)[
        "above"
    ].all()


@pytest.mark.promise
def test_the_certificate_holds_what_was_served(tmp_path: Path) -> None:
    """At every look in all but a few of 20 runs the loss really served lies between the bounds."""
    bounds = _one(CertificateTask(RoutingMethod("", Portfolio(), 0.08), "mmlu-pro-then-bbh"), 20, tmp_path)["bounds"]
    lower, served, upper = (bounds[:, k] for k in range(3))
    missed = ((served < lower - 1e-9) | (served > upper + 1e-9)).any(axis=1)
    assert missed.sum() <= 7, "20 runs at 2α = 0.2 miss more in less than a percent of all cases"
    assert served[:, -1].min() > 0.0


@pytest.mark.promise
def test_the_orderings_of_the_paper(tmp_path: Path) -> None:
    """O-naive violates, Hoeffding nearly always asks, offline PAC fails under shift, adaptive beats fixed."""
    names = ("baselines-mmlu-pro-like", "baselines-bbh-like", "shift", "bets", "exploration", "delays", "scores")
    studies = [ComparisonStudy(named_experiment(name)) for name in names]
    arrays = iter(run_tasks([task for study in studies for task in study.tasks()], 12, tmp_path, ONE_PROCESS))
    results = {study.name: [Outcome.of(task, next(arrays)) for task in study.tasks()] for study in studies}

    def figures(name: str, metric: str, outcomes: list[Outcome] | None = None) -> dict[str, float]:
        return {outcome.method.label: outcome.final(metric)[0] for outcome in outcomes or results[name]}

    for name in names[:2]:
        risk, calls = figures(name, "empirical_risk"), figures(name, "expert_call_rate")
        assert risk["O naive"] > 0.08 > risk["portfolio"] > risk["paper"]
        assert calls["IPS Hoeffding"] > 0.95
        assert calls["portfolio"] < calls["paper"]
    shift = figures("shift", "empirical_risk")
    assert shift["offline PAC"] > 0.05 > max(shift["paper"], shift["portfolio"])
    bets = figures("bets", "expert_call_rate")
    assert bets["portfolio"] < bets["adaptive"] < bets["fixed"]
    for label in ("paper", "portfolio"):
        rates = {o.method.at: o.final("expert_call_rate")[0] for o in results["exploration"] if o.method.label == label}
        assert min(rates, key=rates.__getitem__) == 0.0, "its own schedule beats every fixed rate"
    delays = figures("delays", "expert_call_rate")
    assert delays["losses late by 60 requests"] == pytest.approx(delays["portfolio"], abs=0.05)
    assert delays["a tenth lost"] > delays["portfolio"] + 0.1
    for outcomes in results.values():
        for outcome in outcomes:
            if outcome.method.label in ("paper", "portfolio", "adaptive"):
                assert outcome.paths[:, 0].mean(axis=0).max() <= outcome.method.epsilon
