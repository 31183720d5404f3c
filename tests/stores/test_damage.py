"""Damaged files: every flipped bit is detected, or changes nothing."""

import random
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bpac.errors import BpacError, SnapshotError
from bpac.stores import CoinKey, ReadOnlySqliteStore, SqliteStore, Store, StoreError
from tests.stores.journals import claim, play


def state(store: Store) -> Any:
    """Everything that a gateway would start from, or export."""
    return [
        (game, list(store.entries(game)), list(store.links(game)), store.snapshot(game), store.claims(game))
        for game in store.games()
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two games, a snapshot, a claim and a key, closed properly."""
    path = tmp_path / "bpac.db"
    store = SqliteStore(str(path))
    game, written, router = play(store, 60)
    play(store, 20, "other")
    store.keep_key(game, CoinKey(1, bytes(range(32))))
    store.save_snapshot(game, router.snapshot(), claim(router, len(written)))
    store.close()
    return path


def test_flipped_bits_are_detected_or_harmless(path: Path) -> None:
    """Of 500 anywhere in the file, each gives an error of ours, or everything reads as it was written."""
    whole = path.read_bytes()
    store = ReadOnlySqliteStore(str(path))
    expected = state(store)
    store.close()
    rng = random.Random(7)
    found = lines = 0
    for _ in range(500):
        at, bit = rng.randrange(len(whole)), rng.randrange(8)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        try:
            store = ReadOnlySqliteStore(str(path))
            try:
                read, lost = state(store), store.losses()
            finally:
                store.close()
        except BpacError as error:
            found += 1
            lines += str(error).count("\n")
            continue
        assert lost or read == expected or _claims_lost(read, expected), (at, bit)
        found += bool(lost)
    assert found > 100
    assert lines == 0


def _claims_lost(read: Any, expected: Any) -> bool:
    """Whether only claims are missing, from which no state follows."""
    return bool([parts[:-1] for parts in read] == [parts[:-1] for parts in expected])


def test_a_writer_refuses_a_damaged_file(path: Path) -> None:
    """A gateway that opens a damaged file gets an error of ours, whatever is damaged."""
    whole = path.read_bytes()
    rng = random.Random(8)
    for _ in range(60):
        at = rng.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            store = SqliteStore(str(path))
        except StoreError:
            continue
        try:
            state(store)
            store.rounds(store.games()[0])
        except (StoreError, SnapshotError, IndexError):
            pass
        finally:
            store.close()
            path.with_name("bpac.db.head").unlink()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET entry = replace(entry, '0.14', '0.15') WHERE number > 9",
        "UPDATE entries SET note = '{}' WHERE number = 9",
        "UPDATE entries SET step = step + 1000 WHERE step > 5",
        "UPDATE entries SET head = zeroblob(32) WHERE number = 9",
        "UPDATE entries SET head = 'text' WHERE number = 9",
        "UPDATE entries SET entry = x'ff' WHERE number = 9",
        "UPDATE entries SET entry = 5 WHERE number = 9",
        "DELETE FROM entries WHERE number = 9",
        "DELETE FROM entries WHERE number = 1",
        "UPDATE entries SET number = 1000000 WHERE number = 9",
    ],
)
def test_a_changed_row_is_detected(path: Path, change: str) -> None:
    """An entry, note, step or hash that is not as it was written stops the reading there."""
    with sqlite3.connect(path) as raw:
        raw.execute(change)
    raw.close()
    store = ReadOnlySqliteStore(str(path))
    with pytest.raises(StoreError, match=r"is damaged: entry \d+ of game 1 \('homework'\) is not as it was written"):
        list(store.entries(store.games()[0]))
    store.close()


def test_a_changed_game_is_detected(path: Path) -> None:
    """Other terms, or another route, would be another promise: the store is refused."""
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE games SET terms = '{\"epsilon\": 0.5}' WHERE number = 2")
    raw.close()
    with pytest.raises(StoreError, match="game 2 is not as it was written"):
        SqliteStore(str(path))
    with pytest.raises(StoreError, match="game 2 is not as it was written"):
        ReadOnlySqliteStore(str(path))


def test_a_snapshot_of_another_journal_is_detected(path: Path) -> None:
    """A snapshot is valid only with the entry after which it was taken."""
    for change in (
        "UPDATE snapshots SET game = 2",
        "UPDATE snapshots SET entries = entries - 1",
        "UPDATE snapshots SET snapshot = replace(snapshot, 'step', 'stop')",
        "UPDATE snapshots SET seal = zeroblob(32)",
        "UPDATE snapshots SET snapshot = x'ff'",
    ):
        whole = path.read_bytes()
        with sqlite3.connect(path) as raw:
            raw.execute(change)
        raw.close()
        store = ReadOnlySqliteStore(str(path))
        with pytest.raises(SnapshotError, match="damaged or not of this journal"):
            [store.snapshot(game) for game in store.games()]
        store.close()
        path.write_bytes(whole)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE games SET route = x'00ff'",
        "UPDATE games SET head = 'text'",
        "UPDATE entries SET head = 'text'",
        "UPDATE claims SET claim = '[]'",
        "UPDATE claims SET claim = '['",
        "UPDATE claims SET head = x'00ff'",
        "UPDATE snapshots SET entries = 'text'",
        "UPDATE claims SET head = CAST(x'0aff0a' AS TEXT)",
    ],
)
def test_columns_of_another_type_are_detected(path: Path, change: str) -> None:
    """One flipped bit makes a text a blob: in any column, that is an error of ours."""
    with sqlite3.connect(path) as raw:
        raw.execute(change)
    raw.close()
    with pytest.raises((StoreError, SnapshotError), match=r"^[^\n]*(damaged|cannot be read)[^\n]*$"):
        state(ReadOnlySqliteStore(str(path)))


def test_losses_that_are_damaged_are_left_out(path: Path) -> None:
    """The file beside the store finds them again if they still matter."""
    with sqlite3.connect(path) as raw:
        raw.execute("INSERT INTO losses VALUES (1, 'text', 5, 'head')")
    raw.close()
    store = ReadOnlySqliteStore(str(path))
    assert store.losses() == []
    store.close()


def test_a_secret_or_key_of_another_type_is_detected(path: Path) -> None:
    """Neither may have another type than it was written with."""
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE coin_keys SET key = 'text'")
    raw.close()
    store = ReadOnlySqliteStore(str(path))
    with pytest.raises(StoreError, match="a row of game 1"):
        store.key(store.games()[0], 1)
    store.close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE secrets SET value = 5")
    raw.close()
    with pytest.raises(StoreError, match="its secret is missing"):
        ReadOnlySqliteStore(str(path))


def test_a_truncated_file_is_detected(path: Path) -> None:
    """It gives an error, at the latest when its journal is read, unless nothing is missing."""
    whole = path.read_bytes()
    expected = state(ReadOnlySqliteStore(str(path)))
    for size in (0, 50, 100, 4096, 8192, len(whole) - 4096):
        path.write_bytes(whole[:size])
        with pytest.raises(StoreError):
            state(ReadOnlySqliteStore(str(path)))
    path.write_bytes(whole[:-1])  # the last byte of a page need not carry anything
    with suppress(StoreError):
        assert state(ReadOnlySqliteStore(str(path))) == expected
