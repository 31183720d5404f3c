"""Rows of table files, as they stand there. Each error names the file and, where there is one, the row."""

import csv
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bpac.errors import TableError
from bpac.replay.tables.formats import open_text, table_format
from bpac.stores.line_files import import_pyarrow

Row = Mapping[str, Any]


@contextmanager
def table_rows(path: Path) -> Iterator[Iterator[Row]]:
    """The rows of a file, as they stand there; an error names the file."""
    kind = table_format(path)
    try:
        if kind == "parquet":
            yield parquet_rows(path, str(path))
            return
        with open_text(path) as file:
            yield (csv_rows if kind == "csv" else _json_rows)(path, file)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise TableError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error


def csv_rows(path: Path | str, file: IO[str]) -> Iterator[Row]:
    """The rows of a CSV file; an error names the file and the row or line.

    Parameters
    ----------
    path: what the file is called in errors.
    file: the open file.
    """
    reader = csv.DictReader(file)
    try:
        names = list(reader.fieldnames or ())
        # Spreadsheets may leave empty columns without a name: those are ignored.
        twice = [name for name in dict.fromkeys(names) if name and names.count(name) > 1]
        if twice:
            raise TableError(f"{path}: the header row names column {twice[0]} twice: remove or rename one of them")
        if len(names) == 1 and (other := next((mark for mark in ";\t|" if mark in names[0]), "")):
            raise TableError(f"{path}: columns must be separated by commas, not by {other!r}: save the file as such")
        for number, row in enumerate(reader, start=1):
            if None in row:
                cells = len(names) + len(row[None])  # DictReader keeps the cells beyond the header as a list
                raise TableError(
                    f"{path}: row {number} has {cells} cells, but the header names {len(names)} columns: "
                    "remove the extra cells, or quote a cell that contains a comma"
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
        except (ValueError, RecursionError) as error:
            raise TableError(f"{path}: row {number} is not JSON ({error})") from error
        if not isinstance(row, dict):
            raise TableError(f"{path}: row {number} must be a JSON object, got {line.strip()[:40]}")
        yield row


def parquet_rows(path: Path, name: str) -> Iterator[Row]:
    """The rows of a Parquet file.

    Parameters
    ----------
    path: the file.
    name: what it is called in errors.
    """
    parquet = import_pyarrow().parquet
    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except ValueError as error:  # pyarrow's errors are ValueErrors
        raise TableError(f"{name}: cannot be read as Parquet ({error})") from error
