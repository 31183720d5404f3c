"""Reading tables from files. Each error names the file and, where there is one, the row, the column and the value."""

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bpac.errors import TableError
from bpac.replay.tables.row_files import Row, table_rows
from bpac.replay.tables.table import FeatureColumn, Table, Vector

# The column names in the tables of the paper's authors.
ALIASES = {"instant_token": "draft_tokens", "expert_token": "expert_tokens", "instant_correct": "draft_correct"}
# Columns that scores can be learned from, beside those whose names begin with ``feature_`` or ``uncertainty_``.
FEATURES = ("draft_tokens", "perplexity", "entropy", "category", "task", "segment", "finish_reason")
# What a decision's journal entry can hold, and what makes sense as a name of a kind of query.
LONGEST_WORD = 64
TRUE, FALSE = ("1", "1.0", "true"), ("0", "0.0", "false")


def read_table(path: str | Path, score: str = "uncertainty") -> Table:
    """Read a ``.csv``, ``.jsonl`` (each also ``.gz``) or ``.parquet`` file.

    Audited rounds with their propensity (``bpac export --all-audits``) are refused: they are harder than the traffic.

    Parameters
    ----------
    path: the file.
    score: the column with the uncertainty.
    """
    path = Path(path)
    with table_rows(path) as rows:
        return _collect(path, rows, score)[0]


def read_weighted_table(path: str | Path, score: str = "uncertainty") -> tuple[Table, Vector | None]:
    """As ``read_table``, and the weight of each row, which is 1/propensity; none if all rows count the same."""
    path = Path(path)
    with table_rows(path) as rows:
        table, propensity = _collect(path, rows, score, weighted=True)
    return table, None if propensity is None or (propensity == 1.0).all() else 1.0 / propensity


def other_scores(path: str | Path) -> list[str]:
    """The columns of a table, besides ``uncertainty``, that may contain another score of the drafts."""
    path = Path(path)
    with table_rows(path) as rows:
        first = next(iter(rows), {})
    return [name for name in first if name in ("perplexity", "entropy") or str(name).startswith("uncertainty_")]


def number_in(place: str, row: Row, name: str, most: float) -> float:
    """The number in a column of a row, or ``TableError`` if it is none.

    Parameters
    ----------
    place: where the row stands, for the error.
    row, name: the row, and its column.
    most: the largest number allowed; the least is 0.
    """
    value = row[name]
    try:
        # True would pass as 1.0, but a truth value in a column of numbers is a mistake.
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (0.0 <= number <= most and math.isfinite(number)):
        wanted = f"a number in [0, {most:g}]" if math.isfinite(most) else "a finite number of at least 0"
        raise TableError(f"{place}, column {name}: {value!r} is not {wanted}")
    return number


def verdict_in(place: str, row: Row, name: str) -> float:
    """1 for true and 0 for false in a column of a row, or ``TableError`` if it is neither."""
    value = str(row[name]).strip().lower()
    if value not in TRUE + FALSE:
        raise TableError(f"{place}, column {name}: {row[name]!r} is not 0 or 1")
    return float(value in TRUE)


def _collect(path: Path, rows: Iterable[Row], score: str, *, weighted: bool = False) -> tuple[Table, Vector | None]:
    # Arrays of doubles: a Python object per cell would take several times the memory.
    columns: dict[str, array[float]] = {}
    features: dict[str, list[float | str | None]] = {}
    missing: set[str] = set()
    propensities = array("d")
    for number, raw in enumerate(rows, start=1):
        cells = _Cells(f"{path}: row {number}", {ALIASES.get(key, key): value for key, value in raw.items()})
        if len(cells.row) < len(raw):
            twice = next(f"{theirs} and {ours}" for theirs, ours in ALIASES.items() if {theirs, ours} <= set(raw))
            raise TableError(f"{cells.place} has columns {twice}, which mean the same: remove one of them")
        values = cells.values(score)
        if "propensity" in cells.row:
            propensities.append(cells.propensity(weighted))
        if number == 1:
            columns = {name: array("d") for name in values}
            features = {name: [] for name in cells.feature_names(score)}
        for name, column in columns.items():
            value = values.get(name)
            if value is None:
                missing.add(name)
            column.append(math.nan if value is None else value)
        for name, feature in features.items():
            feature.append(cells.feature(name))
    if not columns:
        raise TableError(f"{path}: the table has no rows")
    known = {
        name.removeprefix("feature_"): _feature_column(column)
        for name, column in features.items()
        if any(value is not None for value in column)
    }
    table = Table(features=known, **{name: np.array(column) for name, column in columns.items() if name not in missing})
    return table, np.array(propensities) if len(propensities) == len(table) else None


def _feature_column(values: Sequence[float | str | None]) -> FeatureColumn:
    column = np.empty(len(values), dtype=np.object_)
    column[:] = values
    return column


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of one row, and the place of that row for error messages."""

    place: str
    row: Row

    def values(self, score: str) -> dict[str, float | None]:
        """The numbers of this row by column; None where a cell is empty."""
        if score not in self.row:
            raise TableError(f"{self.place} has no column {score}; it has {', '.join(map(str, self.row))}")
        values: dict[str, float | None] = {"uncertainty": self._number(score, 1.0), "loss": self._loss()}
        for name in ("draft_tokens", "expert_tokens"):
            if name in self.row:
                values[name] = None if self._empty(name) else self._number(name, math.inf)
        for name in ("expert_correct", "expert_preferred"):
            if name in self.row:
                values[name] = None if self._empty(name) else self._verdict(name)
        if "coin" in self.row:
            values["coin"] = None if self._empty("coin") else self._number("coin", 1.0)
        return values

    def propensity(self, weighted: bool) -> float:
        """The probability with which the expert was asked; an error if it is below 1 and rows have no weights."""
        if self._empty("propensity"):
            return 1.0
        found = self._number("propensity", 1.0)
        place = f"{self.place}, column propensity: {self.row['propensity']}"
        if found == 0.0:
            raise TableError(f"{place} is no probability with which the expert can have been asked")
        if found < 1.0 and not weighted:
            raise TableError(
                f"{place} is below 1, so the rows in which the expert was not called are missing: export the table "
                "without --all-audits"
            )
        return found

    def feature_names(self, score: str) -> list[str]:
        """The columns that scores can be learned from."""
        names = (str(name) for name in self.row if name != score)
        return [
            name
            for name in names
            if name in FEATURES
            or name.startswith("feature_")
            # A number names a later model of a cascade, whose answer is not known yet.
            or (name.startswith("uncertainty_") and not name.removeprefix("uncertainty_").isdigit())
        ]

    def feature(self, name: str) -> float | str | None:
        """A feature: a number, a word, or none if the cell is empty."""
        value = self.row.get(name)
        if value is None or value == "":
            return None
        try:
            number = float(value)
        except (TypeError, ValueError):
            word = str(value)
            if len(word) > LONGEST_WORD:
                raise TableError(
                    f"{self.place}, column {name}: {word[:20]!r}… is longer than {LONGEST_WORD} characters, and names "
                    "no kind of query"
                ) from None
            return word
        if not math.isfinite(number):
            raise TableError(f"{self.place}, column {name}: {value!r} is not a finite number; leave the cell empty")
        return number

    def _loss(self) -> float:
        if "loss" in self.row:
            return self._number("loss", 1.0)
        if not {"draft_correct", "expert_correct"} <= set(self.row):
            raise TableError(f"{self.place} has no column loss, nor draft_correct and expert_correct")
        return float(self._verdict("expert_correct") == 1.0 and self._verdict("draft_correct") == 0.0)

    def _empty(self, name: str) -> bool:
        return self.row[name] in (None, "")

    def _number(self, name: str, most: float) -> float:
        return number_in(self.place, self.row, name, most)

    def _verdict(self, name: str) -> float:
        return verdict_in(self.place, self.row, name)
