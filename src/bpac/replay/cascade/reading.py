"""Reads tables of a cascade: columns ``uncertainty_1, loss_1, tokens_1, uncertainty_2, …, tokens_m``."""

import math
import re
from pathlib import Path

import numpy as np

from bpac.arguments import positive
from bpac.errors import SettingsError, TableError
from bpac.replay.cascade.builtin import CASCADES, builtin_cascade
from bpac.replay.cascade.table import CascadeTable
from bpac.replay.tables.builtin import PREFIX
from bpac.replay.tables.reading import number_in
from bpac.replay.tables.row_files import Row, table_rows


def is_cascade(source: str) -> bool:
    """Whether a table is one of a cascade: it has ``uncertainty_1`` and ``loss_1``, and no plain columns of those."""
    if source.startswith(PREFIX):
        return source.removeprefix(PREFIX) in CASCADES
    with table_rows(Path(source)) as rows:
        first = next(iter(rows), {})
    return {"uncertainty_1", "loss_1"} <= set(first) and "uncertainty" not in first


def open_cascade(source: str) -> CascadeTable:
    """The table of a cascade in a file, or the built-in one if ``source`` is ``builtin:NAME``."""
    if source.startswith(PREFIX):
        return builtin_cascade(source.removeprefix(PREFIX))
    path = Path(source)
    uncertainty: list[list[float]] = []
    loss: list[list[float]] = []
    tokens: list[list[float]] = []
    with table_rows(path) as rows:
        stages = 0
        known_tokens = False
        for number, row in enumerate(rows, start=1):
            place = f"{path}: row {number}"
            if not stages:
                stages = _stages(place, row)
                known_tokens = all(f"tokens_{stage}" in row for stage in range(1, stages + 2))
            if row.get("propensity") not in (None, "") and number_in(place, row, "propensity", 1.0) < 1.0:
                raise TableError(
                    f"{place}, column propensity: {row['propensity']} is below 1, so the rows in which not all models "
                    "were asked are missing: export the table without --all-audits"
                )
            uncertainty.append([_number(place, row, f"uncertainty_{stage}", 1.0) for stage in range(1, stages + 1)])
            loss.append([_number(place, row, f"loss_{stage}", 1.0) for stage in range(1, stages + 1)])
            if known_tokens:
                tokens.append([_number(place, row, f"tokens_{stage}", math.inf) for stage in range(1, stages + 2)])
    if not uncertainty:
        raise TableError(f"{path}: the table has no rows")
    return CascadeTable(np.array(uncertainty), np.array(loss), np.array(tokens) if known_tokens else None)


def prices_from_text(text: str) -> tuple[float, ...]:
    """The prices in a text such as ``1,8,24``; ``SettingsError`` if they are not numbers above 0."""
    try:
        return tuple(positive(float(price), "a price") for price in text.split(","))
    except ValueError as error:
        raise SettingsError(f"--prices {text}: give the price of a call of each model, such as 1,8,24") from error


def default_prices(source: str, table: CascadeTable) -> tuple[float, ...]:
    """The prices of a built-in cascade, or each model's mean tokens relative to the last; ``SettingsError`` if none."""
    if source.startswith(PREFIX):
        return CASCADES[source.removeprefix(PREFIX)].prices
    if table.tokens is None:
        raise SettingsError(f"{source} has no tokens: give the price of a call of each model, such as --prices 1,8,24")
    means = table.tokens.mean(axis=0)
    return tuple(float(mean) for mean in means / means[-1])


def _stages(place: str, row: Row) -> int:
    """The number of models before the last."""
    found = sorted(int(name.partition("_")[2]) for name in row if re.fullmatch(r"uncertainty_\d+", str(name)))
    if found != list(range(1, len(found) + 1)):
        raise TableError(f"{place} has columns uncertainty_{', uncertainty_'.join(map(str, found))}: number from 1 on")
    return len(found)


def _number(place: str, row: Row, name: str, most: float) -> float:
    if name not in row:
        raise TableError(f"{place} has no column {name}; it has {', '.join(map(str, row))}")
    return number_in(place, row, name, most)
