"""Learned scores in replays: the option, and the studies."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bpac.cli.program import main
from bpac.replay.replay import Replay
from bpac.replay.router_factory import RouterFactory, learning_for
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.studies.on_tables.given_tables import GivenTable
from bpac.replay.studies.on_tables.learned import LearnedTask
from bpac.replay.studies.on_tables.segments import SegmentsStudy, SegmentsTask
from bpac.replay.studies.on_tables.unsafe import is_unsafe
from bpac.replay.studies.reporting.replay_results import fingerprint
from bpac.replay.studies.reproduce import reproduce
from bpac.replay.studies.study import ResultsFolder
from bpac.replay.tables.table import Table, joined
from bpac.replay.tables.writing import write_table
from bpac.routing.decision import Decision
from bpac.routing.policies import Paper, Portfolio
from tests.cli.running import run_json


def featured(rows: int = 1500) -> Table:
    """A table whose score says little, and whose feature says much."""
    rng = np.random.default_rng(4)
    hint = rng.random(rows)
    category = np.where(rng.random(rows) < 0.8, "large", "small")
    loss = (rng.random(rows) < 0.5 * hint**2).astype(float)
    columns = {"hint": hint.astype(np.object_), "category": category.astype(np.object_)}
    return Table(rng.random(rows), loss, features=columns)


def test_replays_learn_where_a_table_has_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By default with the default policy; the report names what was learned from, and fewer experts are called."""
    path = tmp_path / "t.csv"
    write_table(featured(), path)
    options = (str(path), "--epsilon", "0.1", "--runs", "3")
    learned, plain = run_json(capsys, "replay", *options), run_json(capsys, "replay", *options, "--no-learn")
    assert learned["learn"] == ["hint", "category"]
    assert plain["learn"] is None
    assert learned["expert_call_rate"]["mean"] < plain["expert_call_rate"]["mean"]
    assert run_json(capsys, "replay", *options, "--memory", "latched")["learn"] is None
    assert run_json(capsys, "replay", *options, "--memory", "latched", "--learn")["learn"] == ["hint", "category"]
    assert main(["replay", *options]) == 0
    assert "with a score learned from hint, category" in capsys.readouterr().out


def test_a_table_that_prescribes_coins_is_replayed_as_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Recorded traces stay what they were."""
    table = featured(50)
    write_table(
        Table(table.uncertainty, table.loss, coin=table.uncertainty, features=table.features), tmp_path / "t.csv"
    )
    assert run_json(capsys, "replay", str(tmp_path / "t.csv"), "--order", "given")["learn"] is None


@pytest.mark.parametrize("options", [["--policy", "paper"], ["--assume", "any"], []])
def test_learning_needs_features_and_the_portfolio(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """Otherwise there is nothing to learn from, or nobody who can."""
    table = featured(50)
    write_table(table if options else Table(table.uncertainty, table.loss), tmp_path / "t.csv")
    assert main(["replay", str(tmp_path / "t.csv"), "--learn", *options]) == 2
    assert "--learn needs" in capsys.readouterr().err


def test_features_follow_their_rows_under_load() -> None:
    """Each query has its own features, in whatever order its draft ends."""
    table = featured(600)
    factory = RouterFactory(learning_for(Portfolio(), table), 0.1, 0.1)
    replay = Replay(table, factory, delay=Delay.parse("independent:5"), drafting=Drafting.parse("losses:3", 8))
    ordered, path = replay.run(0, trace=True)
    known = [decision.features for decision in path.decisions]
    assert known == list(zip(ordered.features["hint"], ordered.features["category"], strict=True))
    assert learning_for(Paper(), table) == Paper()


def test_the_studies_show_calls_and_promise(tmp_path: Path) -> None:
    """``bpac reproduce learned segments --tables …`` has a row for each method, and learned scores save calls."""
    given = GivenTable("mine", {"uncertainty": featured(1200)})
    done = reproduce(["learned", "segments"], 2, tmp_path, tables=[given])
    learned, segments = done.sections
    assert len(learned.table.rows) == 4
    assert len(segments.table.rows) == 6
    assert (tmp_path / "learned.csv").exists()
    assert (tmp_path / "segments.csv").exists()
    assert "when 200, 600 and 1,800 audits have an outcome" in learned.text
    assert "mine: hint, category" in learned.text


def test_the_promise_of_each_segment_is_counted(tmp_path: Path) -> None:
    """A run in which an unsafe threshold was in force counts for its segment, in the table and in both files."""
    study = SegmentsStudy((("mine", featured(200)),))
    arrays = [{"figures": np.full((4, 4), 0.5), "unsafe": np.zeros((4, 2))} for _ in study.tasks()]
    arrays[2]["unsafe"][1:3, 1] = 1.0
    section = study.section(arrays, ResultsFolder(tmp_path))
    assert [row[-2:] for row in section.table.rows[1:3]] == [["0.0 %", "0 of 4"], ["25.0 %", "2 of 4: small"]]
    rows = list(csv.DictReader((tmp_path / "segments.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["unsafe_share_mean"], row["unsafe_runs_most"]) for row in rows[1:3]] == [("0.0", "0"), ("0.25", "2")]
    each = list(csv.DictReader((tmp_path / "segments-each.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["segment"], row["unsafe_runs"]) for row in each[4:6]] == [("large", "0"), ("small", "2")]
    assert sum(int(row["rows"]) for row in each[4:6]) == 200


def test_a_segment_with_an_unsafe_threshold_is_found() -> None:
    """Losses in one segment only, of drafts that look safe in both: with ε = 1/2 their threshold is in force."""
    table = featured(1000)
    small = table.features["category"] == "small"
    late = np.arange(1000) > 500
    broken = Table(np.zeros(1000), (small & late).astype(float), features=table.features)
    task = SegmentsTask(broken, 0.5, "one score")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bpac.replay.studies.on_tables.segments.shuffled", lambda table, _: table)
        assert task.run(0)["unsafe"].tolist() == [0.0, 0.0]
        assert SegmentsTask(broken, 0.3, "one score").run(0)["unsafe"].tolist() == [0.0, 1.0]


def test_tables_with_other_features_are_other_tables() -> None:
    """Saved runs are found by the content of a table, its features included."""
    table = featured(20)
    assert fingerprint(table) != fingerprint(Table(table.uncertainty, table.loss))
    assert joined(table, Table(table.uncertainty, table.loss)).features == {}
    assert joined(table, table).features.keys() == table.features.keys()
    keys = [LearnedTask(table, 0.05, Portfolio(), learns).key() for learns in (False, True)]
    assert keys[0] != keys[1]


def test_a_threshold_is_unsafe_for_the_score_that_it_belongs_to() -> None:
    """A threshold that is safe for one score may not be for another."""
    rows = 100
    table = Table(np.zeros(rows), np.ones(rows))

    def decided(uncertainty: float) -> list[Decision]:
        return [
            Decision(
                i, uncertainty, 0.5, 1.0, 0.05, call_expert=True, serve_draft=False, uncertainties=(0.9, uncertainty)
            )
            for i in range(rows)
        ]

    assert is_unsafe(table, decided(0.1), 0.95, 0.05)
    assert not is_unsafe(table, decided(0.6), 0.95, 0.05)


def test_a_score_that_was_learned_after_an_alarm_is_another_one() -> None:
    """A threshold of the first epoch says nothing about the score that has the same number in the second."""
    table = Table(np.zeros(100), np.repeat([0.0, 1.0], 50))

    def decided(epoch_of: Callable[[int], int]) -> list[Decision]:
        return [
            Decision(
                *(row, 0.1, 0.5 if row < 50 else 0.05, 1.0, 0.05),
                call_expert=True,
                serve_draft=False,
                epoch=epoch_of(row),
                uncertainties=(0.9, 0.1),
            )
            for row in range(100)
        ]

    assert is_unsafe(table, decided(lambda row: 1), 0.95, 0.05)
    assert not is_unsafe(table, decided(lambda row: 1 + row // 50), 0.95, 0.05)


def test_rounds_in_which_a_score_is_not_computed_any_more_say_nothing_about_its_risk() -> None:
    """A score that has retired accepts nothing from then on: these rounds must not dilute what its threshold lost."""
    losses = np.zeros(100)
    losses[:4] = 1.0
    rounds = [
        Decision(
            *(row, 0.1 if row < 50 else 0.9, 0.5, 1.0, 0.05),
            call_expert=True,
            serve_draft=False,
            uncertainties=(0.9, 0.1 if row < 50 else 1.0),
        )
        for row in range(100)
    ]
    assert is_unsafe(Table(np.zeros(100), losses), rounds, 0.95, 0.05)
