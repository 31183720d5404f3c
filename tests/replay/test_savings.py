"""``bpac reproduce savings``: what each feature saves, beside B-PAC and the oracle."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bpac.cli.program import main
from bpac.replay.cascade.builtin import builtin_cascade
from bpac.replay.cascade.in_force import InForce
from bpac.replay.cascade.replay import CascadeReplay
from bpac.replay.cascade.table import CascadeTable
from bpac.replay.oracle import oracle_policy, risk_of
from bpac.replay.replay import Replay
from bpac.replay.router_factory import cascade_for
from bpac.replay.studies.comparison import Part
from bpac.replay.studies.methods import RoutingMethod
from bpac.replay.studies.on_tables.calls import KINDS, CallsTask, CascadeCallsTask, kinds_of_calls
from bpac.replay.studies.on_tables.cascade import GivenCascade
from bpac.replay.studies.on_tables.savings import EPSILONS, LENGTHS, longer, table_of
from bpac.replay.studies.on_tables.savings_cascade import (
    OF_CASCADES,
    OF_PAIRS,
    CascadeSavingsTask,
    PairSavingsTask,
    cascade_tasks,
)
from bpac.replay.studies.on_tables.variants import VARIANTS
from bpac.replay.tables.builtin import builtin_table
from bpac.replay.tables.table import Table
from bpac.replay.tables.writing import write_table
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.cascade.walk import Walk
from bpac.routing.policies import Portfolio
from tests.replay.writing import write_cascade


def test_every_variant_is_shown_with_calls_cost_promise_and_gap(tmp_path: Path) -> None:
    """One row per stream, length, ε and variant, and one for the oracle; without tokens there is no cost."""
    whole = builtin_table("math-like", rows=300)
    write_table(whole, tmp_path / "answers.csv")
    write_table(Table(whole.uncertainty, whole.loss), tmp_path / "bare.csv")
    tables = [str(tmp_path / name) for name in ("answers.csv", "bare.csv")]
    out = ["--runs", "2", "--workers", "1", "--out", str(tmp_path / "report")]
    assert main(["reproduce", "savings", "--tables", *tables, *out]) == 0
    rows = list(csv.DictReader((tmp_path / "report" / "savings.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 2 * len(EPSILONS) * len(LENGTHS) * (len(VARIANTS) + 1)
    for row in rows:
        assert 0.0 <= float(row["expert_call_rate_mean"]) <= 1.0
        if row["variant"] == "oracle":
            continue
        assert float(row["unsafe_share"]) in {0.0, 0.5, 1.0}
        assert np.isnan(float(row["cost_mean"])) == (row["stream"] == "bare.csv")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "What each feature saves" in page
    assert ">nan" not in page


def test_cascades_are_shown_beside_their_pairs_and_the_oracle(tmp_path: Path) -> None:
    """Tables with two models and with more go together; the cost of a cascade is money, and its promise is checked."""
    write_table(builtin_table("math-like", rows=200), tmp_path / "answers.csv")
    table = builtin_cascade("effort-like", rows=400)
    lines = ["uncertainty_1,loss_1,tokens_1,uncertainty_2,loss_2,tokens_2,tokens_3"]
    for u, loss, tokens in zip(table.uncertainty, table.loss, table.tokens, strict=True):  # type: ignore[arg-type]
        lines.append(f"{u[0]},{loss[0]},{tokens[0]},{u[1]},{loss[1]},{tokens[1]},{tokens[2]}")
    (tmp_path / "cascade.csv").write_text("\n".join(lines) + "\n")
    tables = [str(tmp_path / name) for name in ("answers.csv", "cascade.csv")]
    out = ["--prices", "0.04,0.2,1", "--runs", "2", "--workers", "1", "--out", str(tmp_path / "report")]
    assert main(["reproduce", "savings", "--tables", *tables, *out]) == 0
    rows = list(csv.DictReader((tmp_path / "report" / "savings.csv").read_text(encoding="utf-8").splitlines()))
    ours = [row for row in rows if row["stream"] == "cascade.csv (0.04 : 0.2 : 1)"]
    assert len(rows) - len(ours) == len(EPSILONS) * len(LENGTHS) * (len(VARIANTS) + 1)
    names = [name for name in OF_PAIRS if name != "dithered scores"]
    pairs = [f"pair of model {stage} and the last, {name}" for stage in (1, 2) for name in names]
    assert [row["variant"] for row in ours] == [*pairs, *OF_CASCADES, "oracle"] * len(EPSILONS)
    for row in ours:
        assert 0.0 < float(row["cost_mean"]) < 1.3
        if row["variant"] != "oracle":
            assert float(row["unsafe_share"]) in {0.0, 0.5, 1.0}
            # Hard questions have longer answers, and are those that are sent on.
            assert float(row["cost_by_tokens_mean"]) == pytest.approx(float(row["cost_mean"]), rel=0.1)
    assert all(not row["cost_by_tokens_mean"] for row in rows if row not in ours)


def test_each_call_costs_by_its_tokens() -> None:
    """The mean call of each model costs its price; a table without tokens has no such cost, and fewer variants."""
    table = builtin_cascade("effort-like", rows=300)
    given = GivenCascade("effort", table, (0.04, 0.2, 1.0))
    closed = CascadeReplay(table, Cascade(prices=given.prices), 1e-6).run(0)
    assert closed.cost == pytest.approx(1.24)
    assert closed.cost_by_tokens == pytest.approx(1.24)
    bare = replace(given, table=CascadeTable(table.uncertainty, table.loss))
    assert len(cascade_tasks(bare, 0.05)) == len(cascade_tasks(given, 0.05)) - 3
    assert np.isnan(CascadeSavingsTask(bare, 0.05).run(0)["figures"][4])
    assert np.isnan(PairSavingsTask(bare, 1, 0.05).run(0)["figures"][4])
    few = replace(given, table=CascadeTable(np.round(table.uncertainty, 1), table.loss, table.tokens))
    assert len(cascade_tasks(few, 0.05)) == len(cascade_tasks(given, 0.05)) + 2
    figures = PairSavingsTask(given, 1, 1e-6).run(0)["figures"]
    assert figures[1] == pytest.approx(1.04)
    assert figures[4] == pytest.approx(1.04)


def test_the_largest_risk_in_force_is_that_of_the_first_answer_below_the_threshold() -> None:
    """A rule that stops at a wrong answer of the first model is found out, and so is one that stops nowhere."""
    table = CascadeTable(np.array([[0.1, 0.2], [0.6, 0.3], [0.9, 0.9], [0.2, 0.1]]), np.array([[1.0, 0.0]] * 4))
    router = CascadeRouter(0.1, Cascade(prices=(1, 4, 20), first=((1, 2),), fit_at=(), fitted_shares=()), seed=1)
    decision = router.decide(_walked(router))
    in_force = InForce()
    in_force.add(decision, router)
    assert in_force.largest_risk(table) == 0.0
    in_force.add(decision._replace(threshold=0.5), router)
    assert in_force.largest_risk(table) == 0.5


def _walked(router: CascadeRouter) -> Walk:
    walk = router.walk()
    while walk.next_stage is not None:
        walk.answered(0.5)
    return walk


@pytest.mark.parametrize("given", [True, False])
def test_a_longer_stream_has_the_same_risk(given: bool) -> None:
    """Five times the rows, and at every threshold the same risk (of a built-in table: to within a few losses)."""
    table = builtin_table("math-like")
    part = Part("MATH", "math-like", {"uncertainty": table} if given else None)
    five_fold = table_of(longer(part, 5))
    assert len(five_fold) == 5 * len(table)
    for threshold in (0.0, 0.1, 0.4, 1.0):
        tolerance = 1e-12 if given else 5 / len(table)
        assert risk_of(five_fold, threshold) == pytest.approx(risk_of(table, threshold), abs=tolerance)


def test_every_expert_call_is_of_one_kind() -> None:
    """The four kinds sum to the expert call rate; with nothing certified, all calls are needed or waiting for it."""
    table = builtin_table("mmlu-pro-like", rows=2500)
    task = CallsTask(RoutingMethod("portfolio", Portfolio(), 0.08), Part("MMLU", "mmlu", {"uncertainty": table}))
    kinds = task.run(3)["kinds"]
    _, path = Replay(table, task.method.make_router, seed=3).run(0, trace=True)
    assert kinds.sum() == pytest.approx(path.call_expert.mean(), abs=1e-12)
    assert (kinds > 0.0).all()
    needed = float(np.mean(table.uncertainty >= oracle_policy(table, 0.08).threshold))  # type: ignore[attr-defined]
    assert kinds[3] == pytest.approx(needed, abs=0.02)
    closed = [decision._replace(threshold=0.0, propensity=1.0, call_expert=True) for decision in path.decisions]
    waiting, explored, uncertified, needed_too = kinds_of_calls(table, closed, 0.08)
    assert (explored, uncertified) == (0.0, 0.0)
    assert waiting + needed_too == pytest.approx(1.0)


def test_every_call_of_the_last_model_of_a_cascade_is_of_one_kind() -> None:
    """The kinds sum to its call rate; a call is needed where no answer is below the threshold of the oracle."""
    given = GivenCascade("three", builtin_cascade("cascade-like", rows=1500), (1.0, 8.0, 24.0))
    task = CascadeCallsTask(given, 0.05)
    kinds = task.run(3)["kinds"]
    table = given.table.take(np.random.default_rng(3).permutation(len(given.table)))
    metrics = CascadeReplay(table, cascade_for(given.prices, table), 0.05, order="given").run(3)
    assert kinds.sum() == pytest.approx(metrics.expert_call_rate, abs=1e-12)
    assert (kinds > 0.0).all()
    oracle = task.oracle
    assert oracle.stages
    lowest = table.uncertainty[:, [stage - 1 for stage in oracle.stages]].min(axis=1)
    needed = float(np.mean(lowest >= oracle.threshold))
    assert kinds[3] <= needed
    assert oracle.expert_call_rate == pytest.approx(needed + 0.05 * (1.0 - needed))


def test_a_cascade_that_nothing_makes_cheaper_needs_every_call() -> None:
    """If no answer is ever right, the oracle asks the last model at once, and all calls are needed."""
    table = CascadeTable(np.full((300, 2), 0.5), np.ones((300, 2)))
    task = CascadeCallsTask(GivenCascade("wrong", table, (1.0, 2.0, 4.0)), 0.05)
    assert task.run(1)["kinds"].tolist() == [0.0, 0.0, 0.0, 1.0]


def test_calls_are_printed_and_drawn_for_given_tables(tmp_path: Path) -> None:
    """``bpac reproduce calls --tables`` writes the kinds of calls of pairs and cascades as numbers and as a figure."""
    pair, cascade = tmp_path / "answers.csv", tmp_path / "cascade.csv"
    write_table(builtin_table("math-like", rows=300), pair)
    write_cascade(cascade, builtin_cascade("effort-like", rows=300))
    out = ["--runs", "2", "--workers", "1", "--out", str(tmp_path / "report")]
    assert main(["reproduce", "calls", "--tables", str(pair), str(cascade), "--prices", "1,4,16", *out]) == 0
    rows = list(csv.DictReader((tmp_path / "report" / "calls.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["method"] for row in rows] == ["B-PAC", "portfolio", "cascade 1:4:16"] * 2
    for row in rows:
        parts = [float(row[kind.replace(" ", "_")]) for kind in KINDS]
        assert sum(parts) == pytest.approx(float(row["expert_call_rate"]))
    assert (tmp_path / "report" / "calls.svg").exists()
