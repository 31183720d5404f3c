"""The command ``warm``: begin a game from labelled history or from an older game, before the gateway starts."""

import argparse
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bpac.cli.output import add_json_option, counted, print_report
from bpac.errors import InputError, JournalError, StoreError
from bpac.gateway.config.file import Config, load_config
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.restoring.warm_start import LabelledHistory, WarmStart, warm_start
from bpac.replay.tables.reading import read_table
from bpac.routing.journal.chain import GAME
from bpac.routing.journal.entries import ARCHIVED
from bpac.routing.journal.entry_lines import read_journal, remark_from_json
from bpac.stores import SqliteStore, files_of
from bpac.stores.redis.server.address import is_redis

FINE = 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    warm = commands.add_parser(
        "warm", help="begin a game from labelled history or from an older game, while the gateway is stopped"
    )
    warm.add_argument("config", metavar="CONFIG", type=Path, help="TOML file that configures the gateway")
    warm.add_argument(
        "table",
        metavar="TABLE",
        type=Path,
        nargs="?",
        help="table with the columns uncertainty and loss for a sample of the traffic (.csv, .jsonl, .parquet), or the "
        "journal of an older game, written by bpac export",
    )
    warm.add_argument(
        "--game",
        type=int,
        metavar="N",
        help="number of an older game in the same store to learn from, instead of TABLE",
    )
    warm.add_argument("--route", help="route to start; required if the config has several")
    warm.add_argument("--segment", default="", help="segment to start; required if the route is split into segments")
    warm.add_argument(
        "--new-game",
        action="store_true",
        help="begin a new game also if the current one has rounds already; that game ends",
    )
    add_json_option(warm)
    warm.set_defaults(run=_warm)


def _warm(options: argparse.Namespace) -> int:
    if (options.table is None) == (options.game is None):
        raise InputError("give either TABLE or --game: a game learns from one history")
    config = load_config(options.config, secrets=False)
    route = _chosen_route(config, options.route)
    if route.models:
        raise InputError(
            f"history is for routes of two models, and {route.name} is a cascade: start the gateway without bpac warm; "
            "its first requests, in which all models are asked, teach it the same"
        )
    if is_redis(config.store):
        raise InputError(
            "store: history is fed to games in SQLite only. Warm-start the route there, or let games in Redis begin "
            "with a threshold of 0"
        )
    files = files_of(config.store)
    if not files:
        raise InputError("store: memory:// keeps no journals after the gateway stops; use sqlite:///FILE")
    with (
        closing(SqliteStore(str(files[0]), wait_for_disk=True, commit_each=True)) as store,
        _history(options, store) as history,
    ):
        started = warm_start(store, route, options.segment, history, new_game=options.new_game)
    report = {
        "route": started.game.route,
        "segment": started.game.segment,
        "game": started.game.number,
        "source": history.source,
        "rows": started.rows,
        "threshold": started.threshold,
        "assumes": started.assumes,
    }
    print_report(options, report, _text(started, history))
    return FINE


def _chosen_route(config: Config, name: str | None) -> RouteSettings:
    if name is None and len(config.routes_with_games) == 1:
        return next(iter(config.routes_with_games.values()))
    if name not in config.routes_with_games:
        raise InputError(f"--route must be one of {', '.join(config.routes_with_games)}, got {name!r}")
    return config.routes_with_games[name]


@contextmanager
def _history(options: argparse.Namespace, store: SqliteStore) -> Iterator[LabelledHistory]:
    if options.game is not None:
        yield _older_game(store, options.game)
        return
    path: Path = options.table
    terms = _terms_of_journal(path)
    if terms is None:
        table = read_table(path)
        rows = list(zip(table.uncertainty.tolist(), table.loss.tolist(), strict=True))
        yield LabelledHistory(f"table {path.name}", rows=rows)
        return
    try:
        with path.open(encoding="utf-8") as file:
            yield LabelledHistory(f"journal {path.name}", entries=read_journal(file), terms=terms)
    except JournalError as error:
        raise JournalError(f"{path}: {error}") from error


def _older_game(store: SqliteStore, number: int) -> LabelledHistory:
    game = next((game for game in store.games() if game.number == number), None)
    if game is None:
        there = ", ".join(f"{game.number}: {game.route} {game.segment}".rstrip() for game in store.games()) or "none"
        raise InputError(f"--game {number}: there is no such game; there are {there}")
    for loss in store.losses():
        if loss.game == number:
            raise StoreError(f"--game {number} cannot be used: {loss}, and these may be the rounds with losses")
    entries = (stored.entry for stored in store.entries(game))
    return LabelledHistory(
        f"game {number} ({game.route} {game.segment}".rstrip() + ")", entries=entries, terms=game.terms
    )


def _terms_of_journal(path: Path) -> str | None:
    """The terms in the first line of a journal, empty if it has none there; None if the file is not a journal."""
    if path.suffix != ".jsonl":
        return None
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline()
        kind = json.loads(first).get("entry")
    except (OSError, ValueError, AttributeError):
        return None  # it is read as a table, with errors that say what is wrong
    if kind is None:
        return None
    remark = remark_from_json(first)
    if remark is not None and remark[0] == ARCHIVED:
        raise InputError(
            f"{path}: its first {remark[1].get('entries')} entries are archived: put the archives, in order, and this "
            "file into one file"
        )
    return str(remark[1].get("terms") or "") if remark is not None and remark[0] == GAME else ""


def _text(started: WarmStart, history: LabelledHistory) -> list[str]:
    name = f"{started.game.route} {started.game.segment}".rstrip()
    return [
        f"{name}: game {started.game.number} begins with a threshold of {started.threshold:.4g}, learned from "
        f"{counted(started.rows, 'round')} of {history.source}; the gateway uses it from its next start on",
        "its promise now assumes, in addition to what docs/guarantee.md lists:",
        *(f"  - {assumed}" for assumed in started.assumes),
    ]
