"""``bpac backup``: a copy that is made while the gateway serves, and what a gateway does that starts from it."""

import json
import os
import shutil
import signal
import sqlite3
import stat
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.routing.audit.audit import audit_journal
from bpac.stores import StoreError, open_store
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import get_json, settings
from tests.gateway.law import KnownPair, Question
from tests.gateway.raw import post
from tests.gateway.running import ASK, RunningGateway, pair
from tests.gateway.serving import Process, to_toml

MODELS = pair(Reply("41"), Reply("42"))


def configured(directory: Path, base_url: str, **route: Any) -> dict[str, Any]:
    """A configuration with a store in a directory, also written to a file there."""
    config = settings(base_url, gateway={"store": f"sqlite:///{directory / 'bpac.db'}"}, **route)
    (directory / "gateway.toml").write_text(to_toml(config))
    return config


def backup(directory: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Make a backup of the store in a directory."""
    assert main(["backup", str(directory / "gateway.toml"), "--out", str(directory / "copy.db"), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert isinstance(made, dict)
    return made


def decided(gateway: RunningGateway, count: int = 1) -> str:
    """The game and the step of the last of some requests."""
    for _ in range(count):
        name = post(gateway.url, ASK).headers["x-bpac-decision"]
    gateway.idle()
    return "-".join(name.split("-")[1:3])


def restore(directory: Path, *, head: bool) -> None:
    """Put the backup in the place of the store, with or without the file that notes the end of each journal."""
    for ending in ("-wal", "-shm", *(() if head else (".head",))):
        (directory / f"bpac.db{ending}").unlink(missing_ok=True)
    shutil.copy(directory / "copy.db", directory / "bpac.db")


def test_a_backup_is_made_while_requests_are_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every copy has a prefix of the journal that passes its audit, and the gateway answers all requests meanwhile."""
    with ScriptedServer(KnownPair()) as models, RunningGateway(configured(tmp_path, models.base_url)) as gateway:
        statuses: list[int] = []
        ended = threading.Event()

        def ask() -> None:
            number = 0
            while not ended.is_set():
                number += 1
                statuses.append(post(gateway.url, Question(number).body).status)

        callers = [threading.Thread(target=ask) for _ in range(4)]
        for caller in callers:
            caller.start()
        sizes = []
        for _ in range(5):
            (copy,) = backup(tmp_path, capsys)["games"]
            sizes.append(copy["entries"])
            (tmp_path / "copy.toml").write_text((tmp_path / "gateway.toml").read_text().replace("bpac.db", "copy.db"))
            assert main(["export", str(tmp_path / "copy.toml")]) == 0
            audit = audit_journal(capsys.readouterr().out.splitlines())
            assert (audit.differences, audit.head) == ([], copy["head"])
        ended.set()
        for caller in callers:
            caller.join()
        assert sizes == sorted(sizes)
        assert set(statuses) == {200}


def test_only_its_owner_can_read_a_backup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It contains the secrets of the store; a file that others could read is made private, and is one file."""
    with ScriptedServer(MODELS) as models, RunningGateway(configured(tmp_path, models.base_url)) as gateway:
        decided(gateway)
        (tmp_path / "copy.db").write_bytes(b"old")
        (tmp_path / "copy.db").chmod(0o644)
        backup(tmp_path, capsys)
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    beside = {file.name for file in tmp_path.iterdir()} - {"bpac.db", "bpac.db.lock", "bpac.db.head"}
    assert beside == {"gateway.toml", "copy.db"}


def test_a_restored_backup_goes_on_where_nothing_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """If the file beside the store shows that nothing was written since, all games continue, and it is said once."""
    with ScriptedServer(MODELS) as models:
        config = configured(tmp_path, models.base_url)
        with RunningGateway(config) as gateway:
            assert decided(gateway, 3) == "1-3"
        backup(tmp_path, capsys)
        restore(tmp_path, head=True)
        for step in (4, 5):
            caplog.clear()
            with RunningGateway(config) as gateway:
                assert decided(gateway) == f"1-{step}"
                assert get_json(f"{gateway.url}/v1/status")["losses"] == []
            assert ("is a backup made at" in caplog.text) == (step == 4)


@pytest.mark.parametrize("head", [True, False])
@pytest.mark.parametrize("served_since", [True, False])
def test_a_restored_backup_never_continues_a_game_silently(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    head: bool,
    served_since: bool,
) -> None:
    """Where rounds were served since, or nothing shows that none were, the game ends and another begins."""
    with ScriptedServer(MODELS) as models:
        config = configured(tmp_path, models.base_url)
        with RunningGateway(config) as gateway:
            decided(gateway, 3)
            if served_since:
                backup(tmp_path, capsys)
                decided(gateway, 2)
        if not served_since:
            backup(tmp_path, capsys)
        restore(tmp_path, head=head)
        caplog.clear()
        complete = head and not served_since
        assert main(["status", str(tmp_path / "gateway.toml")]) == 0
        assert ("LOST" in capsys.readouterr().out) == (not complete)
        with RunningGateway(config) as gateway:
            assert decided(gateway) == ("1-4" if complete else "2-1")
            losses = get_json(f"{gateway.url}/v1/status")["losses"]
            assert [loss["game"] for loss in losses] == ([] if complete else [1])
        assert "is a backup made at" in caplog.text
        if not complete:
            assert "the journal lost entries: a new game begins with a threshold of 0" in caplog.text
            if not head:
                assert "entries that were written after the backup may be missing" in caplog.text
        # The mark is gone, what it led to stays.
        caplog.clear()
        with RunningGateway(config) as gateway:
            assert decided(gateway) == ("1-5" if complete else "2-2")
        assert "backup" not in caplog.text


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_a_backup_that_is_restored_twice_is_still_not_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: bool, second: bool
) -> None:
    """The file beside the store keeps what was once acknowledged, also after a restore; and so with a plain copy."""
    with ScriptedServer(MODELS) as models:
        config = configured(tmp_path, models.base_url)
        with RunningGateway(config) as gateway:
            decided(gateway, 3)
        backup(tmp_path, capsys)
        with RunningGateway(config) as gateway:
            decided(gateway, 2)
        for head in (first, second):
            restore(tmp_path, head=head)
            with RunningGateway(config) as gateway:
                assert decided(gateway).split("-")[0] != "1"
                losses = get_json(f"{gateway.url}/v1/status")["losses"]
                assert 1 in [loss["game"] for loss in losses]


def test_the_whole_store_may_be_put_back_after_a_backup_was_restored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operator who restores a backup by mistake can return to the complete journal, and its game goes on."""
    with ScriptedServer(MODELS) as models:
        config = configured(tmp_path, models.base_url)
        with RunningGateway(config) as gateway:
            decided(gateway, 3)
        backup(tmp_path, capsys)
        with RunningGateway(config) as gateway:
            decided(gateway, 2)
        shutil.copy(tmp_path / "bpac.db", tmp_path / "whole.db")
        restore(tmp_path, head=True)
        with RunningGateway(config) as gateway:
            assert decided(gateway) == "2-1"
        shutil.copy(tmp_path / "whole.db", tmp_path / "bpac.db")
        with RunningGateway(config) as gateway:
            assert decided(gateway) == "1-6"


def test_each_game_of_a_backup_is_judged_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A segment without requests since the backup goes on; one that had requests, or is missing in it, does not."""

    def ask(gateway: RunningGateway, name: str) -> str:
        found = post(gateway.url, ASK | {"user": name}).headers["x-bpac-decision"]
        gateway.idle()
        return "-".join(found.split("-")[1:3])

    with ScriptedServer(MODELS) as models:
        config = configured(tmp_path, models.base_url, segment_by="user")
        with RunningGateway(config) as gateway:
            assert [ask(gateway, name) for name in ("still", "busy")] == ["1-1", "2-1"]
        backup(tmp_path, capsys)
        with RunningGateway(config) as gateway:
            assert [ask(gateway, name) for name in ("busy", "late")] == ["2-2", "3-1"]
        restore(tmp_path, head=True)
        with RunningGateway(config) as gateway:
            # A start alone writes nothing to a journal. The number of the game that is missing is not used again.
            assert [ask(gateway, name) for name in ("still", "busy", "late")] == ["1-2", "4-1", "5-1"]


def test_a_clone_of_a_running_gateway_begins_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second gateway that starts from a backup has games of its own: the first one has gone on."""
    with ScriptedServer(MODELS) as models:
        config = configured(tmp_path, models.base_url)
        with RunningGateway(config) as gateway:
            decided(gateway, 3)
            backup(tmp_path, capsys)
            clone = settings(models.base_url, gateway={"store": f"sqlite:///{tmp_path / 'copy.db'}"})
            with RunningGateway(clone) as second:
                assert decided(second) == "2-1"
            assert decided(gateway) == "1-4"


def test_a_backup_of_a_killed_gateway_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is only in the write-ahead log is in the copy, too."""
    with ScriptedServer(MODELS) as models:
        process = Process(tmp_path, models.base_url)
        process.start()
        for _ in range(3):
            post(process.url, ASK)
        process.end(signal.SIGKILL)
        process.close()
        assert (tmp_path / "bpac.db-wal").exists()
        (copy,) = backup(tmp_path, capsys)["games"]
        restore(tmp_path, head=True)
        with RunningGateway(settings(models.base_url, gateway={"store": process.store})) as gateway:
            assert decided(gateway) == "1-4"
    assert copy["entries"] >= 5


def test_an_old_log_beside_a_restored_backup_is_not_mistaken_for_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the log of the broken store is left in place, the gateway does not start, or the game does not go on."""
    with ScriptedServer(MODELS) as models:
        process = Process(tmp_path, models.base_url)
        process.start()
        for _ in range(3):
            post(process.url, ASK)
        backup(tmp_path, capsys)
        for _ in range(30):
            post(process.url, ASK)
        process.end(signal.SIGKILL)
        process.close()
        kept = open_store(process.store, read_only=True)
        whole = [stored.entry for stored in kept.entries(kept.games()[0])]
        kept.close()
        shutil.copy(tmp_path / "copy.db", tmp_path / "bpac.db")
        (tmp_path / "bpac.db-shm").unlink()
    try:
        store = open_store(process.store)
    except StoreError:
        return  # a gateway does not start
    lost = [loss.game for loss in store.losses()]
    with suppress(StoreError), closing(store):  # the gateway reads the journal and does not start
        assert lost == [1] or [stored.entry for stored in store.entries(store.games()[0])] == whole


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("bpac.db", "would overwrite a file that is read"),
        ("bpac.db.head", "would overwrite a file that is read"),
        ("gateway.toml", "would overwrite a file that is read"),
        ("other.db", "looks like a store in use"),
        (".", "is not a file"),
    ],
)
def test_a_backup_overwrites_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str], out: str, said: str) -> None:
    """Neither the store itself nor that of another gateway."""
    with ScriptedServer(MODELS) as models, RunningGateway(configured(tmp_path, models.base_url)) as gateway:
        decided(gateway)
        other = settings(models.base_url, gateway={"store": f"sqlite:///{tmp_path / 'other.db'}"})
        with RunningGateway(other) as second:
            decided(second)
            assert main(["backup", str(tmp_path / "gateway.toml"), "--out", str(tmp_path / out)]) == 2
            assert said in capsys.readouterr().err
            assert decided(second) == "1-2"
        assert decided(gateway) == "1-2"


def test_what_cannot_be_copied_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No store yet, a store in memory, a damaged journal, a directory without write permission: nothing is left."""
    with ScriptedServer(MODELS) as models:
        config = configured(tmp_path, models.base_url)
        words = ["backup", str(tmp_path / "gateway.toml"), "--out", str(tmp_path / "copy.db")]
        assert main(words) == 1
        assert "does not exist" in capsys.readouterr().err
        with RunningGateway(config) as gateway:
            decided(gateway, 2)
        with sqlite3.connect(tmp_path / "bpac.db") as raw:
            raw.execute("UPDATE entries SET entry = replace(entry, '0', '1')")
        raw.close()
        assert main(words) == 1
        assert "is damaged" in capsys.readouterr().err
        (tmp_path / "gateway.toml").write_text(to_toml(settings(models.base_url)))
        assert main(words) == 2
        assert "memory://" in capsys.readouterr().err
    assert not [name for name in os.listdir(tmp_path) if "copy" in name or "unfinished" in name]


def test_restoring_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text names the journals with their heads, and says how the copy is restored."""
    with ScriptedServer(MODELS) as models, RunningGateway(configured(tmp_path, models.base_url)) as gateway:
        decided(gateway, 2)
    assert main(["backup", str(tmp_path / "gateway.toml"), "--out", str(tmp_path / "new" / "copy.db")]) == 0
    printed = capsys.readouterr().out
    assert "game 1, homework: " in printed
    assert "to restore it, stop the gateway" in printed
