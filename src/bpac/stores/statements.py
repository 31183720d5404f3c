"""The statements of a SQLite store, and how many entries go into one of them."""

import json
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from bpac.routing.decision import Decision
from bpac.routing.journal import Entry, entry_to_json

Work = tuple[str, tuple[Any, ...]]

OPEN = "INSERT INTO games VALUES (?, ?, ?, ?)"
SNAPSHOT = "INSERT OR REPLACE INTO snapshots VALUES (?, ?)"
CLAIM = "INSERT OR REPLACE INTO claims VALUES (?, ?, ?)"
# All entries of a commit in one statement: between two statements a busy event loop takes the interpreter away from
# the writer, for milliseconds each time.
APPEND = """
    INSERT INTO entries
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
           json_extract(value, '$[3]'), json_extract(value, '$[4]')
    FROM json_each(?)
"""


def statements(work: list[Work]) -> list[Work]:
    """The work in order, with neighbouring entries put together."""
    together: list[Work] = []
    for statement, group in groupby(work, key=itemgetter(0)):
        if statement is APPEND:
            together.append((APPEND, (json.dumps([_row(*values) for _, values in group]),)))
        else:
            together += group
    return together


def _row(game: int, number: int, entry: Entry, note: Mapping[str, Any]) -> tuple[Any, ...]:
    step = entry.step if isinstance(entry, Decision) else None
    return game, number, step, entry_to_json(entry), json.dumps(note, separators=(",", ":"))
