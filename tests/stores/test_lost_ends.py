"""A journal that is shorter than, or other than, what was acknowledged is found out when its store is opened."""

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
    """A store whose process is as good as dead: all of its journal is in the log, and the lock is free."""
    store = SqliteStore(str(path))
    play(store, rounds)
    asyncio.run(store.durable())
    assert store._checkpoints is not None
    store._checkpoints._ending.set()
    return store


def files(path: Path) -> dict[str, bytes]:
    """What a crash would leave of a store."""
    return {beside: path.with_name(path.name + beside).read_bytes() for beside in ("", "-wal", ".head")}


def put_back(path: Path, left: dict[str, bytes]) -> None:
    """A store as a crash left it."""
    for beside, data in left.items():
        path.with_name(path.name + beside).write_bytes(data)


def ended(path: Path, rounds: int = 30) -> tuple[dict[str, bytes], int]:
    """The files of a store at the moment of a crash, and how many entries were acknowledged."""
    path.parent.mkdir()
    store = crashed(path, rounds)
    left, entries = files(path), store._ends[1].number
    store.close()
    return left, entries


def test_nothing_lost_is_nothing_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Closed in order or killed, a store that holds all of it says nothing."""
    left, entries = ended(tmp_path / "one" / "bpac.db")
    path = tmp_path / "bpac.db"
    put_back(path, left)
    for _ in range(2):
        store = SqliteStore(str(path))
        assert store.losses() == []
        assert store._ends[1].number == entries
        store.close()
    assert caplog.text == ""


def test_a_deleted_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What was only in the log is gone: it is said, kept for later readers, and said once."""
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


def test_one_flipped_bit_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """SQLite takes a log for ended where a check sum does not fit: the end that goes with it is missed."""
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
    """A store of which an older copy was put back: its game, the copy's entries, and the head after one entry more."""
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


def test_an_older_copy_put_back(tmp_path: Path) -> None:
    """Rounds that were served since are missing, although nothing in the file itself is wrong."""
    path = tmp_path / "bpac.db"
    _, entries, head = went_on_after_a_copy(path)
    store = SqliteStore(str(path))
    assert store.losses() == [LostEntries(1, entries, entries + 1, head.hex())]
    store.close()


def test_another_journal_that_is_longer(tmp_path: Path) -> None:
    """What is there instead of what was acknowledged is told apart, however long it is."""
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


def test_a_lost_game(tmp_path: Path) -> None:
    """If even the game is gone, its number is not given to another one."""
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
def test_notes_that_cannot_be_used(tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: str, said: str) -> None:
    """A copied database without its note, or with a damaged one, goes on, and the operator is told."""
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


def test_every_flipped_bit_of_the_note_is_found(tmp_path: Path) -> None:
    """A damaged note is never taken for a lost journal, nor for a good one."""
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


def test_a_note_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """At the start the store refuses; later the journal goes on, and the operator is told once."""
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
