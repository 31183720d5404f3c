"""The command ``archive``: move old journal entries of a stopped gateway from its store to files."""

import argparse
import sqlite3
from contextlib import closing
from pathlib import Path

from bpac.cli.output import add_json_option, print_report, warn
from bpac.errors import InputError
from bpac.gateway.config.file import load_config
from bpac.gateway.games.restoring.archiving import Archive, archive_game
from bpac.stores import SqliteStore, files_of
from bpac.stores.line_files import PARQUET
from bpac.stores.redis.server.address import is_redis, read_address

FINE = 0
DEFAULT_KEEP = 100_000


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    archive = commands.add_parser(
        "archive", help="move old journal entries of a stopped gateway to files that bpac audit can read"
    )
    archive.add_argument("config", metavar="CONFIG", type=Path, help="TOML file that configures the gateway")
    archive.add_argument(
        "--out", type=Path, metavar="DIR", required=True, help="directory for the archives, one file per game and call"
    )
    archive.add_argument(
        "--keep",
        type=int,
        default=DEFAULT_KEEP,
        metavar="N",
        help="number of latest entries of each game that stay in the store; more stay if their outcome is open or if "
        f"no snapshot was taken after them (default: {DEFAULT_KEEP})",
    )
    add_json_option(archive)
    archive.set_defaults(run=_archive)


def _archive(options: argparse.Namespace) -> int:
    config = load_config(options.config, secrets=False)
    if options.keep < 1:
        raise InputError(f"--keep must be at least 1, got {options.keep}")
    if is_redis(config.store):
        return _archive_shared(options, config.store)
    files = files_of(config.store)
    if not files:
        raise InputError("store: memory:// keeps no journals after the gateway stops; use sqlite:///FILE")
    if not files[0].exists():
        raise InputError(f"{files[0]} does not exist: there is nothing to archive")
    with closing(SqliteStore(str(files[0]), wait_for_disk=True, commit_each=True)) as store:
        lost = {loss.game for loss in store.losses()}
        games = [game for game in store.games() if game.number not in lost]
        found = [archive_game(store, game, options.out, options.keep) for game in games]
        made = [archive for archive in found if archive is not None]
        if made:
            try:
                store.shrink()
            except sqlite3.Error as error:
                warn([f"{files[0]} could not be made smaller ({error}): its free space is used for new entries"])
    print_report(options, {"archives": [archive.to_json() for archive in made]}, _text(made))
    return FINE


def _archive_shared(options: argparse.Namespace, address: str) -> int:
    """Archive games in Redis, also while gateways use them, to Parquet files."""
    from bpac.stores.redis.store import RedisStore  # noqa: PLC0415  # redis-py is optional

    with closing(RedisStore(read_address(address))) as store:
        games = [game for game in store.games() if not store.is_over(game)]
        found = [archive_game(store, game, options.out, options.keep, PARQUET) for game in games]
        made = [archive for archive in found if archive is not None]
    print_report(options, {"archives": [archive.to_json() for archive in made]}, _text(made))
    return FINE


def _text(made: list[Archive]) -> list[str]:
    if not made:
        return ["nothing to archive: all entries are among those that stay"]
    lines = [
        f"{archive.file}: entries {archive.first} to {archive.last} of game {archive.game.number}, "
        f"{archive.game.route} {archive.game.segment}".rstrip()
        for archive in made
    ]
    return [
        *lines,
        "keep these files: bpac audit reads the archives of a game in order, followed by its bpac export. Times, token "
        "counts and tenants of single requests are not in them; their totals stay in the store",
    ]
