"""The command ``games``: list the games of a gateway, and change them, saying what that does to the promise."""

import argparse
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bpac.cli.games.changed_games import Begun, begin_again, begin_from, ending, going_on, left_for, numbered
from bpac.cli.games.move_places import RedisPlace, SqlitePlace, place_at, shown_target
from bpac.cli.games.moved_game import move_game
from bpac.cli.games.promises_of_games import name_of, promise_of_merge, promise_of_move, promise_of_reset
from bpac.cli.games.shared_game_merge import begin_shared_from
from bpac.cli.games.shared_game_reset import SharedGameReset
from bpac.cli.output import add_json_option, counted, print_report, warn
from bpac.errors import InputError
from bpac.gateway.config.file import Config, load_config
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.money.savings import Prices
from bpac.gateway.games.restoring.restoring import folded, has_entries
from bpac.gateway.games.shown.status import game_status
from bpac.stores import SqliteStore, files_of, open_store
from bpac.stores.redis.server.address import is_redis
from bpac.stores.store import Game, Store

FINE, WRONG_USAGE = 0, 2


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    games = commands.add_parser(
        "games", help="list the games of a gateway, begin one again, move one to another file, or begin one from others"
    )
    words = games.add_subparsers(title="what to do", required=True, metavar="list|reset|move|merge")

    def add(name: str, run: Callable[[argparse.Namespace], int], about: str, *, changes: bool = True) -> Any:
        word = words.add_parser(name, help=about, description=f"{about[:1].upper()}{about[1:]}.")
        word.add_argument("config", metavar="CONFIG", type=Path, help="TOML file that configures the gateway")
        if changes:
            sure = "do it; without this option the command only says what it would do, and changes nothing"
            word.add_argument("--yes", action="store_true", help=sure)
        add_json_option(word)
        word.set_defaults(run=run)
        return word

    add(
        "list",
        _list,
        "list all games with their rounds, threshold and state, also while the gateway runs",
        changes=False,
    )
    reset = add("reset", _reset, "end the current game of a route or segment and begin a new one with a threshold of 0")
    move = add("move", _move, "move a game to another SQLite file or to Redis, where it goes on; here it ends")
    move.add_argument("--game", type=int, metavar="N", required=True, help="number of the game")
    move.add_argument(
        "--to",
        metavar="STORE",
        required=True,
        help="SQLite file to move it to, made if missing, or an address of Redis, such as redis://HOST:6379/0?name=prod",
    )
    merge = add(
        "merge",
        _merge,
        "begin a new game that has learned from the rounds of several older ones; games cannot be joined into one",
    )
    merge.add_argument("games", type=int, nargs="+", metavar="N", help="numbers of the older games")
    for word in (reset, merge):
        word.add_argument("--route", help="route of the new game; required if the config has several")
        word.add_argument("--segment", default="", help="its segment; required if the route is split into segments")


def _list(options: argparse.Namespace) -> int:
    config = load_config(options.config, secrets=False)
    with closing(open_store(config.store, read_only=True)) as store:
        rows = [_row(store, game, config) for game in store.games()]
    lines = [
        f"{row['game']}: {row['route']} {row['segment']}".rstrip()
        + f": {counted(row['rounds'], 'round')}, threshold {row['threshold']:.4g}, {row['state']}"
        + (f" ({row['why']})" if row["why"] else "")
        for row in rows
    ]
    print_report(options, {"games": rows}, lines or ["there is no game yet"])
    return FINE


def _row(store: Store, game: Game, config: Config) -> dict[str, Any]:
    row: dict[str, Any] = {"game": game.number, "route": game.route, "segment": game.segment}
    lost = next((loss for loss in store.losses() if loss.game == game.number), None)
    if not has_entries(store, game):
        return {**row, "rounds": 0, "threshold": 0.0, "epoch": 1, "owed": 0, "state": "not begun", "why": ""}
    kept, route = folded(store, game), config.routes_with_games.get(game.route)
    over = ending(store, game, () if route is None else route.open_terms)
    ended_there = store.over(game) if hasattr(store, "over") else None
    names = [model.name for model in route.models] if route is not None else []
    prices = None if route is None else Prices.of(route)
    status = game_status(game, kept.router, kept.history, kept.savings.report(prices), models=names)
    state, why = str(status.state), ""
    if lost is not None:
        state, why = "lost", str(lost)
    elif over is not None or ended_there:
        state, why = "ended", ended_there or (over[1] if over else "")
    elif terms := left_for(store, game):
        state, why = "left", terms
    elif route is None:
        why = "the configuration has no such route"
    summary = status.summary
    return {
        **row,
        "rounds": summary.steps,
        "threshold": summary.threshold,
        "epoch": summary.epoch,
        "owed": summary.owed,
        "state": state,
        "why": why,
    }


def _reset(options: argparse.Namespace) -> int:
    config, route, segment = _chosen(options)
    if is_redis(config.store):
        with closing(SharedGameReset(config.store, route, segment)) as shared:
            promise = promise_of_reset(route, segment, shared.router)
            return _report(options, shared.run(), promise) if _sure(options, promise) else WRONG_USAGE
    with closing(_changed(config)) as store:
        now = going_on(store, route, segment)
        promise = promise_of_reset(route, segment, None if now is None else folded(store, now).router)
        if not _sure(options, promise):
            return WRONG_USAGE
        begun = begin_again(store, route, segment)
    return _report(options, begun, promise)


def _merge(options: argparse.Namespace) -> int:
    config, route, segment = _chosen(options)
    with closing(_place(config)) as place:
        rounds = {number: folded(place.store, numbered(place.store, number)).router.step for number in options.games}
        promise = promise_of_merge(route, segment, rounds)
        if not _sure(options, promise):
            return WRONG_USAGE
        if isinstance(place, RedisPlace):
            begun = begin_shared_from(place, route, segment, options.games)
        else:
            begun = begin_from(place.store, route, segment, options.games)
    return _report(options, begun, promise)


def _report(options: argparse.Namespace, begun: Begun, promise: Sequence[str]) -> int:
    game, before = begun.game, begun.before
    report = {
        "game": game.number,
        "route": game.route,
        "segment": game.segment,
        "threshold": begun.router.threshold,
        "history": begun.router.labelled,
        "ended": None if before is None else before.number,
        "promise": list(promise),
    }
    over = "" if before is None else f"; game {before.number} is over"
    begins = f"game {game.number} begins with a threshold of {begun.router.threshold:.4g}{over}"
    print_report(options, report, [f"{name_of(game.route, game.segment)}: {begins}", *_listed(promise)])
    return FINE


def _move(options: argparse.Namespace) -> int:
    config = load_config(options.config, secrets=False)
    with closing(_place(config)) as place:
        if _same_place(place, options.to):
            raise InputError(f"--to {options.to} is the store that the game is in")
        game = numbered(place.store, options.game)
        router = folded(place.store, game).router if has_entries(place.store, game) else None
        promise = promise_of_move(game, router, shown_target(options.to))
        if not _sure(options, promise):
            return WRONG_USAGE
        moved = move_game(place, options.to, options.game)
    target = shown_target(options.to)
    report = {
        "game": moved.game.number,
        "route": moved.game.route,
        "segment": moved.game.segment,
        "to": target,
        "entries": moved.entries,
        "head": moved.head,
        "rounds": moved.router.step,
        "threshold": moved.router.threshold,
        "new_game": None if moved.new is None else moved.new.number,
        "promise": promise,
    }
    entries = counted(moved.entries, "entry", "entries")
    done = f"game {moved.game.number} is in {target}: {entries}, head {moved.head}, the same as here"
    print_report(options, report, [done, *_listed(promise)])
    return FINE


def _sure(options: argparse.Namespace, promise: Sequence[str]) -> bool:
    """Whether the change was confirmed; if not, say what it would do."""
    if not options.yes:
        warn(["nothing was changed. With --yes:", *_listed(promise)])
    return bool(options.yes)


def _listed(promise: Sequence[str]) -> list[str]:
    return [f"  - {one}" for one in promise]


def _chosen(options: argparse.Namespace) -> tuple[Config, RouteSettings, str]:
    config = load_config(options.config, secrets=False)
    name = options.route
    if name is None and len(config.routes_with_games) == 1:
        (name,) = config.routes_with_games
    if name not in config.routes_with_games:
        raise InputError(f"--route must be one of {', '.join(config.routes_with_games)}, got {name!r}")
    route = config.routes_with_games[name]
    segment = unicodedata.normalize("NFC", options.segment)
    if bool(segment) != (route.segment_by is not None):
        has = "has no segment_by: leave --segment out" if segment else "has a game for each segment: give --segment"
        raise InputError(f"the route {name} {has}")
    return config, route, segment


def _place(config: Config) -> SqlitePlace | RedisPlace:
    """The store, for changes; ``StoreInUse`` while a gateway uses a SQLite file."""
    return place_at(config.store) if is_redis(config.store) else SqlitePlace(_changed(config))


def _same_place(place: SqlitePlace | RedisPlace, target: str) -> bool:
    """Whether a target is the store itself; nothing is opened for it."""
    if is_redis(target):
        return place.name == shown_target(target)
    return isinstance(place, SqlitePlace) and place.name == str(Path(target.removeprefix("sqlite:///")).resolve())


def _changed(config: Config) -> SqliteStore:
    """The store, for changes; ``StoreInUse`` while a gateway uses it."""
    files = files_of(config.store)
    if not files:
        raise InputError(
            "games are changed in SQLite stores (sqlite:///FILE) of gateways that are stopped, or in Redis"
        )
    if not files[0].exists():
        raise InputError(f"{files[0]} does not exist: there is no game yet")
    return SqliteStore(str(files[0]), wait_for_disk=True, commit_each=True)
