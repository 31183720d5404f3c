"""Tables of recorded answers: one row a question, every loss known."""

import csv
import gzip
import json
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bpac.errors import MissingExtra, TableError
from bpac.output_files import whole_file

Vector = NDArray[np.float64]
Row = Mapping[str, Any]

# The names the paper's authors use in their tables.
ALIASES = {"instant_token": "draft_tokens", "expert_token": "expert_tokens", "instant_correct": "draft_correct"}
ENDINGS = "a table ends in .csv, .jsonl (each also .gz) or .parquet"
TRUE, FALSE = ("1", "1.0", "true"), ("0", "0.0", "false")


@dataclass(frozen=True, slots=True)
class Table:
    """Recorded answers of a model pair, in order.

    Parameters
    ----------
    uncertainty, loss: of every draft.
    draft_tokens, expert_tokens: where known for every row.
    expert_correct, expert_preferred: the expert's answer is right; a judge likes it better. Where known.
    coin: uniform draws to use in place of a random source, if the table has them.
    """

    uncertainty: Vector
    loss: Vector
    draft_tokens: Vector | None = None
    expert_tokens: Vector | None = None
    expert_correct: Vector | None = None
    expert_preferred: Vector | None = None
    coin: Vector | None = None

    def __len__(self) -> int:
        return len(self.uncertainty)

    def take(self, rows: NDArray[Any]) -> "Table":
        """The table with these rows only, by index or mask, in their order."""
        columns = {name: getattr(self, name) for name in self.__slots__}
        return replace(self, **{name: column[rows] for name, column in columns.items() if column is not None})

    def only(self, verdict: Literal["expert_correct", "expert_preferred"]) -> "Table":
        """The paper's filters: the rows in which the expert is right, or preferred."""
        column: Vector | None = getattr(self, verdict)
        if column is None:
            option = verdict.replace("_", "-")
            raise TableError(f"--{option}-only needs the column {verdict}, filled in every row")
        kept = self.take(column == 1.0)
        if not len(kept):
            raise TableError(f"{verdict} is 0 in every row: nothing is left to replay")
        return kept


def read_table(path: str | Path, score: str = "uncertainty") -> Table:
    """Read a ``.csv``, ``.jsonl`` (each also ``.gz``) or ``.parquet`` file.

    Parameters
    ----------
    path: the file.
    score: the column with the uncertainty.
    """
    path = Path(path)
    name = path.name.removesuffix(".gz")
    try:
        if name.endswith(".csv"):
            with _text(path) as file:
                return _collect(path, _csv_rows(path, file), score)
        if name.endswith(".jsonl"):
            with _text(path) as file:
                return _collect(path, _json_rows(path, file), score)
        if path.name.endswith(".parquet"):
            return _collect(path, _parquet_rows(path), score)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise TableError(f"{path}: cannot be read ({error})") from error
    raise TableError(f"{path}: {ENDINGS}")


def write_table(table: Table, path: str | Path) -> None:
    """Write a table in the format its file's name asks for; ``read_table`` gives the same numbers back."""
    columns = {name: getattr(table, name) for name in table.__slots__}
    write_columns({name: column.tolist() for name, column in columns.items() if column is not None}, path)


def write_columns(columns: Mapping[str, Sequence[Any]], path: str | Path) -> None:
    """Write columns in the format the file's name asks for; the file appears whole or not at all.

    Parameters
    ----------
    columns: the cells of each, none where one is not known.
    path: where to write.
    """
    path = Path(path)
    check_ending(path)
    rows = zip(*columns.values(), strict=True)
    with whole_file(path) as unfinished:
        if path.name.endswith(".parquet"):
            pyarrow = _pyarrow()
            table = pyarrow.table({name: list(column) for name, column in columns.items()})
            pyarrow.parquet.write_table(table, unfinished)
            return
        with _text(unfinished, "wt") as file:
            if path.name.removesuffix(".gz").endswith(".csv"):
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(rows)
            else:
                file.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def check_ending(path: Path) -> None:
    """Raise ``TableError`` unless the file's name asks for a format that tables have."""
    if not path.name.removesuffix(".gz").endswith((".csv", ".jsonl")) and not path.name.endswith(".parquet"):
        raise TableError(f"{path}: {ENDINGS}")


@contextmanager
def _text(path: Path, mode: Literal["rt", "wt"] = "rt") -> Iterator[IO[str]]:
    opener = gzip.open if path.name.endswith(".gz") else open
    # Spreadsheets write a byte order mark; nobody needs one from us.
    with opener(path, mode, encoding="utf-8-sig" if mode == "rt" else "utf-8", newline="") as file:
        yield file


def _csv_rows(path: Path, file: IO[str]) -> Iterator[Row]:
    reader = csv.DictReader(file)
    try:
        names = list(reader.fieldnames or ())
        # Spreadsheets leave columns without a name behind; nobody reads those.
        twice = [name for name in dict.fromkeys(names) if name and names.count(name) > 1]
        if twice:
            raise TableError(f"{path}: the header row names column {twice[0]} twice: remove or rename one of them")
        for number, row in enumerate(reader, start=1):
            if None in row:
                cells = len(names) + len(row[None])  # what has no name is there as a list
                raise TableError(
                    f"{path}: row {number} has {cells} cells, but the header names {len(names)} columns: "
                    "remove what is too much, or put a cell with a comma in it into quotes"
                )
            yield row
    except csv.Error as error:
        raise TableError(f"{path}: line {reader.line_num} is not CSV ({error})") from error


def _json_rows(path: Path, file: IO[str]) -> Iterator[Row]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise TableError(f"{path}: row {number} is not JSON ({error})") from error
        if not isinstance(row, dict):
            raise TableError(f"{path}: row {number} must be a JSON object, got {line.strip()[:40]}")
        yield row


def _parquet_rows(path: Path) -> Iterator[Row]:
    parquet = _pyarrow().parquet
    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except ValueError as error:  # pyarrow's errors are ValueErrors
        raise TableError(f"{path}: cannot be read as Parquet ({error})") from error


def _pyarrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet") from error
    return pa


def _collect(path: Path, rows: Iterable[Row], score: str) -> Table:
    columns: dict[str, array[float]] = {}
    missing: set[str] = set()
    for number, raw in enumerate(rows, start=1):
        cells = _Cells(f"{path}: row {number}", {ALIASES.get(key, key): value for key, value in raw.items()})
        if len(cells.row) < len(raw):
            twice = next(f"{theirs} and {ours}" for theirs, ours in ALIASES.items() if {theirs, ours} <= set(raw))
            raise TableError(f"{cells.place} has columns {twice}, which mean the same: remove one of them")
        values = cells.values(score)
        if number == 1:
            columns = {name: array("d") for name in values}
        for name, column in columns.items():
            value = values.get(name)
            if value is None:
                missing.add(name)
            column.append(math.nan if value is None else value)
    if not columns:
        raise TableError(f"{path}: the table has no rows")
    # A column that is not known in every row is not known.
    return Table(**{name: np.array(column) for name, column in columns.items() if name not in missing})


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of one row, and where they stand."""

    place: str
    row: Row

    def values(self, score: str) -> dict[str, float | None]:
        """The numbers a table keeps of this row; none where a cell is empty."""
        if score not in self.row:
            raise TableError(f"{self.place} has no column {score}; it has {', '.join(map(str, self.row))}")
        if "propensity" in self.row and not self._empty("propensity") and self._number("propensity", 1.0) < 1.0:
            raise TableError(
                f"{self.place}, column propensity: {self.row['propensity']} is below 1, so rows are missing where the "
                "expert was not asked: export the table without --all-audits"
            )
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

    def _loss(self) -> float:
        if "loss" in self.row:
            return self._number("loss", 1.0)
        if not {"draft_correct", "expert_correct"} <= set(self.row):
            raise TableError(f"{self.place} has no column loss, nor draft_correct and expert_correct")
        return float(self._verdict("expert_correct") == 1.0 and self._verdict("draft_correct") == 0.0)

    def _empty(self, name: str) -> bool:
        return self.row[name] in (None, "")

    def _number(self, name: str, most: float) -> float:
        value = self.row[name]
        try:
            # A verdict in the place of a number is a mistake worth hearing about.
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not (0.0 <= number <= most and math.isfinite(number)):
            wanted = f"a number in [0, {most:g}]" if math.isfinite(most) else "a finite number of at least 0"
            raise TableError(f"{self.place}, column {name}: {value!r} is not {wanted}")
        return number

    def _verdict(self, name: str) -> float:
        value = str(self.row[name]).strip().lower()
        if value not in TRUE + FALSE:
            raise TableError(f"{self.place}, column {name}: {self.row[name]!r} is not 0 or 1")
        return float(value in TRUE)
