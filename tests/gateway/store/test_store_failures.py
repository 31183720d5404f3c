"""A store that fails under a running gateway: what callers get, what the operator sees, and how it goes on."""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bpac.errors import StoreError
from bpac.stores import open_store
from bpac.testing import ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.measured import metric
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway
from tests.gateway.serving import COMMAND, Process, main, to_toml
from tests.gateway.store.disks import MODELS, decided, fill, fill_disk, logged, ready


@pytest.mark.parametrize("sync", ["", "?sync=full"])
def test_a_full_disk_is_said_and_left_behind_without_a_loss(
    tmp_path: Path, small_disk: Path, sync: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has cause and remedy, callers get 503, and when there is space again the gateway goes on by itself."""
    store = f"sqlite:///{small_disk}/bpac.db"
    with Running(MODELS, gateway={"store": store + sync}) as (gateway, _):
        answers = 5
        for _ in range(answers):
            assert post(gateway.url, ASK).status == 200
        filler = fill_disk(small_disk)
        answers += fill(gateway.url)
        status, body = ready(gateway.url)
        assert (status, body["reason"]) == (503, "the store failed: the disk is full")
        assert "free space" in body["remedy"]
        assert metric(gateway, "bpac_store_failures_total") == 1
        assert post(gateway.url, ASK).status == 503
        found = get_json(f"{gateway.url}/v1/status")["store"]
        assert (found["ok"], found["cause"], found["failures"]) == (False, "the disk is full", 1)
        wait_for(lambda: any("still cannot be used" in record.message for record in caplog.records))
        assert ready(gateway.url)[0] == 503
        filler.unlink()
        wait_for(lambda: ready(gateway.url)[0] == 200, 60.0)
        assert post(gateway.url, ASK).status == 200
        gateway.idle()
        found = get_json(f"{gateway.url}/v1/status")
        assert (found["store"]["ok"], found["store"]["failures"], found["losses"]) == (True, 1, [])
        game = gateway.status()
        assert game["game"] == 1, "the same game goes on"
        steps = decided(store)
    assert steps == list(range(1, len(steps) + 1))
    assert answers + 1 <= len(steps) <= answers + 2, (
        "every answer is a round; one more may have failed after its commit"
    )
    messages = [record.message for record in caplog.records]
    assert messages.count("the store failed: nothing is decided until it can be written again") == 1
    (said,) = [vars(record) for record in caplog.records if record.message.startswith("the store failed")]
    assert (said["cause"], "free space" in said["remedy"]) == ("the disk is full", True)
    assert sum("nothing was lost" in message for message in messages) == 1
    assert not any(record.exc_info for record in caplog.records), "never a traceback"


def test_a_limit_on_the_file_is_said_and_left_behind(
    tmp_path: Path, models: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a process of its own, whose files may not grow for a while; its log has no traceback."""
    gateway = Process(tmp_path, models.base_url)
    code = -1
    try:
        gateway.start()
        answers = 0
        for _ in range(5):
            assert post(gateway.url, ASK).status == 200
            answers += 1
        _, hard = resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE)
        # Large enough for the log of the gateway, too small for the store.
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (100_000, hard))
        answers += fill(gateway.url)
        status, body = ready(gateway.url)
        assert status == 503
        assert body["reason"].startswith("the store failed: ")
        wait_for(lambda: any("still cannot be used" in line["message"] for line in logged(tmp_path)))
        assert main(["status", str(gateway.config)]) == 0
        assert capsys.readouterr().out.startswith("STORE: failed, ")
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        wait_for(lambda: ready(gateway.url)[0] == 200, 60.0)
        assert post(gateway.url, ASK).status == 200
        code = gateway.end(signal.SIGTERM)
    finally:
        gateway.process.kill()  # nothing of it is left, also if it did not start in time
        gateway.process.wait()
        gateway.close()
    assert code == 0
    steps = decided(gateway.store)
    assert steps == list(range(1, len(steps) + 1))
    assert answers + 1 <= len(steps) <= answers + 2
    lines = logged(tmp_path)
    assert not any("Traceback" in json.dumps(line) or " < " in json.dumps(line) for line in lines)
    (said,) = [line for line in lines if line["message"].startswith("the store failed")]
    assert said["cause"]
    assert "ulimit -f" in said["remedy"]


def test_a_file_that_lacks_durable_entries_is_not_used_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An older copy in the place of the file: the gateway says so and answers nothing until it is restarted."""
    path = tmp_path / "bpac.db"
    with Running(MODELS, gateway={"store": f"sqlite:///{path}"}) as (gateway, _):
        post(gateway.url, ASK)
        gateway.idle()
        gateway.service.store.checkpoint()  # type: ignore[attr-defined]
        older = path.read_bytes()
        for _ in range(3):
            post(gateway.url, ASK)
        gateway.idle()
        path.unlink()
        path.write_bytes(older)
        for ending in ("-wal", "-shm"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
        wait_for(lambda: ready(gateway.url)[0] == 503)
        wait_for(lambda: any("still cannot be used" in record.message for record in caplog.records))
        assert "missing" in ready(gateway.url)[1]["reason"]
        assert post(gateway.url, ASK).status == 503
        assert ready(gateway.url)[0] == 503
    assert not any(record.exc_info for record in caplog.records)


def test_a_deleted_file_is_noticed(tmp_path: Path) -> None:
    """Without this, rounds would be written to a file without a name, and end with the process."""
    path = tmp_path / "bpac.db"
    with Running(MODELS, gateway={"store": f"sqlite:///{path}"}) as (gateway, _):
        post(gateway.url, ASK)
        aside = tmp_path / "aside.db"
        path.rename(aside)
        wait_for(lambda: ready(gateway.url)[0] == 503)
        assert "moved, deleted or replaced" in ready(gateway.url)[1]["reason"]
        aside.rename(path)
        wait_for(lambda: ready(gateway.url)[0] == 200, 60.0)
        assert post(gateway.url, ASK).status == 200
        assert gateway.status()["game"] == 1


def test_a_damaged_file_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is answered, the cause is named, and the gateway does not go on by itself."""
    path = tmp_path / "bpac.db"
    with Running(MODELS, gateway={"store": f"sqlite:///{path}"}) as (gateway, _):
        for _ in range(20):
            post(gateway.url, ASK)
        gateway.idle()
        gateway.service.store.checkpoint()  # type: ignore[attr-defined]
        with path.open("r+b") as file:
            file.seek(0)
            file.write(os.urandom(path.stat().st_size))
        wal = Path(f"{path}-wal")
        with wal.open("r+b") as file:
            file.write(os.urandom(wal.stat().st_size))
        fill(gateway.url)
        wait_for(lambda: any("still cannot be used" in record.message for record in caplog.records), 60.0)
        status, body = ready(gateway.url)
        assert status == 503
        assert body["remedy"]
        assert post(gateway.url, ASK).status == 503
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize("path", ["/dashboard/decisions?game=1", "/v1/feedback"])
def test_other_endpoints_answer_503_without_a_traceback(
    tmp_path: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A failed store is an error of its own for all endpoints."""
    with Running(MODELS, gateway={"store": f"sqlite:///{tmp_path}/bpac.db"}, loss="external") as (gateway, _):
        decision = post(gateway.url, ASK).headers["x-bpac-decision"]
        gateway.idle()
        gateway.service.store._writer.fail(sqlite3.OperationalError("disk I/O error"))  # type: ignore[attr-defined]
        body = {"decision": decision, "loss": 0.0}
        got = post(gateway.url, body, path, method="POST" if "feedback" in path else "GET")
        assert (got.status, got.json["error"]["code"]) == (503, "store_failed")
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
def test_a_read_only_store_is_found_at_the_start(
    tmp_path: Path, small_disk: Path, used: bool, models: ScriptedServer
) -> None:
    """The gateway does not start: one line names the cause and the remedy, and there is no traceback."""
    store = {"listen": "127.0.0.1:0", "store": f"sqlite:///{small_disk}/bpac.db"}
    config = settings(models.base_url, gateway=store)
    (tmp_path / "gateway.toml").write_text(to_toml(config))
    if used:
        with RunningGateway(config) as gateway:
            post(gateway.url, ASK)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    command = [*COMMAND, "serve", str(tmp_path / "gateway.toml")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert "the file or its disk is read-only" in ended.stderr
    assert "writable for the gateway's user" in ended.stderr


# Opens a store as a user for whom not everything is writable, if it is run by root: that user is changed only after all
# modules are loaded, because they may be where only root can read them.
OPENED_BY_ANOTHER = """
import os, sys
from bpac.errors import StoreError
from bpac.stores import open_store

path, unwritable = sys.argv[1:]
open_store(f"sqlite:///{path}").close()
os.chmod(unwritable, 0o500)
if os.getuid() == 0:
    directory = os.path.dirname(path)
    for name in (directory, *(os.path.join(directory, name) for name in os.listdir(directory))):
        os.chown(name, 65534, 65534)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    open_store(f"sqlite:///{path}")
except StoreError as error:
    print(error)
"""


@pytest.mark.parametrize("what", ["directory", "file"])
def test_a_store_without_permission_is_found_at_the_start(what: str) -> None:
    """The error names the cause and the remedy."""
    # Not below tmp_path, which nobody but its owner may enter.
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/bpac.db"
        command = [sys.executable, "-c", OPENED_BY_ANOTHER, path, path if what == "file" else directory]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        os.chmod(directory, 0o700)
    assert ended.returncode == 0, ended.stderr
    assert "the file or its disk is read-only; make the file" in ended.stdout


def test_a_full_disk_is_found_at_the_start(small_disk: Path) -> None:
    """Before a port is opened."""
    fill_disk(small_disk)
    with pytest.raises(StoreError, match="the disk is full; free space"):
        open_store(f"sqlite:///{small_disk}/bpac.db")
