"""Rows of a data set, whose fields are checked when they are read."""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpac.errors import TableError


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """One row of a data set.

    Parameters
    ----------
    place: the location of the row, for error messages.
    number: the number of the row in its part, starting with 1.
    fields: the fields by name.
    part: the part of the data set, such as a BBH task: the configuration on the hub, or the name of the file.

    >>> DatasetRow("bench.jsonl: line 3", 3, {"input": "1 + 1"}).text("question", "input")
    '1 + 1'
    """

    place: str
    number: int
    fields: Mapping[str, Any]
    part: str = ""

    def text(self, *names: str) -> str:
        """The first of these fields that the row has; it must be a string that is not empty."""
        for name in names:
            if name in self.fields:
                value = self.fields[name]
                if not isinstance(value, str) or not value.strip():
                    raise TableError(f"{self.place}, field {name}: {value!r} is not a string with text")
                return value
        raise TableError(f"{self.place} has no field {' or '.join(names)}; it has {', '.join(self.fields) or 'none'}")

    def texts(self, name: str) -> tuple[str, ...]:
        """A field that is a list of strings."""
        value = self.fields.get(name)
        if not isinstance(value, list | tuple) or not value or not all(isinstance(text, str) for text in value):
            raise TableError(f"{self.place}, field {name}: {value!r} is not a list of strings")
        return tuple(value)

    def optional(self, *names: str) -> str:
        """The first of these fields that the row has, as a string; empty if it has none."""
        return next((str(self.fields[name]) for name in names if self.fields.get(name) is not None), "")

    def id(self, prefix: str, *names: str) -> str:
        """The id of the row: one of these fields, or the prefix with the row's number counted from 0."""
        return self.optional(*names) or f"{prefix}-{self.number - 1}"

    def wrong(self, name: str, wanted: str) -> TableError:
        """The error for a field with a wrong value."""
        return TableError(f"{self.place}, field {name}: {self.fields.get(name)!r} is not {wanted}")


def file_rows(path: str | Path) -> Iterator[DatasetRow]:
    """The rows of a ``.jsonl`` file or of a ``.json`` file with a list; either may be compressed (``.gz``)."""
    path = Path(path)
    name = path.name.removesuffix(".gz")
    if not name.endswith((".jsonl", ".json")):
        raise TableError(f"{path}: the name of a benchmark file must end in .jsonl or .json (each also .gz)")
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.name.endswith(".gz") else raw).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise TableError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    rows = _lines(path, text) if name.endswith(".jsonl") else _entries(path, text)
    empty = True
    for number, (place, row) in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise TableError(f"{place} must be a JSON object, got {json.dumps(row)[:40]}")
        empty = False
        yield DatasetRow(place, number, row, part=name.rpartition(".")[0])
    if empty:
        raise TableError(f"{path}: the file contains no questions")


def _lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    # Only a line feed ends a line of JSON: str.splitlines also splits at characters that may occur inside strings.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{path}: line {number}", _json(f"{path}: line {number}", line)


def _entries(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    rows = _json(str(path), text)
    # BIG-Bench Hard is published as {"canary": …, "examples": [...]}.
    rows = rows.get("examples", rows) if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        raise TableError(f"{path}: must contain a list of questions, got {text.strip()[:40]}")
    yield from ((f"{path}: entry {number}", row) for number, row in enumerate(rows, start=1))


def _json(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{place} is not JSON ({error})") from error
