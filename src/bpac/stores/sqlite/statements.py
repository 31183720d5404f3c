"""The statements of a SQLite store, and how many entries go into one of them."""

import zlib
from collections.abc import Mapping
from functools import cache
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, entry_fields
from bpac.stores.encoding import encode

Work = tuple[str, tuple[Any, ...]]

OPEN = "INSERT INTO games VALUES (?, ?, ?, ?, ?)"
SNAPSHOT = "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)"
CLAIM = "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)"
KEY = "INSERT OR REPLACE INTO coin_keys VALUES (?, ?, ?)"
LOSS = "INSERT OR IGNORE INTO losses VALUES (?, ?, ?, ?)"
APPEND = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)"
# Rows to one statement: as many texts as are kept prepared.
MOST_ROWS = 64


def statements(work: list[Work]) -> list[Work]:
    """The work in order, with neighbouring entries put together.

    Between two statements a busy event loop takes the interpreter away from the writer, for milliseconds each time.
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
    """An entry as it is written, to the byte: the hash chain is over this."""
    return encode(entry_fields(entry))


def note_and_check(note: Mapping[str, Any]) -> tuple[str, int]:
    """A note as it is written, and its check sum: it is no part of the hash chain, which is about the game alone."""
    noted = encode(note)
    return noted, zlib.crc32(noted.encode())


def step_of(entry: Entry) -> int | None:
    """What stands in the column of steps: those of decided entries."""
    return entry.step if isinstance(entry, Decision) else None
