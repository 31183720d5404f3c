"""The file formats of tables. The only module that imports pyarrow (extra ``parquet``)."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from bpac.errors import MissingExtra, TableError

Format = Literal["csv", "jsonl", "parquet"]
EXTENSIONS = "the name of a table file ends in .csv, .jsonl (each also .gz) or .parquet"


def table_format(path: Path) -> Format:
    """The format that a file name stands for; ``TableError`` if it is not that of a table."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".csv"):
        return "csv"
    if name.endswith(".jsonl"):
        return "jsonl"
    if path.name.endswith(".parquet"):
        return "parquet"
    raise TableError(f"{path}: {EXTENSIONS}")


@contextmanager
def open_text(path: Path, mode: Literal["rt", "wt"] = "rt") -> Iterator[IO[str]]:
    """Open a text file, which is compressed if its name ends in ``.gz``."""
    opener = gzip.open if path.name.endswith(".gz") else open
    # Spreadsheets write a byte order mark: it is skipped when reading, and not written.
    with opener(path, mode, encoding="utf-8-sig" if mode == "rt" else "utf-8", newline="") as file:
        yield file


def import_pyarrow() -> Any:
    """The package pyarrow with its submodule ``parquet``; ``MissingExtra`` if it is not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet") from error
    return pa
