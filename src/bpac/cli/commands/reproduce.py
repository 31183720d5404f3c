"""The command ``reproduce``: the paper's tables and figures and those of this package, written by name."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bpac.errors import InputError, TableError
from bpac.local.measurements import measured_judge, measured_prompting
from bpac.replay.cascade.reading import default_prices, is_cascade, open_cascade, prices_from_text
from bpac.replay.paper.table_1 import PromptedAnswers
from bpac.replay.parallel import Engine
from bpac.replay.studies.on_tables.cascade import GivenCascade
from bpac.replay.studies.on_tables.given_tables import GivenTable
from bpac.replay.studies.reproduce import NAMES, Measurements, reproduce
from bpac.replay.tables.builtin import PREFIX, open_table, scores_of
from bpac.replay.tables.reading import other_scores
from bpac.replay.tables.table import Table


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    results = commands.add_parser(
        "reproduce", help="write the tables and figures of the paper and of this package, and a report with all of them"
    )
    names = f"sections to write: all, {', '.join(NAMES)} (default: all)"
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
        help="your own tables of recorded answers: the same sections on them instead of on the built-in tables, as far "
        "as their columns allow; further columns uncertainty_NAME are compared as other scores",
    )
    results.add_argument(
        "--graded",
        action="append",
        default=[],
        metavar="METHOD=TABLE",
        help="table of graded answers of a prompting method, for table-1; may be given several times (default: the "
        "local model is asked, which needs the extra local)",
    )
    results.add_argument(
        "--workers", type=int, default=-1, help="number of processes; -1 for one per core (default: -1)"
    )
    results.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="address of a Dask scheduler whose workers run the replays (default: none, they run on this machine)",
    )
    results.add_argument(
        "--prices",
        action="append",
        default=[],
        metavar="P1,…,PM",
        help="price of a call of each model, for tables of cascades; may be given several times (default: the mean "
        "tokens of each model relative to the last)",
    )
    results.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    results.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    graded, inputs = [], list(options.tables)
    for item in options.graded:
        method, equals, source = item.partition("=")
        if not (method and equals and source):
            raise InputError(f"--graded {item}: give METHOD=TABLE, such as NoThinking=answers.csv")
        graded.append(PromptedAnswers.of(method, open_table(source)))
        inputs.append(source)
    cascades = [source for source in options.tables if is_cascade(source)]
    tables = _given([source for source in options.tables if source not in cascades])
    # Answers of the user's own models are shown in place of those of the local model.
    prompting = (lambda _: graded) if graded or options.tables else measured_prompting
    done = reproduce(
        options.names or ["all"],
        options.runs,
        options.out,
        Measurements(prompting, measured_judge),
        tables=tables,
        cascades=_given_cascades(cascades, options.prices),
        inputs=[source for source in inputs if not source.startswith(PREFIX)],
        engine=Engine(options.workers, options.dask),
    )
    written = [str(path) for path in done.written]
    if not options.json:
        print("\n".join(written))
        return 0
    results = [
        {
            "name": one.name,
            "number": one.number,
            "title": one.title,
            "mark": one.mark.words if one.mark else None,
            "header": list(one.table.header),
            "rows": [list(row) for row in one.table.rows],
        }
        for one in done.sections
    ]
    report = {"out": str(options.out), "report": written[-1], "files": written, "runs": options.runs}
    print(json.dumps(report | {"results": results}))
    return 0


def _given(sources: Sequence[str]) -> list[GivenTable]:
    return [GivenTable(_short_name(source, sources), _scores(source)) for source in sources]


def _given_cascades(sources: Sequence[str], prices: Sequence[str]) -> list[GivenCascade]:
    """Each table of a cascade, with each list of prices that has as many as it has models."""
    given = []
    for source in sources:
        table, name = open_cascade(source), _short_name(source, sources)
        listed = [numbers for text in prices if len(numbers := prices_from_text(text)) == table.stages]
        given += [GivenCascade(name, table, one) for one in listed or [default_prices(source, table)]]
    return given


def _short_name(source: str, sources: Sequence[str]) -> str:
    """The shortest end of a path that no other one shares, because figures have no room for whole paths."""
    parts = Path(source).parts
    for count in range(1, len(parts)):
        end = parts[-count:]
        if sum(Path(other).parts[-count:] == end for other in sources) == 1:
            return "/".join(end)
    return source


def _scores(source: str) -> dict[str, Table]:
    """The table with its main score, and with every other score that it has in all rows."""
    scores = {"uncertainty": open_table(source)}
    built_in = source.startswith(PREFIX)
    for name in scores_of(source.removeprefix(PREFIX))[1:] if built_in else other_scores(source):
        try:
            scores[name] = open_table(source, name)
        except TableError as error:
            print(f"bpac: the score {name} is left out: {error}", file=sys.stderr)
    return scores
