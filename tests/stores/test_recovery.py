"""Opening a failed store again: only if it is the same file, can be written, and has everything that was durable."""

import asyncio
import resource
import shutil
import sqlite3
from pathlib import Path

import pytest

from bpac.errors import StoreError
from bpac.stores import MemoryStore, open_store
from bpac.stores.sqlite.reading.read_back import ReadBack
from bpac.stores.sqlite.recovery.recovery import check_writable
from bpac.stores.sqlite.store import SqliteStore
from bpac.stores.sqlite.writing import checkpoints
from tests.gateway.configured import wait_for
from tests.stores.journals import play

FULL = sqlite3.OperationalError("database or disk is full")
FULL.sqlite_errorcode = sqlite3.SQLITE_FULL


def fail(store: SqliteStore) -> None:
    """Let a store fail as on a full disk."""
    store._writer.fail(FULL)


def opened(path: Path) -> SqliteStore:
    """A store with a few durable rounds."""
    store = SqliteStore(str(path))
    play(store, 5)
    asyncio.run(store.durable())
    return store


@pytest.mark.parametrize("sync", ["normal", "full"])
def test_a_store_goes_on_where_it_was(tmp_path: Path, sync: str) -> None:
    """The journals end where they ended, and can be appended to."""
    store = open_store(f"sqlite:///{tmp_path}/bpac.db?sync={sync}")
    assert isinstance(store, SqliteStore)
    game, written, _ = play(store, 5)
    asyncio.run(store.durable())
    fail(store)
    assert store.failure is not None
    assert (store.failure.cause, "free space" in store.failure.remedy) == ("the disk is full", True)
    again = store.reopened()
    assert again.failure is None
    assert [entry.entry for entry in again.entries(game)] == written
    assert again.head(game) == store.head(game)
    again.append(game, written[0], {})
    asyncio.run(again.durable())
    again.close()


def test_what_was_not_durable_is_not_expected(tmp_path: Path) -> None:
    """It was never acted on, so a file without it has lost nothing."""
    store = opened(tmp_path / "bpac.db")
    (game,) = store.games()
    count = len(list(store.entries(game)))
    store._writing.execute("PRAGMA max_page_count = 1")

    async def write() -> None:
        entry = next(store.entries(game)).entry
        for _ in range(1000):
            store.append(game, entry, {"long": "x" * 1000})
            await store.durable()

    with pytest.raises(StoreError, match="full"):
        asyncio.run(write())
    again = store.reopened()
    assert len(list(again.entries(game))) >= count
    assert again.losses() == []
    again.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)",
        "UPDATE entries SET entry = '{}' WHERE number = 2",
    ],
)
def test_a_journal_that_lacks_something_is_not_used(tmp_path: Path, damage: str) -> None:
    """The last entry, or one in the middle that the hash chain covers."""
    path = tmp_path / "bpac.db"
    store = opened(path)
    fail(store)
    with sqlite3.connect(path) as thief:
        thief.execute(damage)
    thief.close()
    with pytest.raises(StoreError) as caught:
        store.reopened()
    assert caught.value.cause in ("entries that were durable are missing", "the database is damaged")
    assert store.failure is not None
    store.close()


def test_another_store_is_not_used(tmp_path: Path) -> None:
    """Its journals are about other requests."""
    path, other = tmp_path / "bpac.db", tmp_path / "other.db"
    opened(other).close()
    store = opened(path)
    fail(store)
    path.unlink()
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    with pytest.raises(StoreError, match="does not exist"):
        store.reopened()
    assert not path.exists(), "a new store would hide that the old one is gone"
    shutil.copy(other, path)
    with pytest.raises(StoreError, match="it is another store"):
        store.reopened()
    store.close()


def test_a_store_in_memory_is_gone() -> None:
    """There is nothing to open again."""
    store = MemoryStore()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.reopened()


def test_room_is_checked_without_leaving_anything(tmp_path: Path) -> None:
    """A limit on the size of files counts for the file that is there, too; no file is left behind."""
    path = tmp_path / "bpac.db"
    check_writable(str(path))
    path.write_bytes(bytes(2**20))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (2**19, 2**20 + 2**19):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(StoreError, match="the file may not grow; raise the limit"):
                check_writable(str(path))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [file.name for file in tmp_path.iterdir()] == ["bpac.db"]


def test_entries_that_are_not_in_the_file_are_found(tmp_path: Path) -> None:
    """A connection without anything in memory reads what is really there."""
    store = opened(tmp_path / "bpac.db")
    ends = store._writer.durable_ends()
    ReadBack(store.path).check(ends)
    wrong = {game: end._replace(head=bytes(32)) for game, end in ends.items()}
    with pytest.raises(sqlite3.DatabaseError, match="not as it was written"):
        ReadBack(store.path).check(wrong)
    store.close()


@pytest.mark.parametrize(
    ("error", "fails"),
    [
        (StoreError("too many open files"), False),
        (sqlite3.OperationalError("unable to open database file"), False),
        (sqlite3.DatabaseError("database disk image is malformed"), True),
    ],
)
def test_only_damage_that_is_read_stops_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, fails: bool
) -> None:
    """A process that may open no more files could not read back, and has lost nothing."""
    checked: list[object] = []
    if isinstance(error, sqlite3.Error):
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT if fails else sqlite3.SQLITE_CANTOPEN

    class Failing(ReadBack):
        def check(self, ends: object) -> None:
            checked.append(ends)
            raise error

    monkeypatch.setattr(checkpoints, "ReadBack", Failing)
    store = SqliteStore(str(tmp_path / "bpac.db"))
    wait_for(lambda: len(checked) > 1 or store.failure is not None)
    assert (store.failure is not None) == fails
    store.close()
