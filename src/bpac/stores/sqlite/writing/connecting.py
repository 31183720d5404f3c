"""Connections to the file of a SQLite store."""

import sqlite3

from bpac.errors import StoreError
from bpac.stores.sqlite.writing.statements import MOST_ROWS


def connect(path: str, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode, which one thread at a time may use.

    Parameters
    ----------
    path: the file.
    read_only: whether writing is an error (default: false).
    """
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    uri = f"file:{quoted}?mode=ro" if read_only else f"file:{quoted}"
    try:
        return sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10.0, cached_statements=2 * MOST_ROWS
        )
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened as a store ({error})") from error
