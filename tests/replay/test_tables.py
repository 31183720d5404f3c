"""Tables: every format can be read and written, and each mistake in a file has an error that names its place."""

import gzip
import json
import subprocess
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpac.errors import BpacError, TableError
from bpac.replay.router_factory import staked_for, suited_to
from bpac.replay.tables.reading import read_table
from bpac.replay.tables.table import Table, head, joined, shuffled
from bpac.replay.tables.writing import write_columns, write_table
from bpac.routing.policies import Paper, Portfolio

COLUMNS = tuple(field.name for field in fields(Table) if field.name != "features")
ROWS = [
    {"uncertainty": 0.25, "loss": 0.0, "draft_tokens": 10, "expert_tokens": 100},
    {"uncertainty": 0.75, "loss": 0.5, "draft_tokens": 20, "expert_tokens": 200},
]


def test_graded_losses_are_mostly_small() -> None:
    """A judge's marks are graded; right or wrong is not, with a few partial grades neither."""
    marks, verdicts = np.array([0.0, 0.0, 0.3, 0.5, 1.0]), np.array([0.0, 0.3, 1.0, 1.0, 1.0])
    assert Table(marks, marks).has_graded_losses
    assert not Table(verdicts, verdicts).has_graded_losses
    assert not Table(verdicts, np.zeros(5)).has_graded_losses
    assert staked_for(Portfolio(), Table(marks, marks)) == Portfolio().for_graded_losses()
    assert suited_to(Paper(), Table(marks, marks)) == Paper()


def write_csv(path: Path, text: str) -> Path:
    """Write a file with that text, compressed if its name ends in .gz."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def as_csv(rows: list[dict[str, float]]) -> str:
    """The rows as CSV."""
    lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl", "t.jsonl.gz", "t.parquet"])
def test_every_format_can_be_read(tmp_path: Path, name: str) -> None:
    """The same rows give the same table in every format."""
    path = tmp_path / name
    if "csv" in name:
        write_csv(path, as_csv(ROWS))
    elif "jsonl" in name:
        write_csv(path, "".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    table = read_table(path)
    assert table.uncertainty.tolist() == [0.25, 0.75]
    assert table.loss.tolist() == [0.0, 0.5]
    assert table.draft_tokens is not None
    assert table.draft_tokens.tolist() == [10, 20]
    assert table.coin is None


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl", "t.jsonl.gz", "t.parquet"])
def test_every_format_keeps_every_column(tmp_path: Path, name: str) -> None:
    """A table that is written and read back is the same to the last bit."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {column: rng.random(50) for column in COLUMNS}
    columns |= {verdict: (rng.random(50) < 0.5).astype(float) for verdict in ("expert_correct", "expert_preferred")}
    for table in (Table(**columns), Table(columns["uncertainty"], columns["loss"])):
        write_table(table, tmp_path / name)
        copy = read_table(tmp_path / name)
        for column in COLUMNS:
            assert np.array_equal(getattr(copy, column), getattr(table, column)) or getattr(table, column) is None
            assert (getattr(copy, column) is None) == (getattr(table, column) is None)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl.gz", "t.parquet"])
def test_every_format_keeps_features(tmp_path: Path, name: str) -> None:
    """Numbers, words and empty cells survive; a column that is empty everywhere is no feature."""
    columns = {"length": [3.0, None], "task": ["law", "physics"], "nothing": [None, None]}
    features = {key: np.array(values, dtype=np.object_) for key, values in columns.items()}
    write_table(Table(np.array([0.1, 0.2]), np.zeros(2), features=features), tmp_path / name)
    read = read_table(tmp_path / name).features
    assert {key: column.tolist() for key, column in read.items()} == {"length": [3.0, None], "task": ["law", "physics"]}


def test_known_columns_are_features(tmp_path: Path) -> None:
    """What tables already have is learned from: tokens of the draft, other scores and categories."""
    text = "uncertainty,loss,draft_tokens,expert_tokens,uncertainty_verbal,category,id\n0.1,0,12,99,0.25,law,7\n"
    table = read_table(write_csv(tmp_path / "t.csv", text))
    assert {name: column.tolist() for name, column in table.features.items()} == {
        "draft_tokens": [12.0],
        "uncertainty_verbal": [0.25],
        "category": ["law"],
    }
    other = read_table(tmp_path / "t.csv", score="uncertainty_verbal")
    assert set(other.features) == {"draft_tokens", "category"}


@pytest.mark.parametrize("cell", ["nan", "-inf", "word" * 17])
def test_a_feature_that_cannot_be_used_is_refused(tmp_path: Path, cell: str) -> None:
    """The error names file, row, column and value."""
    path = write_csv(tmp_path / "t.csv", f"uncertainty,loss,feature_x\n0.1,0,{cell}\n")
    with pytest.raises(TableError, match=r"row 1, column feature_x: '"):
        read_table(path)


def test_a_file_name_without_a_table_format_is_refused(tmp_path: Path) -> None:
    """It is refused before anything is written."""
    with pytest.raises(TableError, match=r"ends in \.csv"):
        write_table(Table(np.zeros(1), np.zeros(1)), tmp_path / "t.xlsx")
    assert not list(tmp_path.iterdir())


def test_joined_tables_keep_the_columns_that_all_have() -> None:
    """Rows follow each other; a column that one table lacks is dropped."""
    first = Table(np.array([0.1]), np.array([0.0]), np.array([5.0]), np.array([50.0]))
    second = Table(np.array([0.2, 0.3]), np.array([1.0, 0.0]), np.array([6.0, 7.0]))
    both = joined(first, second)
    assert both.uncertainty.tolist() == [0.1, 0.2, 0.3]
    assert both.draft_tokens is not None
    assert both.expert_tokens is None
    assert head(both, 2).loss.tolist() == [0.0, 1.0]
    assert sorted(shuffled(both, np.random.default_rng(0)).uncertainty) == [0.1, 0.2, 0.3]


def test_impossible_joins_and_heads_are_refused() -> None:
    """There must be a table to join, and the first rows must exist."""
    table = Table(np.zeros(2), np.zeros(2))
    for attempt in (joined, partial(head, table, 0), partial(head, table, 3)):
        with pytest.raises(TableError):
            attempt()


def test_the_column_names_of_the_papers_authors_are_understood(tmp_path: Path) -> None:
    """``instant_*`` and ``expert_token`` are read, and the loss is computed from the two verdicts."""
    text = (
        "uncertainty,instant_token,expert_token,instant_correct,expert_correct\n"
        "0.1,5,50,1,1\n0.2,5,50,0,1\n0.3,5,50,False,0\n0.4,5,50,1.0,false\n"
    )
    table = read_table(write_csv(tmp_path / "t.csv", text))
    assert table.loss.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert table.expert_tokens is not None
    assert table.only("expert_correct").uncertainty.tolist() == [0.1, 0.2]


def test_the_column_of_the_uncertainty_can_be_chosen(tmp_path: Path) -> None:
    """``score`` names the column with the uncertainty."""
    path = write_csv(tmp_path / "t.csv", "uncertainty,verbal,loss\n0.1,0.9,0\n")
    assert read_table(path, score="verbal").uncertainty.tolist() == [0.9]


def test_a_column_with_an_empty_cell_is_left_out(tmp_path: Path) -> None:
    """A missing number of tokens makes its column unknown, and no other column."""
    table = read_table(
        write_csv(tmp_path / "t.csv", "uncertainty,loss,draft_tokens,expert_tokens\n0.1,0,5,\n0.2,1,5,7\n")
    )
    assert table.expert_tokens is None
    assert table.draft_tokens is not None
    assert len(table) == 2


@pytest.mark.parametrize(
    ("cell", "column"),
    [("nan", "uncertainty"), ("inf", "uncertainty"), ("-0.1", "uncertainty"), ("1.1", "uncertainty"),
     ("high", "uncertainty"), ("", "uncertainty"), ("nan", "loss"), ("2", "loss"), ("True", "loss"), ("", "loss")],
)  # fmt: skip
def test_the_error_of_a_bad_cell_names_its_place(tmp_path: Path, cell: str, column: str) -> None:
    """It names file, row, column and value in one line."""
    row = {"uncertainty": "0.5", "loss": "0"} | {column: cell}
    path = write_csv(tmp_path / "t.csv", f"uncertainty,loss\n0.5,0\n{row['uncertainty']},{row['loss']}\n")
    with pytest.raises(TableError) as caught:
        read_table(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: row 2, column {column}: {cell!r}")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.csv", "loss\n0\n", "no column uncertainty"),
        ("t.csv", "uncertainty\n0\n", "no column loss, nor draft_correct and expert_correct"),
        ("t.csv", "uncertainty,loss\n", "no rows"),
        ("t.csv", "", "no rows"),
        ("t.csv", "uncertainty,draft_correct,expert_correct\n0.1,maybe,1\n", "'maybe' is not 0 or 1"),
        ("t.csv", "uncertainty,loss\n0.5\n", "column loss: None"),
        ("t.csv", "uncertainty,loss\n0.5,0\n0.5,0,9\n", "row 2 has 3 cells, but the header names 2 columns: remove"),
        ("t.csv", "uncertainty,loss\n0,5,0\n", "row 1 has 3 cells"),
        ("t.csv", "uncertainty,loss,loss\n0.5,0,1\n", "the header row names column loss twice: remove or rename"),
        ("t.csv", "uncertainty,loss,expert_token,expert_tokens\n0.5,0,1,2\n", "expert_token and expert_tokens, which"),
        ("t.csv", "uncertainty,loss,draft_tokens\n0.5,0,-3\n", "column draft_tokens: '-3' is not a finite number"),
        ("t.jsonl", '{"uncertainty": 0.5, "loss": 0}\n{"uncertainty"\n', "row 2 is not JSON"),
        ("t.jsonl", "[1]\n", "row 1 must be a JSON object"),
        ("t.jsonl", '{"uncertainty": 0.5, "loss": true}\n', "column loss: True"),
        ("t.jsonl", '{"uncertainty": 0.5, "loss": 0}\n{"loss": 0}\n', "row 2 has no column uncertainty"),
        ("t.txt", "", "ends in .csv, .jsonl"),
        ("t.parquet", "no parquet", "cannot be read as Parquet"),
        ("t.csv.gz", "", None),
    ],
)
def test_every_mistake_in_a_file_has_its_own_error(tmp_path: Path, name: str, text: str, said: str | None) -> None:
    """The error says what is wrong with the file, and names it."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    if said is None:
        path.write_bytes(b"\x1f\x8b broken")
        said = "cannot be read"
    with pytest.raises(TableError, match=said) as caught:
        read_table(path)
    assert str(path) in str(caught.value)


def test_columns_without_a_name_are_ignored(tmp_path: Path) -> None:
    """Spreadsheets may write empty columns without a name."""
    path = write_csv(tmp_path / "t.csv", "uncertainty,loss,,\n0.5,1,,\n")
    assert read_table(path).loss.tolist() == [1.0]


def test_a_table_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    """If writing fails half-way, the old file is unchanged and no unfinished file is left."""
    path = write_csv(tmp_path / "t.jsonl", "old")
    with pytest.raises(TypeError):
        write_columns({"loss": [0.0, object()]}, path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(BpacError, match=r"t\.csv: cannot be written \(Is a directory\)"):
        write_columns({"loss": [0.0]}, tmp_path / "t.csv")


def test_a_missing_file_is_reported_by_name(tmp_path: Path) -> None:
    """The error is a ``TableError`` that names the file."""
    with pytest.raises(TableError, match=r"none\.csv: cannot be read"):
        read_table(tmp_path / "none.csv")


def test_a_file_that_is_not_utf_8_is_reported(tmp_path: Path) -> None:
    """The error is a ``TableError`` and not a ``UnicodeDecodeError``."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"uncertainty,loss\n\xff,0\n")
    with pytest.raises(TableError, match="cannot be read"):
        read_table(path)


def test_a_filter_keeps_the_rows_in_which_the_expert_is_preferred(tmp_path: Path) -> None:
    """Other rows are dropped; the filter by correctness needs its own column."""
    path = write_csv(tmp_path / "t.csv", "uncertainty,loss,expert_preferred\n0.1,0,1\n0.2,0.5,0\n0.3,0,true\n")
    assert read_table(path).only("expert_preferred").uncertainty.tolist() == [0.1, 0.3]
    with pytest.raises(TableError, match="--expert-correct-only needs the column expert_correct"):
        read_table(path).only("expert_correct")


def test_a_filter_without_column_or_rows_is_refused() -> None:
    """Without the column ``expert_correct``, or without a row in which it is 1, the error says so."""
    table = Table(np.array([0.5]), np.array([0.0]))
    with pytest.raises(TableError, match="needs the column expert_correct"):
        table.only("expert_correct")
    with pytest.raises(TableError, match="expert_correct is 0 in every row"):
        Table(np.array([0.5]), np.array([0.0]), expert_correct=np.array([0.0])).only("expert_correct")


def test_a_long_table_takes_few_bytes_per_row(tmp_path: Path) -> None:
    """Reading and replaying 200,000 rows takes some bytes per cell, not a Python object per cell."""
    rows = 200_000
    path = tmp_path / "large.csv"
    rng = np.random.default_rng(1)
    with path.open("w", encoding="utf-8") as file:
        file.write("id,uncertainty,loss,draft_tokens,expert_tokens\n")
        for number, uncertainty in enumerate(rng.random(rows).tolist()):
            file.write(f"q{number},{uncertainty:.4f},{int(number % 9 == 0)},20,300\n")
    script = (
        "import resource, sys; import bpac.cli.commands.replay; from bpac.cli.program import main; "
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "code = main(['replay', sys.argv[1], '--order', 'given', '--json']); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, file=sys.stderr); sys.exit(code)"
    )
    result = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["steps"] == rows
    grown = 1024 * int(result.stderr.split()[-1])
    assert grown < 400 * rows, f"{grown / rows:.0f} bytes per row"
