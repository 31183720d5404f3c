"""Streams of questions: tables put in another order, joined and mixed. Nothing here changes its arguments."""

from dataclasses import fields

import numpy as np

from bpac.errors import TableError
from bpac.replay.tables.table import Table

COLUMNS = tuple(field.name for field in fields(Table))


def shuffled(table: Table, rng: np.random.Generator) -> Table:
    """The rows in random order: an i.i.d. stream from a table."""
    return table.take(rng.permutation(len(table)))


def head(table: Table, rows: int) -> Table:
    """The first rows."""
    if not 1 <= rows <= len(table):
        raise TableError(f"cannot take {rows} rows of a table that has {len(table)}")
    return table.take(np.arange(rows))


def shifted(before: Table, after: Table, turn: int) -> Table:
    """The first ``turn`` rows of one table, then all of the other: a stream whose law changes."""
    return joined(head(before, turn), after)


def joined(*tables: Table) -> Table:
    """The tables one after the other: a stream that shifts. Columns that one of them lacks are not known."""
    if not tables:
        raise TableError("there are no tables to join")
    columns = {name: [getattr(table, name) for table in tables] for name in COLUMNS}
    known = {name: parts for name, parts in columns.items() if all(part is not None for part in parts)}
    return Table(**{name: np.concatenate(parts) for name, parts in known.items()})
