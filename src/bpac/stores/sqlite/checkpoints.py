"""Checkpoints of a SQLite store: what was committed is moved from the write-ahead log into the file."""

import sqlite3
import threading

from bpac.stores.sqlite.writing import Writer


class Checkpoints:
    """Moves what was committed from the write-ahead log into the file, in a thread of its own.

    That waits for the disk, and so must not happen in the turn of a commit, where SQLite would do it. If the disk does
    not take it, the writer takes nothing more: what the operating system has kept of the log is then uncertain.

    Parameters
    ----------
    connection: used by nobody else.
    writer: fails if a checkpoint does.
    every: seconds between two times.
    most_pages: of the log; once it is longer, commits wait for a moment so that it can begin anew.
    """

    def __init__(
        self, connection: sqlite3.Connection, writer: Writer, every: float = 1.0, most_pages: int = 16_384
    ) -> None:
        self._connection = connection
        self._writer = writer
        # While it waits for a reader commits wait for it: not for long, there is always another time.
        connection.execute("PRAGMA busy_timeout = 50")
        self._every = every
        self._most_pages = most_pages
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it; what is left of the log is moved when the last connection is closed."""
        self._ending.set()
        self._thread.join()
        # Closing would not tell of an error.
        self._checkpoint("PASSIVE")
        self._connection.close()

    def _run(self) -> None:
        while not self._ending.wait(self._every):
            if self._checkpoint("PASSIVE") > self._most_pages:
                self._checkpoint("RESTART")

    def _checkpoint(self, how: str) -> int:
        """Move what can be moved now, and say how many pages the log has."""
        try:
            _, pages, _ = self._connection.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
            return int(pages)
        except sqlite3.Error as error:
            # A log that is in use is moved later; the journal is in it either way.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                self._writer.fail(error)
            return 0
