"""A gateway whose journal was damaged or lost its end: what was served is not known, and the gateway says so."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bpac.cli.program import main
from bpac.routing.audit.audit import audit_journal
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import get_json, settings
from tests.gateway.law import KnownPair, Question
from tests.gateway.raw import post
from tests.gateway.running import ASK, RunningGateway, pair
from tests.gateway.serving import to_toml


def decided(gateway: RunningGateway, count: int) -> list[str]:
    """The ids of a number of decisions."""
    return [post(gateway.url, ASK).headers["x-bpac-decision"] for _ in range(count)]


def feedback(gateway: RunningGateway, decision: str) -> int:
    """The status of the response to a reported loss."""
    return post(gateway.url, {"decision": decision, "loss": 0.0}, "/v1/feedback").status


@pytest.mark.parametrize("noticed", [True, False])
def test_a_lost_decision_id_is_never_used_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, noticed: bool
) -> None:
    """If an older copy is put back, a new game begins where it is detected; the id of a lost decision is not reused."""
    path, note = tmp_path / "bpac.db", tmp_path / "bpac.db.head"
    with ScriptedServer(pair(Reply("41"), Reply("42"))) as models:
        config = settings(models.base_url, gateway={"store": f"sqlite:///{path}"}, loss="external")
        with RunningGateway(config) as gateway:
            kept = decided(gateway, 3)
            gateway.idle()
        shutil.copy(path, tmp_path / "copy.db")
        with RunningGateway(config) as gateway:
            lost = decided(gateway, 4)
            gateway.idle()
        shutil.copy(tmp_path / "copy.db", path)
        if not noticed:
            note.unlink()
        caplog.clear()
        with RunningGateway(config) as gateway:
            found = get_json(f"{gateway.url}/v1/status")["losses"]
            again = decided(gateway, 4)
            gateway.idle()
            assert not set(again) & {*kept, *lost}
            assert [feedback(gateway, name) for name in lost] == [404] * 4
            assert [feedback(gateway, name) for name in again] == [200] * 4
            assert [feedback(gateway, name) for name in kept] == [404 if noticed else 200] * 3
            metrics = post(gateway.url, b"", "/metrics", method="GET").body.decode()
    if noticed:
        assert [(loss["game"], loss["acknowledged"] - loss["entries"]) for loss in found] == [(1, 7)]
        assert again[0].startswith("dec-2-1-")
        assert "the journal lost entries: a new game begins with a threshold of 0" in caplog.text
        assert 'bpac_journal_losses_total{game="1"} 1.0\n' in metrics
    else:
        assert found == []
        assert again[0].startswith("dec-1-4-")
        assert "bpac.db.head cannot be read (No such file or directory)" in caplog.text
        assert "bpac_journal_losses_total" not in metrics


def test_a_lost_end_is_shown_by_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before and after a new game has begun, whether the gateway runs or not."""
    config = played(tmp_path, 20)
    with sqlite3.connect(tmp_path / "bpac.db") as raw:
        raw.execute("DELETE FROM entries WHERE number > 25")
    raw.close()
    assert main(["status", str(config), "--json"]) == 0
    (loss,) = json.loads(capsys.readouterr().out)["losses"]
    assert (loss["game"], loss["entries"]) == (1, 25)
    assert main(["status", str(config)]) == 0
    printed = capsys.readouterr().out
    missing = (
        f"the last {loss['acknowledged'] - 25} of {loss['acknowledged']} acknowledged entries of game 1 are missing"
    )
    assert printed.startswith(f"LOST: {missing}")
    assert main(["export", str(config), "--out", str(tmp_path / "journal.jsonl")]) == 0
    assert capsys.readouterr().err == f"bpac: {missing}: only what is left is exported\n"


def played(directory: Path, rounds: int, *, lives: int = 1) -> Path:
    """A configuration, and a store with a number of rounds in each of some lives of a gateway."""
    with ScriptedServer(KnownPair()) as models:
        data = settings(models.base_url, gateway={"store": f"sqlite:///{directory / 'bpac.db'}"}, epsilon=0.4)
        (directory / "gateway.toml").write_text(to_toml(data))
        for life in range(lives):
            with RunningGateway(data) as gateway:
                for number in range(rounds):
                    assert post(gateway.url, Question(life * rounds + number).body).status == 200
                gateway.idle()
    return directory / "gateway.toml"


def test_the_coins_of_a_gateway_are_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The coins of every life but the last, whose key is still secret; a coin that was changed is detected."""
    config = played(tmp_path, 60, lives=3)
    assert main(["export", str(config)]) == 0
    lines = capsys.readouterr().out.splitlines()
    audit = audit_journal(lines)
    assert (audit.differences, audit.unproved) == ([], [])
    assert (audit.coins.verified, audit.coins.open) == (120, 60)
    assert audit.claims == 3
    keys = [json.loads(line)["key"] for line in lines if '"revealed"' in line]
    assert len(set(keys)) == 2


@pytest.mark.parametrize("harm", ["an entry", "a game", "the header", "no database", "every page"])
@pytest.mark.parametrize("command", ["status", "export", "serve"])
def test_a_damaged_store_is_reported_in_one_line(
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    harm: str,
    command: str,
) -> None:
    """The line says what is damaged and what to do, with exit code 1 and no traceback."""
    directory = tmp_path_factory.getbasetemp() / "damaged-store"
    if not directory.exists():
        directory.mkdir()
        played(directory, 30)
    text = (directory / "gateway.toml").read_text().replace(str(directory), str(tmp_path))
    (tmp_path / "gateway.toml").write_text(text)
    path = tmp_path / "bpac.db"
    for name in ("bpac.db", "bpac.db.head"):
        shutil.copy(directory / name, tmp_path / name)
    if harm in ("an entry", "a game"):
        with sqlite3.connect(path) as raw:
            change = "entries SET entry = replace(entry, '0', '1')" if harm == "an entry" else "games SET route = 'x'"
            raw.execute(f"UPDATE {change}")
            raw.execute("DELETE FROM snapshots")
        raw.close()
    elif harm == "no database":
        path.write_bytes(b"\xff" * 5000)
    else:
        whole = bytearray(path.read_bytes())
        for place in [20] if harm == "the header" else range(4096, len(whole), 4096):
            whole[place : place + 60] = b"\xaa" * 60
        path.write_bytes(whole)
    if command == "serve":
        run = "import sys; from bpac.cli.program import main; sys.exit(main())"
        words = [sys.executable, "-c", run, command, str(tmp_path / "gateway.toml")]
        ran = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        code, printed = ran.returncode, ran.stderr
    else:
        code, printed = main([command, str(tmp_path / "gateway.toml")]), capsys.readouterr().err
        assert printed.startswith("bpac: ")
        assert printed.count("\n") == 1
    assert code == 1
    assert "Traceback" not in printed
    assert sum(str(path) in line for line in printed.splitlines()) == 1
