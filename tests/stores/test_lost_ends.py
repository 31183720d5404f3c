"""A journal that is shorter or other than what was acknowledged is detected when its store is opened."""

import asyncio
import logging
import os
import sqlite3
from pathlib import Path

import pytest

from bpac.routing.journal.entries import Labelled
from bpac.stores import Game, LostEntries, ReadOnlySqliteStore, SqliteStore, StoreError
from tests.stores.journals import play


def crashed(path: Path, rounds: int = 30) -> SqliteStore:
    """A store as after a crash: all of its journal is in the log, and the lock is free."""
    store = SqliteStore(str(path))
    play(store, rounds)
    asyncio.run(store.durable())
    assert store._checkpoints is not None
    store._checkpoints._ending.set()
    return store


def files(path: Path) -> dict[str, bytes]:
    """The files that a crash would leave of a store."""
    return {beside: path.with_name(path.name + beside).read_bytes() for beside in ("", "-wal", ".head")}


def put_back(path: Path, left: dict[str, bytes]) -> None:
    """A store with the files that a crash left."""
    for beside, data in left.items():
        path.with_name(path.name + beside).write_bytes(data)


def ended(path: Path, rounds: int = 30) -> tuple[dict[str, bytes], int]:
    """The files of a store at the moment of a crash, and the number of acknowledged entries."""
    path.parent.mkdir()
    store = crashed(path, rounds)
    left, entries = files(path), store._ends[1].number
    store.close()
    return left, entries


def test_a_complete_journal_has_no_losses(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Closed properly or killed, a store with all of its journal reports nothing."""
    left, entries = ended(tmp_path / "one" / "bpac.db")
    path = tmp_path / "bpac.db"
    put_back(path, left)
    for _ in range(2):
        store = SqliteStore(str(path))
        assert store.losses() == []
        assert store._ends[1].number == entries
        store.close()
    assert caplog.text == ""


def test_a_deleted_log_is_detected(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What was only in the log is lost: this is reported, recorded for later readers, and logged once."""
    path = tmp_path / "bpac.db"
    store = SqliteStore(str(path))
    game, written, _ = play(store, 30)
    store.close()
    store = SqliteStore(str(path))
    for _ in range(5):
        store.append(game, Labelled((0.5,), 0.0), {})
    left, head = files(path), store.head(game)
    store.close()
    put_back(path, left)
    path.with_name("bpac.db-wal").unlink()
    expected = [LostEntries(1, len(written), len(written) + 5, head.hex())]
    reader = ReadOnlySqliteStore(str(path))
    assert reader.losses() == expected
    reader.close()
    with caplog.at_level(logging.ERROR):
        store = SqliteStore(str(path))
    said = f"the last 5 of {len(written) + 5} acknowledged entries of game 1 are missing"
    assert said in caplog.text
    assert store.losses() == expected
    store.close()
    for opened in (ReadOnlySqliteStore(str(path)), SqliteStore(str(path))):
        assert opened.losses() == expected
        opened.close()
    assert caplog.text.count("acknowledged entries") == 1


def test_a_flipped_bit_in_the_log_is_detected(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """SQLite ends a log where a check sum does not fit: the entries that are lost with it are reported."""
    left, entries = ended(tmp_path / "one" / "bpac.db")
    path = tmp_path / "bpac.db"
    log = left["-wal"]
    for number, at in enumerate(range(40, len(log), len(log) // 25)):
        put_back(path, left | {"-wal": log[:at] + bytes([log[at] ^ 1 << number % 8]) + log[at + 1 :]})
        path.with_name("bpac.db-shm").unlink(missing_ok=True)
        try:
            store = SqliteStore(str(path))
        except StoreError:
            continue
        lost = [*store.losses(), *("log" for _ in caplog.records)]
        kept = store._ends[1].number if store.games() else 0
        store.close()
        caplog.clear()
        assert (kept == entries) == (lost == []), at


def went_on_after_a_copy(path: Path) -> tuple[Game, int, bytes]:
    """A store of which an older copy was put back: its game, the copy's entries, and the head after one more entry."""
    store = SqliteStore(str(path))
    game, written, _ = play(store, 10)
    store.close()
    copy = path.read_bytes()
    store = SqliteStore(str(path))
    store.append(game, Labelled((0.5,), 0.0), {})
    head = store.head(game)
    store.close()
    path.write_bytes(copy)
    return game, len(written), head


def test_an_older_copy_is_detected(tmp_path: Path) -> None:
    """Rounds that were served since are missing, although nothing in the file itself is wrong."""
    path = tmp_path / "bpac.db"
    _, entries, head = went_on_after_a_copy(path)
    store = SqliteStore(str(path))
    assert store.losses() == [LostEntries(1, entries, entries + 1, head.hex())]
    store.close()


def test_another_longer_journal_is_detected(tmp_path: Path) -> None:
    """Entries other than the acknowledged ones are detected, however many there are."""
    path, note = tmp_path / "bpac.db", tmp_path / "bpac.db.head"
    game, entries, head = went_on_after_a_copy(path)
    noted = note.read_bytes()
    note.unlink()
    store = SqliteStore(str(path))
    for _ in range(2):
        store.append(game, Labelled((0.5,), 1.0), {})
    store.close()
    note.write_bytes(noted)
    reader = ReadOnlySqliteStore(str(path))
    (found,) = reader.losses()
    reader.close()
    assert found == LostEntries(1, entries + 2, entries + 1, head.hex())
    assert str(found) == f"entry {entries + 1} of game 1 is not the one that was acknowledged"


def test_the_number_of_a_lost_game_is_not_reused(tmp_path: Path) -> None:
    """If even the game is lost, its number is not given to another one."""
    left, entries = ended(tmp_path / "one" / "bpac.db")
    path = tmp_path / "bpac.db"
    put_back(path, left)
    store = SqliteStore(str(path))
    store.close()
    with sqlite3.connect(path) as raw:
        raw.execute("DELETE FROM games")
        raw.execute("DELETE FROM entries")
    raw.close()
    store = SqliteStore(str(path))
    assert [loss[:3] for loss in store.losses()] == [(1, 0, entries)]
    assert store.open_game("homework", "", "{}").number == 2
    store.close()
    store = SqliteStore(str(path))
    assert [loss[:3] for loss in store.losses()] == [(1, 0, entries)]
    assert [game.number for game in store.games()] == [2]
    store.close()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("missing", "cannot be read (No such file or directory)"),
        ("empty", "is damaged or of another version"),
        ("of another store", "is about another store"),
        ("game", "is damaged where it is about game 1"),
    ],
)
def test_an_unusable_head_file_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: str, said: str
) -> None:
    """A copied database without its head file, or with a damaged one, is used, and the log says so."""
    left, entries = ended(tmp_path / "one" / "bpac.db")
    path, note = tmp_path / "bpac.db", tmp_path / "bpac.db.head"
    put_back(path, left)
    if harm == "missing":
        note.unlink()
    elif harm == "empty":
        note.write_bytes(b"")
    elif harm == "of another store":
        note.write_bytes(ended(tmp_path / "other" / "bpac.db", 3)[0][".head"])
    else:
        note.write_bytes(left[".head"][:120] + b"0" + left[".head"][121:])
    store = SqliteStore(str(path))
    assert store.losses() == []
    assert store._ends[1].number == entries
    store.close()
    assert said in caplog.text
    assert caplog.text.count("\n") == 1
    caplog.clear()
    SqliteStore(str(path)).close()
    assert caplog.text == ""


def test_every_flipped_bit_of_the_head_file_is_detected(tmp_path: Path) -> None:
    """A damaged head file is never mistaken for a lost journal, nor for a valid one."""
    left, _ = ended(tmp_path / "one" / "bpac.db", 3)
    path = tmp_path / "bpac.db"
    put_back(path, left)
    SqliteStore(str(path)).close()
    whole = path.with_name("bpac.db.head").read_bytes()
    for at in range(len(whole)):
        path.with_name("bpac.db.head").write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        reader = ReadOnlySqliteStore(str(path))
        assert reader.losses() == []
        reader.close()


def test_a_head_file_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """At the start the store refuses; later the journal goes on, and the log says so once."""
    (tmp_path / "one.db.head").mkdir()
    with pytest.raises(StoreError, match=r"one\.db\.head is not a regular file: give the store another place"):
        SqliteStore(str(tmp_path / "one.db"))
    (tmp_path / "two.db.head").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"two\.db\.head is a symbolic link"):
        SqliteStore(str(tmp_path / "two.db"))
    store = SqliteStore(str(tmp_path / "bpac.db"))
    os.close(store._acknowledged._descriptor)
    game, written, _ = play(store, 5)
    asyncio.run(store.durable())
    assert len(list(store.entries(game))) == len(written)
    assert caplog.text.count("a lost end of the journal would go unnoticed") == 1
    store._acknowledged._descriptor = os.open(tmp_path, os.O_RDONLY)
    store.close()
