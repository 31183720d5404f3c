"""Experiments: they resume, they repeat, and they order the methods as the paper does."""

from pathlib import Path

import numpy as np
import pytest

from bpac.errors import InputError
from bpac.replay.campaign import Outcome, run_experiments
from bpac.replay.experiments import EXPERIMENTS, PUBLISHED, named_experiment
from bpac.replay.reproduce import reproduce

BETS = named_experiment("bets")


def test_a_stopped_campaign_goes_on(tmp_path: Path) -> None:
    """Finished runs are not computed again, half-written ones are, and the numbers are the same either way."""
    whole = run_experiments([BETS], 11, tmp_path / "whole", workers=2)["bets"]
    keep = tmp_path / "stopped"
    run_experiments([BETS], 10, keep, workers=1)
    finished = {path.name: path.stat().st_mtime_ns for path in keep.iterdir()}
    (keep / "left-behind.part").write_bytes(b"half")
    again = run_experiments([BETS], 11, keep, workers=1)["bets"]
    assert all((keep / name).stat().st_mtime_ns == changed for name, changed in finished.items())
    for one, other in zip(whole, again, strict=True):
        assert one.paths.shape == (11, 4, 100)
        assert np.array_equal(one.paths, other.paths)


def test_every_experiment_can_be_named() -> None:
    """Names are unique; one that is not known is answered with those that are."""
    assert len({experiment.name for experiment in EXPERIMENTS}) == len(EXPERIMENTS)
    with pytest.raises(InputError, match="shift"):
        named_experiment("cold-fusion")
    with pytest.raises(InputError, match="runs must be at least 1"):
        run_experiments([BETS], 0, Path("unused"))


def test_a_report_is_one_page_that_needs_nothing_else(tmp_path: Path) -> None:
    """Tables, pictures and a list of contents in one file, without a link to anything outside it."""
    written = reproduce(["stall", "bets", "bets"], 1, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert written[-1].name == "report.html"
    assert page.count("<section") == page.count("<svg") == 2
    assert 'href="#bets"' in page
    assert 'src="' not in page
    assert 'href="http' not in page
    rows = (tmp_path / "bets.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("method,at,epsilon,empirical_risk_mean,empirical_risk_std,expert_call_rate_mean")
    assert len(rows) == 1 + len(BETS.methods)


def test_the_papers_figures_stand_beside_ours(tmp_path: Path) -> None:
    """With the four benchmarks the page begins with a table: the paper's figures, ours, and the oracle's."""
    reproduce([f"epsilon-{stream}" for stream in PUBLISHED], 1, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.index('id="summary"') < page.index('id="epsilon-mmlu-pro-like"')
    rows = (tmp_path / "summary.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + 4 * len(PUBLISHED)
    assert sum("%" in row.rsplit(",", 1)[1] for row in rows) == len(PUBLISHED)


@pytest.mark.promise
def test_the_orderings_of_the_paper(tmp_path: Path) -> None:
    """O-naive violates, Hoeffding nearly always asks, offline PAC fails under shift, adaptive beats fixed."""
    names = ("baselines-mmlu-pro-like", "baselines-bbh-like", "shift", "bets", "exploration", "delays")
    results = run_experiments([named_experiment(name) for name in names], 20, tmp_path, workers=1)

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
        assert min(rates, key=rates.__getitem__) == 0.0, "two stages beat every fixed rate"
    delays = figures("delays", "expert_call_rate")
    assert delays["losses late by 60 requests"] == pytest.approx(delays["portfolio"], abs=0.05)
    assert delays["a tenth lost"] > delays["portfolio"] + 0.1
    for outcomes in results.values():
        for outcome in outcomes:
            if outcome.method.label in ("paper", "portfolio", "adaptive"):
                assert outcome.paths[:, 0].mean(axis=0).max() <= outcome.method.epsilon
