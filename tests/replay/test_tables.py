"""Tables: what can be read, and what a bad one is told."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpac.errors import BpacError, TableError
from bpac.replay.tables.table import Table, read_table, write_columns

ROWS = [
    {"uncertainty": 0.25, "loss": 0.0, "draft_tokens": 10, "expert_tokens": 100},
    {"uncertainty": 0.75, "loss": 0.5, "draft_tokens": 20, "expert_tokens": 200},
]


def write_csv(path: Path, text: str) -> Path:
    """A file with that text, compressed if its name says so."""
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
def test_every_format_gives_the_same_table(tmp_path: Path, name: str) -> None:
    """A table reads the same from each of the formats."""
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


def test_the_authors_names_are_understood(tmp_path: Path) -> None:
    """``instant_*`` and ``expert_token`` are read, and the loss follows from the two verdicts."""
    text = (
        "uncertainty,instant_token,expert_token,instant_correct,expert_correct\n"
        "0.1,5,50,1,1\n0.2,5,50,0,1\n0.3,5,50,False,0\n0.4,5,50,1.0,false\n"
    )
    table = read_table(write_csv(tmp_path / "t.csv", text))
    assert table.loss.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert table.expert_tokens is not None
    assert table.only("expert_correct").uncertainty.tolist() == [0.1, 0.2]


def test_another_score_can_be_chosen(tmp_path: Path) -> None:
    """``score`` names the column with the uncertainty."""
    path = write_csv(tmp_path / "t.csv", "uncertainty,verbal,loss\n0.1,0.9,0\n")
    assert read_table(path, score="verbal").uncertainty.tolist() == [0.9]


def test_a_column_with_an_empty_cell_is_not_known(tmp_path: Path) -> None:
    """Tokens missing in one row make the token columns unknown, and nothing else."""
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
def test_a_bad_cell_is_named(tmp_path: Path, cell: str, column: str) -> None:
    """The error names file, row, column and value, in one line."""
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
def test_a_bad_table_is_explained(tmp_path: Path, name: str, text: str, said: str | None) -> None:
    """Each way in which a file cannot be a table has its own words."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    if said is None:
        path.write_bytes(b"\x1f\x8b broken")
        said = "cannot be read"
    with pytest.raises(TableError, match=said) as caught:
        read_table(path)
    assert str(path) in str(caught.value)


def test_columns_without_a_name_are_passed_over(tmp_path: Path) -> None:
    """Spreadsheets leave some behind; they hold nothing."""
    path = write_csv(tmp_path / "t.csv", "uncertainty,loss,,\n0.5,1,,\n")
    assert read_table(path).loss.tolist() == [1.0]


def test_a_table_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    """If writing fails half-way, the old table stands and nothing unfinished is left beside it."""
    path = write_csv(tmp_path / "t.jsonl", "old")
    with pytest.raises(TypeError):
        write_columns({"loss": [0.0, object()]}, path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(BpacError, match=r"t\.csv: cannot be written \(Is a directory\)"):
        write_columns({"loss": [0.0]}, tmp_path / "t.csv")


def test_a_missing_file_is_a_bad_table(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(TableError, match=r"none\.csv: cannot be read"):
        read_table(tmp_path / "none.csv")


def test_a_line_of_text_that_is_not_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are reported, not raised."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"uncertainty,loss\n\xff,0\n")
    with pytest.raises(TableError, match="cannot be read"):
        read_table(path)


def test_the_filters_keep_what_they_say(tmp_path: Path) -> None:
    """Rows in which a judge preferred the expert are kept, by the library and by the command line."""
    path = write_csv(tmp_path / "t.csv", "uncertainty,loss,expert_preferred\n0.1,0,1\n0.2,0.5,0\n0.3,0,true\n")
    assert read_table(path).only("expert_preferred").uncertainty.tolist() == [0.1, 0.3]
    with pytest.raises(TableError, match="--expert-correct-only needs the column expert_correct"):
        read_table(path).only("expert_correct")


def test_the_filter_needs_its_column() -> None:
    """Without ``expert_correct``, or without a row in which it holds, the filter says so."""
    table = Table(np.array([0.5]), np.array([0.0]))
    with pytest.raises(TableError, match="needs the column expert_correct"):
        table.only("expert_correct")
    with pytest.raises(TableError, match="expert_correct is 0 in every row"):
        Table(np.array([0.5]), np.array([0.0]), expert_correct=np.array([0.0])).only("expert_correct")


def test_a_long_table_replays_in_bounded_memory(tmp_path: Path) -> None:
    """A table of half a million rows takes some bytes a cell to read and replay, not a Python object a cell."""
    rows = 500_000
    path = tmp_path / "large.csv"
    rng = np.random.default_rng(1)
    with path.open("w", encoding="utf-8") as file:
        file.write("id,uncertainty,loss,draft_tokens,expert_tokens\n")
        for number, uncertainty in enumerate(rng.random(rows).tolist()):
            file.write(f"q{number},{uncertainty:.4f},{int(number % 9 == 0)},20,300\n")
    script = (
        "import resource, sys; import bpac.cli.replay; from bpac.cli.main import main; "
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "code = main(['replay', sys.argv[1], '--order', 'given', '--json']); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, file=sys.stderr); sys.exit(code)"
    )
    result = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["steps"] == rows
    grown = 1024 * int(result.stderr.split()[-1])
    assert grown < 400 * rows, f"{grown / rows:.0f} bytes a row"
