"""The command ``backup``: copy the store of a gateway while it runs."""

import argparse
from pathlib import Path

from bpac.cli.output import add_json_option, counted, print_report
from bpac.errors import InputError
from bpac.gateway.config.file import load_config
from bpac.output_files import refuse_overwriting
from bpac.stores import files_of
from bpac.stores.redis.server.address import is_redis
from bpac.stores.sqlite.recovery.backup import Backup, back_up

FINE = 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    backup = commands.add_parser(
        "backup", help="copy a gateway's store to a file and check the copy, whether the gateway runs or not"
    )
    backup.add_argument("config", metavar="CONFIG", type=Path, help="TOML file that configures the gateway")
    backup.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        required=True,
        help="file to write, which only its owner can read: it contains the secrets of the store",
    )
    add_json_option(backup)
    backup.set_defaults(run=_backup)


def _backup(options: argparse.Namespace) -> int:
    config = load_config(options.config, secrets=False)
    if is_redis(config.store):
        raise InputError(
            "store: games in Redis are backed up with Redis itself (its append-only file, or a copy); bpac archive and "
            "bpac export write their journals to files"
        )
    files = files_of(config.store)
    if not files:
        raise InputError("store: memory:// keeps no journals that could be copied; use sqlite:///FILE")
    refuse_overwriting({"--out": options.out}, [options.config, *files])
    made = back_up(str(files[0]), options.out)
    print_report(options, made.to_json(), _text(made, files[0]))
    return FINE


def _text(made: Backup, store: Path) -> list[str]:
    lines = [
        f"{made.file}: {counted(len(made.games), 'game')}, {made.size:,} bytes, made at {made.made}; "
        "every journal was checked"
    ]
    lines += [
        f"  game {copy.game}, {copy.route} {copy.segment}".rstrip()
        + f": {counted(copy.entries, 'entry', 'entries')}, head {copy.head}"
        for copy in made.games
    ]
    lines.append(
        f"to restore it, stop the gateway, remove {store}-wal and {store}-shm, copy it to {store}, and leave "
        f"{store}.head as it is: games to which nothing was written since go on, the others begin anew"
    )
    return lines
