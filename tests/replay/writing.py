"""Files for the tests of replays."""

import csv
from pathlib import Path

from bpac.replay.cascade.table import CascadeTable


def write_cascade(path: Path, table: CascadeTable, *, tokens: bool = True) -> Path:
    """Write a table of a cascade as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        stages = range(1, table.stages)
        names = [f"{name}_{stage}" for stage in stages for name in ("uncertainty", "loss")]
        every = [f"tokens_{stage}" for stage in range(1, table.stages + 1)] if tokens else []
        writer.writerow([*names, *every])
        for row in range(len(table)):
            pairs = [value[row, stage - 1] for stage in stages for value in (table.uncertainty, table.loss)]
            assert table.tokens is not None
            writer.writerow([*pairs, *(table.tokens[row] if tokens else [])])
    return path
