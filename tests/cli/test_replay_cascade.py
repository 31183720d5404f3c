"""``bpac replay`` and ``bpac reproduce`` on tables of cascades."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from bpac.cli.program import main
from bpac.errors import SettingsError, TableError
from bpac.replay.cascade.builtin import builtin_cascade
from bpac.replay.cascade.comparison import oracle_cost, pair_cost, pair_of
from bpac.replay.cascade.reading import default_prices, is_cascade, open_cascade, prices_from_text
from bpac.replay.cascade.replay import CascadeReplay, pair_table
from bpac.replay.cascade.table import CascadeTable
from bpac.replay.router_factory import gateway_policy
from bpac.routing.cascade.policy import Cascade
from bpac.routing.policies import Portfolio
from tests.cli.running import run_json
from tests.replay.writing import write_cascade


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A small table of a cascade."""
    return write_cascade(tmp_path / "cascade.csv", builtin_cascade("effort-like", rows=600))


def test_a_cascade_is_replayed_with_prices(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report has the cost per request beside that of every pair and of the oracle."""
    assert main(["replay", str(table), "--prices", "1,8,24", "--runs", "2", "--epsilon", "0.1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["policy"], report["prices"], report["steps"]) == ("cascade", [1.0, 8.0, 24.0], 600)
    assert report["cost"]["mean"] <= 33.0
    assert len(report["pair_costs"]) == 2
    assert report["better_pair_cost"] == min(pair["mean"] for pair in report["pair_costs"])
    assert 0.0 < report["oracle_cost"] <= 24.0
    assert sum(report["answered"]) == pytest.approx(1.0)
    assert report["token_ratio"]["mean"] > 0.0
    assert main(["replay", str(table), "--runs", "1"]) == 0
    assert "against the better pair" in capsys.readouterr().out


def test_a_cascade_is_replayed_with_late_outcomes_and_queries_in_flight(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The options and the keys of the report are those of pairs; the pairs beside it have the same load."""
    command = ["replay", str(table), "--prices", "1,8,24", "--runs", "1", "--epsilon", "0.2"]
    loaded = ["--in-flight", "64", "--draft-time", "losses:3", "--delay", "losses:20"]
    plain, late = run_json(capsys, *command), run_json(capsys, *command, *loaded)
    pair = run_json(capsys, "replay", "builtin:magpie-like", "--runs", "1")
    # A cascade has its pairs beside it instead of other policies, and no page.
    assert set(pair) - {"comparison", "recorded_rows", "html"} <= set(plain)
    assert (late["in_flight"], late["draft_time"], late["delay"], late["tickets"]) == (
        64,
        "losses:3",
        "losses:20",
        True,
    )
    assert late["cost"]["mean"] > plain["cost"]["mean"]
    assert late["better_pair_cost"] > plain["better_pair_cost"]
    trace = table.with_name("trace.csv")
    assert main([*command, *loaded, "--trace", str(trace)]) == 0
    rows = list(csv.DictReader(trace.read_text(encoding="utf-8").splitlines()))
    assert list(rows[0]) == ["step", "threshold_before", "propensity", "call_expert", "threshold_after", "stage"]
    calls = sum(row["call_expert"] == "1" for row in rows)
    assert calls / len(rows) == pytest.approx(late["expert_call_rate"]["mean"])
    assert {row["stage"] for row in rows if row["propensity"] == "1.0"} == {"3"}
    shown = capsys.readouterr().out
    assert all(
        f"\n  {line}" in shown for line in ("cost", "expert calls", "actual loss", "tokens", "threshold", "time")
    )


def test_validate_checks_the_promise_of_a_cascade(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Queries are drawn from the rows of a table; the keys of the report are those of a law, for pairs as well."""
    short = ["validate", "--streams", "3", "--steps", "150", "--in-flight", "8", "--delay", "losses:20"]
    cascade = run_json(capsys, *short, "--table", str(table), "--prices", "1,8,24")
    law, pair = run_json(capsys, *short), run_json(capsys, *short, "--table", "builtin:magpie-like")
    assert set(cascade) == set(law) == set(pair)
    assert (cascade["policy"], cascade["table"], cascade["law"]) == ("cascade", str(table), None)
    assert (cascade["streams"], cascade["rounds"]["mean"]) == (3, 150)
    assert 0.9 < cascade["expert_call_rate"]["mean"] <= 1.0
    assert (cascade["largest_safe_threshold"], law["table"], pair["law"]) == (None, None, None)
    assert main([*short, "--table", "builtin:effort-like", "--alpha", "0.9"]) == 0
    assert capsys.readouterr().out.startswith("cascade: a threshold with a true risk above ε was in force")
    for options, message in (
        (["--table", str(table), "--policy", "paper"], "--policy is for tables of two models"),
        (["--table", str(table), "--prices", "1,2"], "has 2 prices, and"),
        (["--prices", "1,2,3"], "--prices is for tables of a cascade"),
    ):
        assert main([*short, *options]) == 2
        assert message in capsys.readouterr().err


def test_a_pair_has_a_cost_too(capsys: pytest.CaptureFixture[str]) -> None:
    """With two prices, the cost of a table of two models is in the report."""
    command = ["replay", "builtin:magpie-like", "--runs", "1", "--prices", "1,10"]
    assert main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["cost"]["mean"] == pytest.approx(1.0 + 10.0 * report["expert_call_rate"]["mean"])
    assert main(command) == 0
    assert "cost " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prices", "1,2"], "has 2 prices"),
        (["--prices", "1,x,3"], "give the price of a call of each model"),
        (["--policy", "paper"], "--policy is for tables of two models"),
        (["--dither", "0.1"], "--dither is for tables of two models"),
        (["--bet", "fixed:0.05"], "--bet is for tables of two models"),
        (["--assume", "any"], "--assume is for tables of two models"),
        (["--learn"], "--learn is for tables of two models"),
        (["--score", "other"], "--score is for tables of two models"),
        (["--exploration", "nope"], "exploration"),
        (["--runs", "0"], "runs"),
        (["--delay", "losses:"], "delay 'losses:' is none of"),
        (["--in-flight", "0"], "in-flight must be at least 1"),
    ],
)
def test_wrong_options_are_refused(
    table: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a cascade does not have is refused by name."""
    assert main(["replay", str(table), *options]) == 2
    assert message in capsys.readouterr().err
    assert main(["replay", "builtin:magpie-like", "--prices", "1,2,3", "--runs", "1"]) == 2


def test_bad_tables_are_refused_with_their_place(tmp_path: Path) -> None:
    """A missing column, a value out of range and a gap in the numbers are named."""
    good = "uncertainty_1,loss_1,uncertainty_2,loss_2\n"
    for text, message in (
        (good + "0.1,0,0.2,7\n", "row 1, column loss_2: '7' is not a number in"),
        (good + "0.1,0,nope,0\n", "column uncertainty_2: 'nope'"),
        ("uncertainty_1,loss_1,uncertainty_3,loss_3\n0.1,0,0.1,0\n", "number from 1 on"),
        ("uncertainty_1,loss_1,uncertainty_2\n0.1,0,0.1\n", "has no column loss_2"),
        (good, "has no rows"),
    ):
        path = tmp_path / "bad.csv"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(TableError, match=message):
            open_cascade(str(path))
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"uncertainty_1": true, "loss_1": 0}\n', encoding="utf-8")
    with pytest.raises(TableError, match="True is not a number"):
        open_cascade(str(rows))


def test_prices_follow_the_tokens_if_none_are_given(tmp_path: Path) -> None:
    """Without tokens there is no default, and the error says what to do."""
    built = builtin_cascade("effort-like", rows=50)
    known = str(write_cascade(tmp_path / "known.csv", built))
    prices = default_prices(known, open_cascade(known))
    assert prices[-1] == 1.0
    assert list(prices) == sorted(prices)
    assert default_prices("builtin:effort-like", built) == (0.04, 0.2, 1.0)
    plain = str(write_cascade(tmp_path / "plain.csv", built, tokens=False))
    assert is_cascade(plain)
    without = open_cascade(plain)
    assert without.features().shape == (50, 2, 0)
    with pytest.raises(SettingsError, match="has no tokens"):
        default_prices(plain, without)
    with pytest.raises(SettingsError, match="give the price of a call"):
        prices_from_text("1,0,2")


def test_equal_numbers_give_equal_runs_and_pairs_are_cascades_of_two() -> None:
    """A run depends on its number and seed only; a table may be cut down to some of its models."""
    built = builtin_cascade("cascade-like", rows=400)
    replay = CascadeReplay(built, Cascade(prices=(0.06, 1.0, 4.0)), 0.1, runs=2, order="given")
    once, again = replay.run(1), replay.run(1)
    assert (once.cost, once.answered, once.rule) == (again.cost, again.answered, again.rule)
    pair = pair_table(built, [2])
    assert pair.stages == 2
    assert np.array_equal(pair.loss[:, 0], built.loss[:, 1])
    assert pair_table(CascadeTable(built.uncertainty, built.loss), [1]).tokens is None
    assert oracle_cost(pair, (1.0, 4.0), 0.5) < 4.0


def test_the_study_compares_with_the_better_pair(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``bpac reproduce cascade`` writes numbers and a picture, for given tables with each list of prices."""
    out = tmp_path / "report"
    tables = ["--tables", str(table), "--prices", "1,8,24", "--prices", "1,8,60"]
    command = ["reproduce", "cascade", "--runs", "1", "--workers", "1", "--out", str(out), *tables, "--json"]
    assert main(command) == 0
    (section,) = json.loads(capsys.readouterr().out)["results"]
    assert section["name"] == "cascade"
    assert len(section["rows"]) == 4
    assert (out / "cascade.svg").exists()
    assert (out / "cascade.csv").read_text(encoding="utf-8").startswith("stream,prices,epsilon,cost_mean")


def test_pairs_are_run_as_the_gateway_would_run_them() -> None:
    """The pairs to compare with dither scores with few values and learn from lengths, unless plain ones are wanted."""
    built = builtin_cascade("cascade-like", rows=600)
    rounded = CascadeTable(built.uncertainty.round(1), built.loss, built.tokens)
    policy = gateway_policy(pair_of(rounded, 1))
    assert isinstance(policy, Portfolio)
    assert policy.dither > 0.0
    assert policy.learn is not None
    assert gateway_policy(pair_of(CascadeTable(built.uncertainty, built.loss), 1)) == Portfolio()
    graded = CascadeTable(built.uncertainty, built.loss / 2.0, built.tokens)
    assert gateway_policy(pair_of(graded, 1)) == Portfolio().for_graded_losses()
    default, plain = (
        pair_cost(rounded, 1, (0.06, 1.0, 4.0), 0.2, alpha=0.1, run=(0, 0), plain=plain) for plain in (False, True)
    )
    assert default != plain
