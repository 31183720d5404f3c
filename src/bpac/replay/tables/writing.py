"""Writing tables to files."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bpac.output_files import whole_file
from bpac.replay.tables.formats import open_text, table_format
from bpac.replay.tables.table import Table
from bpac.stores.line_files import import_pyarrow


def write_table(table: Table, path: str | Path) -> None:
    """Write a table in the format of the file's name; ``read_table`` returns the same numbers."""
    columns = {name: column.tolist() for name, column in table.columns().items()}
    features = {f"feature_{name}": column.tolist() for name, column in table.features.items() if name not in columns}
    write_columns(columns | features, path)


def write_columns(columns: Mapping[str, Sequence[Any]], path: str | Path) -> None:
    """Write columns in the format of the file's name. The file is written completely or not at all.

    Parameters
    ----------
    columns: the cells of each column by its name; None where a value is not known.
    path: the file to write.
    """
    path = Path(path)
    kind = table_format(path)
    rows = zip(*columns.values(), strict=True)
    with whole_file(path) as unfinished:
        if kind == "parquet":
            pyarrow = import_pyarrow()
            table = pyarrow.table({name: list(column) for name, column in columns.items()})
            pyarrow.parquet.write_table(table, unfinished)
            return
        with open_text(unfinished, "wt") as file:
            if kind == "csv":
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(rows)
            else:
                file.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
