"""Checkpoints that fail are noticed."""

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from bpac.stores import SqliteStore, StoreError
from bpac.stores.sqlite.writing.checkpoints import Checkpoints
from tests.gateway.configured import wait_for
from tests.stores.journals import play


class FailingDisk:
    """A connection whose checkpoints fail as SQLite's do when ``fsync`` fails, or when the file is in use."""

    def __init__(self, connection: sqlite3.Connection, code: int) -> None:
        self._connection = connection
        self._code = code
        self.asked = 0

    def execute(self, statement: str) -> Any:
        """Execute, unless it is a checkpoint."""
        if "wal_checkpoint" not in statement:
            return self._connection.execute(statement)
        self.asked += 1
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = self._code
        raise error

    def close(self) -> None:
        """Close it."""
        self._connection.close()


@pytest.mark.parametrize("wait_for_disk", [False, True])
def test_a_checkpoint_that_fails_stops_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wait_for_disk: bool
) -> None:
    """It is uncertain what the disk has: the store accepts nothing more, and logs why."""
    disks: list[FailingDisk] = []

    def failing(connection: sqlite3.Connection, writer: Any) -> Checkpoints:
        disks.append(FailingDisk(connection, sqlite3.SQLITE_IOERR_FSYNC))
        return Checkpoints(disks[0], writer, every=0.01)  # type: ignore[arg-type]

    monkeypatch.setattr("bpac.stores.sqlite.store.Checkpoints", failing)
    with caplog.at_level(logging.ERROR):
        store = SqliteStore(str(tmp_path / "bpac.db"), wait_for_disk=wait_for_disk)
        wait_for(lambda: store.failure is not None)
    assert "failed (disk I/O error): nothing is decided until the gateway is restarted" in str(store.failure)
    assert "the store failed" in caplog.text
    with pytest.raises(StoreError, match="disk I/O error"):
        store.open_game("homework", "", "{}")
    store.close()
    assert caplog.text.count("the store failed") == 1


def test_a_log_in_use_is_moved_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another reader of the file is not a failure."""
    disks: list[FailingDisk] = []

    def busy(connection: sqlite3.Connection, writer: Any) -> Checkpoints:
        disks.append(FailingDisk(connection, sqlite3.SQLITE_BUSY_SNAPSHOT))
        return Checkpoints(disks[0], writer, every=0.01)  # type: ignore[arg-type]

    monkeypatch.setattr("bpac.stores.sqlite.store.Checkpoints", busy)
    store = SqliteStore(str(tmp_path / "bpac.db"))
    wait_for(lambda: disks[0].asked > 2)
    game, written, _ = play(store, 3)
    asyncio.run(store.durable())
    assert store.failure is None
    assert len(list(store.entries(game))) == len(written)
    store.close()
