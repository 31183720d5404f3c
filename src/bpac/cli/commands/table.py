"""The command ``table``: a table for replay from grades."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpac.cli.output import add_json_option, counted, print_report, warn
from bpac.collecting.draft_scores import DEFAULT, NAMES
from bpac.collecting.table import build_table, read_latest_grades
from bpac.output_files import refuse_overwriting
from bpac.replay.tables.formats import table_format

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(commands: "Commands") -> None:
    """Add the command to the command line."""
    table = commands.add_parser("table", help="write a table for bpac replay from grades")
    table.add_argument("grades", type=Path, metavar="GRADES", help="grades file written by bpac grade")
    score = f"score for the column uncertainty (default: {DEFAULT})"
    table.add_argument("--score", choices=NAMES, default=DEFAULT, help=score)
    out = "file for the table: .csv, .jsonl (each also .gz) or .parquet"
    table.add_argument("--out", type=Path, required=True, metavar="TABLE", help=out)
    add_json_option(table)
    table.set_defaults(run=_table)


def _table(options: argparse.Namespace) -> int:
    refuse_overwriting({"--out": options.out}, [options.grades])
    table_format(options.out)
    table = build_table(read_latest_grades(options.grades), options.score)
    table.write(options.out)
    summary = table.summary()
    warn(f"{count} left out: {why} ({table.examples[why]})" for why, count in table.left_out.items())
    warn(f"no column uncertainty_{name}: {why}" for name, why in table.scores_left_out.items())
    lines = [f"{counted(len(table), 'row')}: {options.out}", *summary_lines(summary)]
    print_report(options, {"table": str(options.out), **summary}, lines)
    return 0


def summary_lines(summary: Mapping[str, Any]) -> list[str]:
    """The statistics of a table as lines of text."""
    lines = []
    for role in ("draft", "expert"):
        accuracy, tokens = summary[f"{role}_accuracy"], summary[f"{role}_tokens"]
        words = [f"{accuracy:.1%} correct"] if accuracy is not None else []
        words += [f"{tokens:,.1f} tokens per answer"] if tokens is not None else []
        if words:
            lines.append(f"  {role:6}  {', '.join(words)}")
    lines.append(f"  average loss if every draft is kept: {summary['loss']:.2%}")
    known = {name: value for name, value in (summary["auroc"] or {}).items() if value is not None}
    lines += [f"  AUROC {value:.3f}  {name}" for name, value in known.items()]
    return lines
