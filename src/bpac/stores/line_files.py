"""Files of lines: text, or Parquet with one column, which is a tenth as large. The only module that imports pyarrow."""

import os
from collections.abc import Generator, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from bpac.errors import InputError, MissingExtra

PARQUET = ".parquet"
COLUMN = "line"
# Lines of one row group: as many are in memory at once.
GROUP = 50_000


def import_pyarrow() -> Any:
    """The package pyarrow with its submodule ``parquet``; ``MissingExtra`` if it is not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet") from error
    return pa


def write_lines(path: Path, lines: Iterable[str], ending: str = "") -> None:
    """Write a private file of lines, which are on the disk when this returns.

    Parameters
    ----------
    path: the file.
    lines: without their line breaks.
    ending: of the name that the file is going to have, which says its format (default: that of ``path``).
    """
    if (ending or path.suffix) != PARQUET:
        with open(path, "w", encoding="utf-8", newline="", opener=_private) as file:
            file.writelines(line + "\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        return
    pa = import_pyarrow()
    remaining, schema = iter(lines), pa.schema([(COLUMN, pa.string())])
    with open(path, "wb", opener=_private) as target:
        with pa.parquet.ParquetWriter(target, schema, compression="zstd") as writer:
            while group := list(islice(remaining, GROUP)):
                writer.write_table(pa.table({COLUMN: group}, schema=schema))
        target.flush()
        os.fsync(target.fileno())


def read_lines(path: Path, ending: str = "") -> Generator[str, None, None]:
    """The lines of a file, with their line breaks."""
    if (ending or path.suffix) != PARQUET:
        with open(path, encoding="utf-8", newline="") as file:
            yield from file
        return
    pa = import_pyarrow()
    try:
        with pa.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(GROUP, columns=[COLUMN]):
                for line in batch.column(0).to_pylist():
                    yield f"{line}\n"
    except (pa.ArrowInvalid, KeyError) as error:
        raise InputError(f"{path}: not an archive of bpac: it has no column {COLUMN!r} that can be read") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
