"""``bpac archive``: old entries leave the store, the gateway goes on as before, and an audit still sees everything."""

import json
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.stores import SqliteStore, StoreError, open_store
from bpac.testing import ScriptedServer
from tests.gateway.configured import OPERATOR, bearer, settings
from tests.gateway.law import KnownPair, Question
from tests.gateway.raw import post
from tests.gateway.running import RunningGateway
from tests.gateway.serving import Process, to_toml


def configured(directory: Path, base_url: str, **route: Any) -> dict[str, Any]:
    """A configuration with a store in a directory, also written to a file there."""
    store = {"store": f"sqlite:///{directory / 'bpac.db'}", "snapshot_every": 40}
    config = settings(base_url, gateway=store, **{"epsilon": 0.4, **route})
    (directory / "gateway.toml").write_text(to_toml(config))
    return config


def served(config: dict[str, Any], first: int, count: int) -> dict[str, Any]:
    """The status of a gateway after some questions."""
    with RunningGateway(config) as gateway:
        for number in range(first, first + count):
            assert post(gateway.url, Question(number).body).status == 200
        gateway.idle()
        return gateway.status()


def run(directory: Path, capsys: pytest.CaptureFixture[str], command: str, *words: Any) -> Any:
    """The JSON of a command."""
    assert main([command, str(directory / "gateway.toml"), *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def archive(directory: Path, capsys: pytest.CaptureFixture[str], keep: int = 20) -> list[dict[str, Any]]:
    """The archives that are made."""
    made = run(directory, capsys, "archive", "--out", directory / "archives", "--keep", keep)["archives"]
    assert isinstance(made, list)
    return made


def audit(directory: Path, capsys: pytest.CaptureFixture[str], *archives: str) -> dict[str, Any]:
    """The audit of archives and of what the store exports."""
    assert main(["export", str(directory / "gateway.toml"), "--out", str(directory / "rest.jsonl")]) == 0
    capsys.readouterr()
    main(["audit", *archives, str(directory / "rest.jsonl"), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_a_gateway_goes_on_after_its_old_entries_are_archived(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Again and again: status, threshold and certificate are the same; all archives and the rest pass one audit."""
    archives: list[str] = []
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url)
        for life in range(3):
            before = served(config, life * 100, 100)
            whole = audit(tmp_path, capsys, *archives)
            (made,) = archive(tmp_path, capsys)
            archives.append(made["file"])
            assert run(tmp_path, capsys, "status")["games"][0]["certificate"] == before["certificate"]
            assert served(config, 0, 0) == before
            after = audit(tmp_path, capsys, *archives)
            assert after["differences"] == [] == after["unproved"]
            assert {**after, "claims": 0} == {**whole, "claims": 0}
            assert made["last"] < after["entries"]
        with open_store(config["gateway"]["store"], read_only=True)._reading as raw:  # type: ignore[attr-defined]
            (left,) = raw.execute("SELECT count(*) FROM entries").fetchone()
        assert 20 <= left < 150
    assert after["rounds"] == 300
    assert after["coins"]["verified"] == 200
    mode = os.stat(archives[0]).st_mode
    assert mode & 0o077 == 0


def test_an_archive_that_is_missing_or_changed_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rest alone is no journal; archives in the wrong order, left out, changed or of another game differ."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url)
        files = []
        for life in range(2):
            served(config, life * 100, 100)
            files.append(archive(tmp_path, capsys)[0]["file"])
        (tmp_path / "other").mkdir()
        other = configured(tmp_path / "other", models.base_url)
        served(other, 500, 100)
        foreign = archive(tmp_path / "other", capsys)[0]["file"]
    assert audit(tmp_path, capsys, *files)["differences"] == []
    assert audit(tmp_path, capsys, files[0])["differences"]
    assert audit(tmp_path, capsys, foreign, files[1])["differences"]
    text = Path(files[0]).read_text()
    changed = tmp_path / "changed.jsonl"
    changed.write_text(text.replace('"loss":0.0', '"loss":1.0', 1))
    assert audit(tmp_path, capsys, str(changed), files[1])["differences"]
    for wrong in ([], [files[1]], [files[1], files[0]]):
        assert main(["audit", *wrong, str(tmp_path / "rest.jsonl")]) in (1, 2)
        assert "give the archives in order before this file" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["the snapshot", "both"])
def test_a_damaged_snapshot_costs_nothing_after_archiving(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    """The state that was kept in the place of the archived entries is used; if that is damaged, too, it is said."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url)
        before = served(config, 0, 100)
        archive(tmp_path, capsys)
        with sqlite3.connect(tmp_path / "bpac.db") as raw:
            raw.execute("UPDATE snapshots SET snapshot = replace(snapshot, '1', '2')")
            if damage == "both":
                raw.execute("UPDATE archived SET snapshot = replace(snapshot, '1', '2')")
        raw.close()
        if damage == "both":
            assert main(["status", str(tmp_path / "gateway.toml")]) == 1
            assert "archived entries is not as it was written" in capsys.readouterr().err
            return
        after = served(config, 0, 0)
        assert {**after, "savings": None} == {**before, "savings": None}


def test_rounds_whose_outcome_is_open_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Feedback about them is accepted after archiving, by the key that may report it."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url, loss="external", epsilon=0.05)
        with RunningGateway(config) as gateway:
            names = [post(gateway.url, Question(number).body).headers["x-bpac-decision"] for number in range(60)]
            gateway.idle()
            for name in [*names[:30], *names[31:]]:
                assert post(gateway.url, {"decision": name, "loss": 0.0}, "/v1/feedback").status == 200
        (made,) = archive(tmp_path, capsys, keep=1)
        assert 30 <= made["last"] < 60
        assert archive(tmp_path, capsys, keep=1) == []
        with RunningGateway(config) as gateway:
            assert gateway.status()["owed"] == 1
            assert post(gateway.url, {"decision": names[30], "loss": 0.0}, "/v1/feedback").status == 200
            assert post(gateway.url, {"decision": names[3], "loss": 0.0}, "/v1/feedback").status == 409
        (more,) = archive(tmp_path, capsys, keep=1)
        assert more["first"] == made["last"] + 1
        assert audit(tmp_path, capsys, made["file"], more["file"])["differences"] == []


def test_a_caller_is_told_that_a_decision_is_archived(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not that it was made for another key, which would be wrong; decisions that are not archived keep their owner."""
    keys = [{"name": name, "key": f"{name}-key", "roles": ["call", "feedback"]} for name in ("ours", "theirs")]
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url, loss="external", epsilon=0.05)
        config["gateway"]["keys"] = [*keys, OPERATOR]
        with RunningGateway(config) as gateway:
            names = [
                post(gateway.url, Question(number).body, headers=bearer("ours-key")).headers["x-bpac-decision"]
                for number in range(60)
            ]
            gateway.idle()
            for name in names[:-1]:
                given = post(gateway.url, {"decision": name, "loss": 0.0}, "/v1/feedback", bearer("ours-key"))
                assert given.status == 200
        assert archive(tmp_path, capsys, keep=1)
        with RunningGateway(config) as gateway:

            def told(key: str, name: str) -> tuple[int, str]:
                reply = post(gateway.url, {"decision": name, "loss": 0.0}, "/v1/feedback", bearer(key))
                return reply.status, reply.json["error"]["code"] if reply.status != 200 else ""

            assert told("ours-key", names[3]) == (409, "archived")
            assert told("theirs-key", names[3]) == (409, "archived")
            assert told("theirs-key", names[-1]) == (403, "not_yours")
            assert told("ours-key", names[-1]) == (200, "")
            got = post(gateway.url, b"", f"/v1/decisions/{names[3]}", bearer("ours-key"), "GET")
            assert (got.status, got.json["error"]["code"]) == (409, "archived")


@pytest.mark.parametrize("moment", ["before the cut", "in the cut"])
def test_a_crash_while_archiving_loses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The entries stay in the store until they are in the archive, and leave it in one commit."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url)
        before = served(config, 0, 100)

        def killed(*_: Any) -> None:
            raise StoreError("killed")

        with monkeypatch.context() as patched:
            patched.setattr(SqliteStore, "cut" if moment == "before the cut" else "_put", killed)
            words = ["archive", str(tmp_path / "gateway.toml"), "--out", str(tmp_path / "archives"), "--keep", "20"]
            assert main(words) == 1
        capsys.readouterr()
        assert served(config, 0, 0) == before
        assert audit(tmp_path, capsys)["differences"] == []
        (made,) = archive(tmp_path, capsys)
        assert served(config, 0, 0) == before
        assert audit(tmp_path, capsys, made["file"])["differences"] == []


def test_a_gateway_that_was_killed_goes_on_after_archiving(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Entries after the last snapshot stay; the crash is charged as before."""
    with ScriptedServer(KnownPair()) as models:
        process = Process(tmp_path, models.base_url, epsilon=0.4)
        config = process.config.read_text().replace("snapshot_every = 500", "snapshot_every = 40")
        process.config.write_text(config)
        for life in range(2):
            process.start()
            for number in range(60):
                assert post(process.url, Question(60 * life + number).body).status == 200
            process.end(signal.SIGKILL)
            (made,) = archive(tmp_path, capsys)
        process.close()
        rest = run(tmp_path, capsys, "status")["games"][0]
        assert rest["steps"] == 120
        first = next(name for name in os.listdir(tmp_path / "archives") if "-entries-1-" in name)
        found = audit(tmp_path, capsys, str(tmp_path / "archives" / first), made["file"])
        assert (found["differences"], found["rounds"]) == ([], 120)


def test_what_needs_the_whole_journal_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table and a warm start from the store are refused; the archive and the rest in one file can be used."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url)
        served(config, 0, 100)
        (made,) = archive(tmp_path, capsys)
        assert audit(tmp_path, capsys, made["file"])["differences"] == []
        assert main(["export", str(tmp_path / "gateway.toml"), "--format", "table"]) == 1
        assert "are archived" in capsys.readouterr().err
        configured(tmp_path, models.base_url, epsilon=0.35)
        assert main(["warm", str(tmp_path / "gateway.toml"), "--game", "1"]) == 1
        assert "are archived" in capsys.readouterr().err
        whole = tmp_path / "whole.jsonl"
        whole.write_text(Path(made["file"]).read_text() + (tmp_path / "rest.jsonl").read_text())
        assert run(tmp_path, capsys, "warm", whole)["rows"] == 100


def test_backups_and_archives_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A backup of a store with archived entries is checked and restored; a lost end is found as before."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url)
        before = served(config, 0, 100)
        archive(tmp_path, capsys)
        (copy,) = run(tmp_path, capsys, "backup", "--out", tmp_path / "copy.db")["games"]
        (tmp_path / "bpac.db").write_bytes((tmp_path / "copy.db").read_bytes())
        assert served(config, 0, 0) == before
        with sqlite3.connect(tmp_path / "bpac.db") as raw:
            raw.execute("DELETE FROM entries")
        raw.close()
        (loss,) = run(tmp_path, capsys, "status")["losses"]
        assert (loss["game"], loss["acknowledged"]) == (1, copy["entries"])
        with RunningGateway(config) as gateway:
            assert gateway.status()["game"] == 2


def test_a_running_gateway_is_not_disturbed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store has one writer: the command ends with an error, and the gateway goes on."""
    with ScriptedServer(KnownPair()) as models, RunningGateway(configured(tmp_path, models.base_url)) as gateway:
        assert main(["archive", str(tmp_path / "gateway.toml"), "--out", str(tmp_path)]) == 1
        assert "is in use by process" in capsys.readouterr().err
        assert post(gateway.url, Question(1).body).status == 200


def test_a_warm_start_from_what_is_left_asks_for_the_archives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The export alone lacks its first entries, which is said; archives and export in one file are a history."""
    with ScriptedServer(KnownPair()) as models:
        served(configured(tmp_path, models.base_url), 0, 60)
    (made,) = archive(tmp_path, capsys)
    audit(tmp_path, capsys, made["file"])
    command = ["warm", "--new-game", str(tmp_path / "gateway.toml")]
    assert main([*command, str(tmp_path / "rest.jsonl")]) == 2
    assert "entries are archived: put the archives, in order, and this file into one file" in capsys.readouterr().err
    whole = tmp_path / "whole.jsonl"
    whole.write_text(Path(made["file"]).read_text() + (tmp_path / "rest.jsonl").read_text())
    assert main([*command, str(whole)]) == 0
    assert "learned from 60 rounds" in capsys.readouterr().out
