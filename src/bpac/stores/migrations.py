"""The tables of a SQLite store, version by version."""

import sqlite3

from bpac.errors import StoreError

# "bpac", so that a file of some other program is not taken for an empty store.
APPLICATION = 0x62706163

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
    INSERT INTO secrets VALUES ('decisions', randomblob(16));
    CREATE TABLE games (
        number INTEGER PRIMARY KEY, route TEXT NOT NULL, segment TEXT NOT NULL, terms TEXT NOT NULL
    );
    -- The key makes it impossible to write an entry twice, or two in one place.
    CREATE TABLE entries (
        game INTEGER NOT NULL, number INTEGER NOT NULL, step INTEGER, entry TEXT NOT NULL, note TEXT NOT NULL,
        PRIMARY KEY (game, number)
    ) WITHOUT ROWID;
    -- Only decided entries have their step here: a step is decided once.
    CREATE UNIQUE INDEX decided ON entries (game, step) WHERE step IS NOT NULL;
    CREATE TABLE snapshots (game INTEGER PRIMARY KEY, snapshot TEXT NOT NULL);
    CREATE TABLE claims (
        game INTEGER NOT NULL, entries INTEGER NOT NULL, claim TEXT NOT NULL, PRIMARY KEY (game, entries)
    ) WITHOUT ROWID;
    """,
    """
    -- To find what came of a round without reading on to the end of the journal.
    CREATE INDEX resolved ON entries (game, json_extract(entry, '$.step')) WHERE step IS NULL;
    """,
)


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the tables up to date; nothing has changed if this raises.

    Parameters
    ----------
    connection: to the file, in autocommit mode.
    path: its name, for errors.
    """
    version = check(connection, path)
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE; {script} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {number}; COMMIT;"
        )


def check(connection: sqlite3.Connection, path: str) -> int:
    """The version of the tables, or ``StoreError`` if they are not ours or newer than this program."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION and (tables or version):
        raise StoreError(f"{path} is a database of another program: give the store a file of its own")
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer version (tables {version}, this one knows {len(MIGRATIONS)}): upgrade bpac"
        )
    return int(version)
