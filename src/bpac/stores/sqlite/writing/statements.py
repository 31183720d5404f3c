"""The SQL statements of a SQLite store, and how entries are combined into fewer statements."""

import zlib
from collections.abc import Mapping
from functools import cache
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.entry_lines import entry_fields
from bpac.stores.encoding import encode

# A statement and its values.
Work = tuple[str, tuple[Any, ...]]

OPEN = "INSERT INTO games VALUES (?, ?, ?, ?, ?)"
UNMARK = "DELETE FROM secrets WHERE name = 'backup'"
USE = "INSERT INTO uses (game) VALUES (?)"
SNAPSHOT = "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)"
CLAIM = "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)"
KEY = "INSERT OR REPLACE INTO coin_keys VALUES (?, ?, ?)"
LOSS = "INSERT OR IGNORE INTO losses VALUES (?, ?, ?, ?)"
APPEND = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)"
# Rows per statement: for each number of rows a prepared statement is cached.
MOST_ROWS = 64


def statements(work: list[Work]) -> list[Work]:
    """The work in order, with neighbouring entries combined into one statement.

    Between two statements a busy event loop takes the interpreter lock from the writer, for milliseconds each time.
    """
    if len(work) == 1 and work[0][0] is APPEND:
        return work
    together: list[Work] = []
    for statement, group in groupby(work, key=itemgetter(0)):
        if statement is not APPEND:
            together += group
            continue
        entries = [values for _, values in group]
        for start in range(0, len(entries), MOST_ROWS):
            some = entries[start : start + MOST_ROWS]
            together.append((_appending(len(some)), tuple(chain.from_iterable(some))))
    return together


@cache
def _appending(count: int) -> str:
    return APPEND + ", (?, ?, ?, ?, ?, ?, ?)" * (count - 1)


def entry_text(entry: Entry) -> str:
    """An entry as it is written, to the byte: the hash chain is computed over this text."""
    return encode(entry_fields(entry))


def note_and_check(note: Mapping[str, Any]) -> tuple[str, int]:
    """A note as it is written, and its check sum: notes are not part of the hash chain, which is about the game."""
    text = encode(note)
    return text, zlib.crc32(text.encode())


def step_of(entry: Entry) -> int | None:
    """The value of the column ``step``: the step of a decision, none for other entries."""
    return entry.step if isinstance(entry, Decision) else None
