"""The command ``reproduce``: the paper's tables and figures and those of this package, written by name."""

import argparse
import json
from pathlib import Path

from bpac.errors import InputError
from bpac.replay.parallel import Engine
from bpac.replay.studies.reproduce import NAMES, reproduce
from bpac.replay.tables.builtin import PREFIX, open_table


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    results = commands.add_parser(
        "reproduce", help="write the tables and figures of the paper and of this package, and a report with all of them"
    )
    names = f"results to write: all, {', '.join(NAMES)} (default: all, or only the tables given with --tables)"
    results.add_argument("names", nargs="*", metavar="NAME", help=names)
    results.add_argument("--runs", type=int, default=100, help="number of replays of each method (default: 100)")
    results.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder to write to; finished runs are saved there, so that a stopped command resumes",
    )
    results.add_argument(
        "--tables",
        nargs="+",
        default=[],
        metavar="TABLE",
        help="your own tables of recorded answers, to show what the policies would save on them",
    )
    results.add_argument(
        "--graded",
        action="append",
        default=[],
        metavar="METHOD=TABLE",
        help="table of graded answers of a prompting method, for the result prompting; may be given several times",
    )
    results.add_argument(
        "--workers", type=int, default=-1, help="number of processes; -1 for one per core (default: -1)"
    )
    results.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="address of a Dask scheduler whose workers run the replays (default: none, they run on this machine)",
    )
    results.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    results.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    graded, inputs = {}, list(options.tables)
    for item in options.graded:
        method, equals, source = item.partition("=")
        if not (method and equals and source):
            raise InputError(f"--graded {item}: give METHOD=TABLE, such as NoThinking=answers.csv")
        graded[method] = open_table(source)
        inputs.append(source)
    tables = {source: open_table(source) for source in options.tables}
    # Figures have no room for whole paths: the file's name is used where it is unique.
    short = {source: Path(source).name for source in tables}
    named = {
        short[source] if list(short.values()).count(short[source]) == 1 else source: table
        for source, table in tables.items()
    }
    names = options.names or ([] if tables else ["all"])
    engine = Engine(options.workers, options.dask)
    files = [source for source in inputs if not source.startswith(PREFIX)]
    done = reproduce(names, options.runs, options.out, tables=named, graded=graded, inputs=files, engine=engine)
    written = [str(path) for path in done.written]
    if not options.json:
        print("\n".join(written))
        return 0
    results = [
        {"name": one.name, "title": one.title, "header": list(one.header), "rows": [list(row) for row in one.rows]}
        for one in done.sections
    ]
    report = {"out": str(options.out), "report": written[-1], "files": written, "runs": options.runs}
    print(json.dumps(report | {"results": results}))
    return 0
