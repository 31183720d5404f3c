"""Stores of older versions are upgraded when a gateway opens them, without losing anything."""

import asyncio
import json
import logging
import sqlite3
from pathlib import Path

import pytest

from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Resolved
from bpac.routing.journal.entry_lines import entry_to_json
from bpac.routing.router import Router
from bpac.stores import ReadOnlySqliteStore, SqliteStore, Store, StoreError
from bpac.stores.sqlite.writing.migrations import APPLICATION, MIGRATIONS
from tests.stores.journals import play


def old_store(path: Path, version: int, rounds: int = 30, games: int = 2) -> list[list[Entry]]:
    """A store as an older version wrote it, and the entries of its games."""
    written: list[list[Entry]] = []
    with sqlite3.connect(path) as old:
        scripts = [migration for migration in MIGRATIONS[:version] if isinstance(migration, str)]
        assert len(scripts) == version
        old.executescript(
            f"{' '.join(scripts)} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {version};"
        )
        for game in range(1, games + 1):
            entries: list[Entry] = []
            router = Router(0.1, seed=game, journal=entries.append)
            for number in range(rounds):
                router.observe(router.decide(number % 10 / 10), number % 7 / 7)
            old.execute("INSERT INTO games VALUES (?, ?, '', ?)", (game, f"route {game}", '{"ä": "💥"}'))
            for number, entry in enumerate(entries, start=1):
                step = entry.step if isinstance(entry, Decision) else None
                note = '{"at": 1.5, "ö": 1}'
                old.execute(
                    "INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (game, number, step, entry_to_json(entry), note)
                )
            old.execute("INSERT INTO snapshots VALUES (?, ?)", (game, json.dumps(router.snapshot())))
            old.execute("INSERT INTO claims VALUES (?, ?, ?)", (game, len(entries), '{"threshold": 0.0}'))
            written.append(entries)
    old.close()
    return written


def _read(store: Store) -> list[list[Entry]]:
    return [[kept.entry for kept in store.entries(game)] for game in store.games()]


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_store_is_upgraded(tmp_path: Path, caplog: pytest.LogCaptureFixture, version: int) -> None:
    """Its entries and claims get their hashes, nothing is lost, and it can be written to, again and again."""
    path = tmp_path / "bpac.db"
    written = old_store(path, version)
    with pytest.raises(StoreError, match="is of an older version: start the gateway once, which upgrades it"):
        ReadOnlySqliteStore(str(path))
    with caplog.at_level(logging.INFO):
        store = SqliteStore(str(path))
    assert caplog.text.count("upgrading the store") == 2
    assert "WARNING" not in caplog.text
    assert _read(store) == written
    game = store.games()[1]
    (claim,) = store.claims(game)
    assert (claim.entries, claim.head) == (len(written[1]), store.head(game).hex())
    assert store.snapshot(game) is None
    late = Resolved(3, None, "late")
    store.append(game, late, {})
    store.close()
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        tables = {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    raw.close()
    assert tables == {"secrets", "games", "entries", "snapshots", "claims", "coin_keys", "losses", "uses", "archived"}
    caplog.clear()
    store = SqliteStore(str(path))
    assert _read(store) == [written[0], [*written[1], late]]
    assert [kept.decided.entry for kept in store.rounds(game, limit=2)] == [
        entry for entry in reversed(written[1]) if isinstance(entry, Decision)
    ][:2]
    assert caplog.text == ""
    store.close()


def test_an_upgrade_that_fails_changes_nothing(tmp_path: Path) -> None:
    """A damaged old journal gives an error, and is unchanged."""
    path = tmp_path / "bpac.db"
    old_store(path, 2)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE entries SET entry = x'00ff' WHERE game = 2 AND number = 20")
        before = list(raw.execute("SELECT * FROM entries"))
    raw.close()
    for _ in range(2):
        with pytest.raises(StoreError, match="entry 20 of game 2 is damaged"):
            SqliteStore(str(path))
    with sqlite3.connect(path) as raw:
        assert list(raw.execute("SELECT * FROM entries")) == before
        assert raw.execute("PRAGMA user_version").fetchone() == (2,)
    raw.close()


def test_a_new_store_has_the_same_tables(tmp_path: Path) -> None:
    """A new store and an upgraded one have the same tables and indexes."""
    old_store(tmp_path / "old.db", 1, games=1)
    found = []
    for name in ("old.db", "new.db"):
        store = SqliteStore(str(tmp_path / name))
        play(store, 3)
        asyncio.run(store.durable())
        store.close()
        with sqlite3.connect(tmp_path / name) as raw:
            found.append(sorted(raw.execute("SELECT type, name, sql FROM sqlite_master")))
        raw.close()
    assert found[0] == found[1]


def test_a_store_without_a_record_of_resumed_games_is_read_and_upgraded(tmp_path: Path) -> None:
    """Version 3 did not record them: its games are in the order of their numbers, also before the upgrade."""
    path = tmp_path / "bpac.db"
    store = SqliteStore(str(path))
    games = [play(store, 5)[0] for _ in range(2)]
    store.close()
    with sqlite3.connect(path) as raw:
        raw.executescript("DROP TABLE uses; DROP TABLE archived; PRAGMA user_version = 3;")
    raw.close()
    reader = ReadOnlySqliteStore(str(path))
    assert reader.games() == games
    assert reader.archived(games[0]) is None
    reader.close()
    store = SqliteStore(str(path))
    store.resume(games[0])
    store.close()
    store = SqliteStore(str(path))
    assert store.games() == [games[1], games[0]]
    store.close()
