"""Exports: what a table contains, where it may be written, and errors about files that are not journals."""

import json
import os
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpac.cli.program import main
from bpac.errors import TableError
from bpac.replay.simulation.laws import LevelLaw
from bpac.replay.tables.reading import read_table
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Resolved
from bpac.routing.router import Router
from bpac.stores import MemoryStore, SqliteStore
from bpac.stores.export import table_rows
from bpac.stores.store import Game
from tests.gateway.configured import settings
from tests.gateway.serving import to_toml
from tests.routing.learning.drafts import drafts, learner, send

FORMATS = ["t.csv", "t.csv.gz", "t.jsonl", "t.jsonl.gz", "t.parquet"]


def kept(directory: Path, outcomes: list[str], *, lost_tokens: bool = False) -> Path:
    """A configuration and its store, with a round for each outcome: a loss, ``open``, ``given up`` or ``late``."""
    store = SqliteStore(str(directory / "bpac.db"))
    game = store.open_game("homework", "", "terms")

    def journal(entry: Entry) -> None:
        answered = isinstance(entry, Resolved) and not (lost_tokens and entry.loss is None)
        store.append(game, entry, {"expert_tokens": 30} if answered else {"draft_tokens": 3})

    router = Router(0.2, seed=1, journal=journal)
    for number, outcome in enumerate(outcomes):
        decision = router.decide(0.5 + number % 50 / 100)
        if not decision.call_expert:
            continue
        if outcome in ("given up", "late"):
            router.forfeit(decision, "lost")
        if outcome not in ("given up", "open"):
            router.observe(decision, 0.25 if outcome == "late" else float(outcome))
    store.close()
    config = directory / "gateway.toml"
    gateway = {"store": f"sqlite:///{directory / 'bpac.db'}"}
    config.write_text(to_toml(settings("http://127.0.0.1:9/v1", gateway=gateway)))
    return config


def export(config: Path, *words: str | Path) -> int:
    """The exit code of ``bpac export``."""
    return main(["export", str(config), *map(str, words)])


def test_unknown_outcomes_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Forfeited rounds are losses, as for the promise; a late outcome is known; the first open round ends the table."""
    config = kept(tmp_path, ["0", "1", "given up", "late", "open", "0", "open"])
    assert export(config, "--format", "table", "--out", tmp_path / "t.csv") == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "not known: 1 given up and counted as loss 1, 1 still open, where the table ends, and" in captured.err
    assert "counted as loss 1, 2 after that one and left out\n" in captured.err
    table = read_table(tmp_path / "t.csv")
    assert table.loss.tolist() == [0.0, 1.0, 1.0, 0.25, 1.0]
    assert table.uncertainty.tolist() == [0.5, 0.51, 0.52, 0.53, 0.54]
    assert table.expert_tokens is not None
    assert export(kept_whole(tmp_path), "--format", "table") == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[:2] == ["step,uncertainty,loss,draft_tokens,expert_tokens", "1,0.5,0.0,3,30"]
    assert captured.err == ""


def test_a_table_of_all_audits_is_replayed_by_its_weights_and_refused_as_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where drafts were kept, export says that audits are not the traffic; replay repeats each row, warm refuses it."""
    config, out = kept(tmp_path, ["0"] * 400), tmp_path / "t.csv"
    assert export(config, "--format", "table", "--all-audits", "--out", out) == 0
    assert "audited requests are harder than the traffic: bpac replay repeats" in capsys.readouterr().err
    assert main(["replay", str(out), "--runs", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    rows = len(out.read_text().splitlines()) - 1
    assert report["recorded_rows"] == rows < report["steps"]
    assert report["steps"] == pytest.approx(400, abs=100)
    assert main(["replay", str(out), "--order", "given"]) == 2
    assert "the order of the traffic is not known" in capsys.readouterr().err
    with pytest.raises(TableError, match=r"column propensity: 0.* below 1, .* export the table without --all-audits"):
        read_table(out)
    assert main(["warm", str(config), str(out), "--new-game"]) == 2
    assert "export the table without --all-audits" in capsys.readouterr().err
    assert export(config, "--format", "table", "--out", out) == 0
    assert "the table has a sample of them that is" in capsys.readouterr().err
    assert "propensity" not in out.read_text()
    assert main(["replay", str(out), "--runs", "1", "--json"]) == 0
    assert export(config, "--format", "table", "--thin", "--all-audits") == 2
    assert "--thin and --all-audits exclude each other" in capsys.readouterr().err


def test_columns_that_some_rounds_lack_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An expert that failed has no tokens: the table is written without that column, and the command says so."""
    config = kept(tmp_path, ["0", "given up"], lost_tokens=True)
    assert export(config, "--format", "table", "--out", tmp_path / "t.csv") == 0
    assert "columns left out, because some rounds lack them: expert_tokens" in capsys.readouterr().err


def kept_whole(directory: Path) -> Path:
    """A store in which every outcome is known."""
    (directory / "whole").mkdir()
    return kept(directory / "whole", ["0", "1"])


def test_without_graded_rounds_there_is_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If no outcome is known no file is written, and the command says so."""
    out = tmp_path / "t.csv"
    assert export(kept(tmp_path, ["open", "given up"]), "--format", "table", "--out", out) == 2
    said = capsys.readouterr().err
    assert (
        "no round of this game has been graded yet (1 still open, where the table ends, and counted as loss 1, "
        "1 after that one and left out)" in said
    )
    assert said.count("\n") == 1
    assert not out.exists()


def test_a_table_has_the_format_of_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every format that replays read can be written, missing directories are created, other endings are refused."""
    config = kept(tmp_path, ["0", "1"])
    for name in FORMATS:
        path = tmp_path / "new" / name / name
        assert export(config, "--format", "table", "--out", path) == 0
        assert read_table(path).loss.tolist() == [0.0, 1.0]
        assert [file.name for file in path.parent.iterdir()] == [name]
    assert export(config, "--format", "table", "--out", tmp_path / "t.xlsx") == 2
    assert "t.xlsx: the name of a table file ends in .csv" in capsys.readouterr().err
    assert export(config, "--out", tmp_path / "journals" / "j.jsonl") == 0
    assert main(["audit", str(tmp_path / "journals" / "j.jsonl")]) == 0
    assert f"{tmp_path / 'journals' / 'j.jsonl'}: recomputed 2 rounds" in capsys.readouterr().out


def test_exported_journals_are_private(tmp_path: Path) -> None:
    """An exported journal is private, whatever the umask; an existing file keeps its mode."""
    config = kept(tmp_path, ["0"])
    (tmp_path / "shared.jsonl").touch()
    (tmp_path / "shared.jsonl").chmod(0o640)
    before = os.umask(0)
    try:
        for name in ("new.jsonl", "shared.jsonl"):
            assert export(config, "--out", tmp_path / name) == 0
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("new.jsonl", "shared.jsonl")] == [0o600, 0o640]


@pytest.mark.parametrize(
    "name", ["bpac.db", "bpac.db-wal", "bpac.db.lock", "bpac.db.head", "gateway.toml", "link", "hard"]
)
def test_nothing_that_is_read_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """The store, the files beside it, and the configuration are refused as outputs, by any of their names."""
    config = kept(tmp_path, ["0"])
    (tmp_path / "link").symlink_to("bpac.db")
    (tmp_path / "hard").hardlink_to(tmp_path / "bpac.db")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert export(config, "--out", tmp_path / name) == 2
    assert "would overwrite a file that is read: give another file" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def opened(**changes: Any) -> str:
    """The first line of a journal, with other settings."""
    lines: list[Entry] = []
    Router(0.2, journal=lines.append)
    return json.dumps({"entry": "opened", "settings": lines[0].settings | changes}) + "\n"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the journal is empty"),
        ("uncertainty,loss\n0.5,0\n", "line 1 is not JSON"),
        ("{}\n", "line 1 is not a journal entry"),
        ('{"entry":"claim","entries":1}\n', "line 1 is not a journal entry"),
        ('{"entry":"resolved","step":1,"loss":0}\n', "line 1: entry 1 must be the opened entry"),
        (opened(epsilon=5), "epsilon must lie strictly between 0 and 1, got 5"),
        (opened(policy={"kind": "Hunch"}), "unknown kind 'Hunch'"),
        (opened(policy=None), "line 1: entry 1 has settings that cannot be used"),
        ('{"entry":"opened","settings":{}}\n', "line 1: entry 1 has settings that cannot be used"),
    ],
)
def test_an_audit_says_what_is_wrong_with_the_first_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    """The error about a file that does not begin like a journal names the file, the line and the cause."""
    path = tmp_path / "journal.jsonl"
    path.write_text(text, encoding="utf-8")
    assert main(["audit", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"bpac: {path}: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def slow_losses(seed: int) -> tuple[MemoryStore, Game]:
    """A running game of 1,500 rounds at an unsafe law: outcomes that are losses come 500 rounds late."""
    store = MemoryStore()
    game = store.open_game("homework", "", "terms")
    router = Router(0.3, seed=seed, journal=lambda entry: store.append(game, entry, {}))
    law = LevelLaw(weights=(0.5, 0.1, 0.4), chances=(0.45, 1.0, 0.9))
    waiting: deque[tuple[int, Decision]] = deque()
    for step, (score, loss) in enumerate(zip(*law.draw(1500, np.random.default_rng(seed)), strict=True)):
        decision = router.decide(float(score), ticket=router.arrive())
        if decision.call_expert and loss:
            waiting.append((step + 500, decision))
        elif decision.call_expert:
            router.observe(decision, 0.0)
        while waiting and waiting[0][0] <= step:
            router.observe(waiting.popleft()[1], 1.0)
    return store, game


def test_rounds_are_not_chosen_by_their_delay() -> None:
    """From exports of running gateways thresholds open unsafely within α; with open rounds left out, in most cases.

    More than 6 of 25 have probability 0.002 at α = 0.1.
    """
    unsafe = {"cut": 0, "left out": 0}
    for seed in range(25):
        store, game = slow_losses(seed)
        rows = table_rows(store, game).rows
        entries = [kept.entry for kept in store.entries(game)]
        losses = {entry.step: entry.loss or 0.0 for entry in entries if isinstance(entry, Resolved)}
        decided = [entry for entry in entries if isinstance(entry, Decision)]
        tables = {
            "cut": [(row["uncertainty"], row["loss"]) for row in rows],
            "left out": [(d.uncertainty, losses[d.step]) for d in decided if d.step in losses],
        }
        for name, table in tables.items():
            router = Router(0.3)
            router.warm_start(table)
            unsafe[name] += router.threshold > 0.5
    assert unsafe["cut"] <= 6
    assert unsafe["left out"] >= 15


def test_a_table_has_the_score_of_the_route_where_a_learned_one_decides() -> None:
    """Rows of two scores in one column would make a warm start certify thresholds of neither."""
    store = MemoryStore()
    game = store.open_game("homework", "", "terms")
    router = learner(lambda entry: store.append(game, entry, {}))
    rows = drafts(300)
    send(router, rows)
    assert router.scores()[0].in_force is False
    exported = table_rows(store, game, all_audits=True).rows
    assert [row["uncertainty"] for row in exported] == [rows[row["step"] - 1].uncertainty for row in exported]
