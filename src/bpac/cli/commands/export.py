"""The command ``export``: the journal of a game for audits, or its graded requests as a table for replays."""

import argparse
import csv
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

from bpac.cli.output import counted, warn
from bpac.errors import InputError
from bpac.gateway.config.file import load_config
from bpac.output_files import refuse_overwriting, whole_file
from bpac.replay.tables.formats import table_format
from bpac.replay.tables.writing import write_columns
from bpac.routing.journal.units import unit_of
from bpac.stores import files_of, open_store
from bpac.stores.export import GradedRounds, chosen_game, complete_columns, journal_lines, table_rows
from bpac.stores.export_cascade import cascade_rows, is_cascade_game

FINE = 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    export = commands.add_parser("export", help="write a gateway's journal for bpac audit, or a table for bpac replay")
    export.add_argument("config", metavar="CONFIG", type=Path, help="TOML file that configures the gateway")
    export.add_argument("--route", help="route to use; required if the config has several")
    export.add_argument("--segment", help="segment to use; required if the route has several")
    export.add_argument(
        "--game", type=int, metavar="N", help="number of an earlier game to export (default: the latest game)"
    )
    export.add_argument(
        "--format",
        choices=("journal", "table"),
        default="journal",
        help="write every decision and outcome (journal) or one row per graded request (table) (default: journal)",
    )
    export.add_argument(
        "--thin",
        action="store_true",
        help="sample the rows of a table so that every request is equally likely to be in it: the default, and the "
        "opposite of --all-audits",
    )
    export.add_argument(
        "--all-audits",
        action="store_true",
        help="write all graded requests to the table, each with its propensity; bpac replay repeats each row "
        "1/propensity times, because audited requests are not a fair sample of the traffic; bpac warm refuses such a "
        "table",
    )
    export.add_argument("--seed", type=int, default=0, help="random seed for sampling the rows of a table (default: 0)")
    export.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="file to write; a table is written in the format of its ending, .csv, .jsonl (each also .gz) or .parquet "
        "(default: standard output)",
    )
    export.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> int:
    config = load_config(options.config, secrets=False)
    refuse_overwriting({"--out": options.out}, [options.config, *files_of(config.store)])
    if options.format == "table" and options.out is not None:
        table_format(options.out)
    with closing(open_store(config.store, read_only=True)) as store:
        game = chosen_game(store, options.route, options.segment, options.game)
        for loss in store.losses():
            if loss.game == game.number:
                warn([f"{loss}: only what is left is exported"])
        if options.format == "journal":
            with _output(options.out) as file:
                file.writelines(line + "\n" for line in journal_lines(store, game))
            return FINE
        if options.thin and options.all_audits:
            raise InputError("--thin and --all-audits exclude each other: leave one of them out")
        rows = cascade_rows if is_cascade_game(game) else table_rows
        found = rows(store, game, all_audits=options.all_audits, seed=options.seed)
    _write_table(found, options.out)
    if found.least_propensity < 1.0:
        warn([_not_the_traffic(found, all_audits=options.all_audits, cascade=is_cascade_game(game))])
    if unit_of(game.terms) == "episode":
        warn(["a row is an episode of a session: score, loss and tokens are those of its first request"])
    return FINE


def _not_the_traffic(found: GradedRounds, *, all_audits: bool, cascade: bool) -> str:
    rows = len(found.rows)
    if not all_audits:
        sample = f"{counted(rows, 'row')}; --all-audits: all"
        return f"audited requests are not the traffic: the table has a sample of them that is ({sample})"
    use = "bpac replay repeats each row 1/propensity times"
    if cascade:
        use = "bpac replay refuses such a table of a cascade"
    return f"audited requests are harder than the traffic: {use}, and bpac warm refuses the table"


def _write_table(found: GradedRounds, out: Path | None) -> None:
    unknown = found.unknown()
    if not found.graded:
        why = f" ({unknown})" if unknown else ""
        raise InputError(f"no round of this game has been graded yet{why}: there is nothing to put into a table")
    if not found.rows:
        raise InputError("no round was chosen for the table: give another --seed, or --all-audits")
    rows = complete_columns(found.rows)
    if out is not None:
        write_columns({name: [row[name] for row in rows] for name in rows[0]}, out)
    else:
        writer = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    if unknown:
        warn([f"requests whose loss is not known: {unknown}"])
    if missing := found.rows[0].keys() - rows[0].keys():
        warn([f"columns left out, because some rounds lack them: {', '.join(sorted(missing))}"])


@contextmanager
def _output(path: Path | None) -> Iterator[IO[str]]:
    if path is None:
        yield sys.stdout
        return
    with whole_file(path) as unfinished, open(unfinished, "w", encoding="utf-8", newline="", opener=_private) as file:
        yield file


def _private(path: str, flags: int) -> int:
    """Open a file that, if it is new, only its owner may read: a journal shows how much was asked, and when."""
    return os.open(path, flags, 0o600)
