"""The tables of a SQLite store, version by version."""

import logging
import sqlite3
import zlib
from collections.abc import Callable

from bpac.errors import StoreError
from bpac.routing.journal.chain import next_head
from bpac.stores.store import Game

log = logging.getLogger("bpac.stores")

# "bpac" in ASCII: marks the files of this program, so that a file of another one is not mistaken for an empty store.
APPLICATION = 0x62706163


def add_hash_chains(connection: sqlite3.Connection) -> None:
    """Add to every entry the hash over it and all entries before it; add tables for coin keys and lost entries."""
    for statement in CHAINED.split(";"):
        connection.execute(statement)
    games = [Game(*row) for row in connection.execute("SELECT number, route, segment, terms FROM games")]
    connection.executemany("UPDATE games SET head = ? WHERE number = ?", [(game.head, game.number) for game in games])
    for game in games:
        head, last = game.head, 0
        rows = connection.execute("SELECT number, step, entry, note FROM unchained WHERE game = ?", (game.number,))
        while portion := rows.fetchmany(10_000):
            chained = []
            for number, step, text, note in portion:
                if not isinstance(text, str) or not isinstance(note, str):
                    raise StoreError(f"entry {number} of game {game.number} is damaged: restore the file from a copy")
                head = next_head(head, text)
                chained.append((game.number, number, step, text, note, head, zlib.crc32(note.encode())))
                last = number
            connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", chained)
            log.info("upgrading the store", extra={"game": game.number, "entries": last})
    for statement in FINISHED.split(";"):
        connection.execute(statement)


CHAINED = """
    ALTER TABLE games ADD COLUMN head BLOB;
    DROP INDEX decided;
    DROP INDEX resolved;
    ALTER TABLE entries RENAME TO unchained;
    CREATE TABLE entries (
        game INTEGER NOT NULL, number INTEGER NOT NULL, step INTEGER, entry TEXT NOT NULL, note TEXT NOT NULL,
        head BLOB NOT NULL, note_check INTEGER NOT NULL, PRIMARY KEY (game, number)
    ) WITHOUT ROWID;
    CREATE TABLE coin_keys (
        game INTEGER NOT NULL, first_step INTEGER NOT NULL, key BLOB NOT NULL, PRIMARY KEY (game, first_step)
    ) WITHOUT ROWID;
    CREATE TABLE losses (
        game INTEGER NOT NULL, entries INTEGER NOT NULL, acknowledged INTEGER NOT NULL, head TEXT NOT NULL,
        PRIMARY KEY (game, acknowledged)
    ) WITHOUT ROWID;
    -- The old snapshots are not tied to an entry of the chain.
    DROP TABLE snapshots;
    CREATE TABLE snapshots (
        game INTEGER PRIMARY KEY, snapshot TEXT NOT NULL, entries INTEGER NOT NULL, seal BLOB NOT NULL
    );
    ALTER TABLE claims ADD COLUMN head TEXT NOT NULL DEFAULT ''
"""
FINISHED = """
    DROP TABLE unchained;
    CREATE UNIQUE INDEX decided ON entries (game, step) WHERE step IS NOT NULL;
    CREATE INDEX resolved ON entries (game, json_extract(entry, '$.step')) WHERE step IS NULL;
    UPDATE claims SET head = coalesce((
        SELECT lower(hex(head)) FROM entries WHERE game = claims.game AND number = claims.entries
    ), '')
"""

# Each migration brings the tables from one version to the next.
Migration = str | Callable[[sqlite3.Connection], None]
MIGRATIONS: tuple[Migration, ...] = (
    """
    CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
    INSERT INTO secrets VALUES ('decisions', randomblob(16));
    CREATE TABLE games (
        number INTEGER PRIMARY KEY, route TEXT NOT NULL, segment TEXT NOT NULL, terms TEXT NOT NULL
    );
    -- The primary key makes it impossible to write an entry twice, or two entries in one place.
    CREATE TABLE entries (
        game INTEGER NOT NULL, number INTEGER NOT NULL, step INTEGER, entry TEXT NOT NULL, note TEXT NOT NULL,
        PRIMARY KEY (game, number)
    ) WITHOUT ROWID;
    -- Only decisions have a step in this column: a step is decided once.
    CREATE UNIQUE INDEX decided ON entries (game, step) WHERE step IS NOT NULL;
    CREATE TABLE snapshots (game INTEGER PRIMARY KEY, snapshot TEXT NOT NULL);
    CREATE TABLE claims (
        game INTEGER NOT NULL, entries INTEGER NOT NULL, claim TEXT NOT NULL, PRIMARY KEY (game, entries)
    ) WITHOUT ROWID;
    """,
    """
    -- To find the outcome of a round without reading to the end of the journal.
    CREATE INDEX resolved ON entries (game, json_extract(entry, '$.step')) WHERE step IS NULL;
    """,
    add_hash_chains,
    """
    -- Games in the order in which they were opened or resumed; a game that is resumed has several rows.
    CREATE TABLE uses (number INTEGER PRIMARY KEY, game INTEGER NOT NULL);
    -- The state that takes the place of entries that were cut, and where they are.
    CREATE TABLE archived (
        game INTEGER PRIMARY KEY, entries INTEGER NOT NULL, head BLOB NOT NULL, snapshot TEXT NOT NULL,
        seal BLOB NOT NULL, block TEXT NOT NULL, file TEXT NOT NULL
    );
    """,
)
# The first version with hash chains.
HASH_CHAINS = 3


def migrate(connection: sqlite3.Connection, path: str) -> int:
    """Bring the tables up to date and return the version they had; if this raises, nothing has changed.

    Parameters
    ----------
    connection: to the file, in autocommit mode.
    path: its name, for errors.
    """
    version = check(connection, path)
    for number, migration in enumerate(MIGRATIONS[version:], start=version + 1):
        done = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {number}; COMMIT;"
        if isinstance(migration, str):
            connection.executescript(f"BEGIN IMMEDIATE; {migration} {done}")
            continue
        connection.execute("BEGIN IMMEDIATE")
        migration(connection)
        for statement in done.split(";"):
            connection.execute(statement)
    return version


def check(connection: sqlite3.Connection, path: str) -> int:
    """The version of the tables, or ``StoreError`` if they are of another program or of a newer version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION and (tables or version):
        raise StoreError(f"{path} is a database of another program: give the store a file of its own")
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer version of bpac (tables of version {version}; this one can read versions "
            f"up to {len(MIGRATIONS)}): upgrade bpac"
        )
    return int(version)
