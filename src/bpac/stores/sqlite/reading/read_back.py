"""Reading back what was committed: SQLite has pages in memory, and does not notice that their file was overwritten."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing

from bpac.stores.sqlite.writing.acknowledged import JournalEnd
from bpac.stores.sqlite.writing.connecting import connect

# Journals that are looked at each time, so that many games do not hold up the checkpoints.
MOST_GAMES = 100
HEAD = "SELECT head FROM entries WHERE game = ? AND number = ?"


class ReadBack:
    """Compares the last durable entries with the file, through a connection that has nothing in memory.

    Parameters
    ----------
    path: the file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: dict[int, JournalEnd] = {}

    def check(self, ends: Mapping[int, JournalEnd]) -> None:
        """Raise an error of SQLite if the file lacks what was durable.

        Parameters
        ----------
        ends: the last durable entry of each journal; those that were compared before are left out.
        """
        new = [(game, end) for game, end in ends.items() if end.number and self._seen.get(game) != end][:MOST_GAMES]
        with closing(connect(self._path, read_only=True)) as fresh:
            fresh.execute("PRAGMA busy_timeout = 50")
            # Each table is looked at: an overwritten page of one that is seldom written stays unnoticed otherwise.
            tables = [name for (name,) in fresh.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                fresh.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
            for game, end in new:
                found = fresh.execute(HEAD, (game, end.number)).fetchone()
                if found is None or found[0] != end.head:
                    error = sqlite3.DatabaseError(f"entry {end.number} of game {game} is not as it was written")
                    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                    raise error
                self._seen[game] = end
