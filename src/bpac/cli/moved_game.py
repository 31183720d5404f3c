"""A game that is moved from one SQLite store to another, both of stopped gateways.

1. A game is never continued in two places: its wealth would be spent twice. It ends here before it is copied, so that a
   crash in between leaves a game that is over, and not one that goes on twice; the same command then goes on.
2. A journal is copied to the byte, with the keys of its coins. Its number is part of its hash chain, and stays.
"""

import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from bpac.cli.changed_games import current, ending, numbered
from bpac.errors import InputError, StoreError
from bpac.gateway.games.restoring import folded, has_entries
from bpac.routing.journal.entries import Opened
from bpac.routing.router import Router
from bpac.stores import SqliteStore
from bpac.stores.sqlite.connecting import connect
from bpac.stores.store import Game

# What belongs to one game, by table and by the column that has its number.
TABLES = {
    "games": "number",
    "entries": "game",
    "snapshots": "game",
    "claims": "game",
    "coin_keys": "game",
    "archived": "game",
}
MOVED = "moved to "


class Moved(NamedTuple):
    """A game that was moved.

    Parameters
    ----------
    game: the game.
    router: its state.
    entries: how many entries its journal has in the store that it was moved to.
    head: of its hash chain, in both stores.
    new: the game that takes its place in the store that it was moved from.
    """

    game: Game
    router: Router
    entries: int
    head: str
    new: Game


def move_game(source: SqliteStore, target: Path, number: int) -> Moved:
    """Move a game to another file; here it ends.

    Parameters
    ----------
    source: the store that it is in, opened with ``commit_each``; no gateway is using it.
    target: the other file, which is made if it does not exist; no gateway is using it either.
    number: of the game.
    """
    game = numbered(source, number)
    if not has_entries(source, game):
        raise InputError(f"game {number} has not begun: there is nothing to move")
    why, place = f"{MOVED}{target.resolve()}", ending(source, game)
    if place is not None and place[1] != why:
        raise InputError(
            f"game {number} is over ({place[1]}): it must not go on elsewhere. bpac export writes it to a file"
        )
    router, head = folded(source, game).router, source.head(game)
    with closing(SqliteStore(str(target), wait_for_disk=True, commit_each=True)) as other:
        there = game in other.games()
        if not there:
            _check_room(other, game)
        new = _end(source, game, router, why) if place is None else place[0]
        if not there:
            _copy(source.path, other.path, number)
    # Opened again, so that the file beside it notes where the journal ends.
    with closing(SqliteStore(str(target), wait_for_disk=True, commit_each=True)) as other:
        entries = sum(1 for _ in other.links(game))  # every entry is read along the hash chain
        if other.head(game) != head:
            raise StoreError(f"game {number} in {target} is not the one in {source.path}: restore {target} from a copy")
    return Moved(game, router, entries, head.hex(), new)


def _check_room(other: SqliteStore, game: Game) -> None:
    taken = {one.number for one in other.games()} | {loss.game for loss in other.losses()}
    if game.number in taken:
        raise InputError(
            f"{other.path} has another game {game.number}, and the number is part of the hash chain: move the game to "
            "a new file, or begin a game there from its rounds (bpac export, bpac warm)"
        )
    if current(other, game.route, game.segment) is not None:
        name = f"{game.route} {game.segment}".rstrip()
        raise InputError(
            f"{other.path} has a game of {name} already, and two games cannot become one: bpac games merge"
        )


def _end(store: SqliteStore, game: Game, router: Router, why: str) -> Game:
    """Begin a game with the same terms and settings, which takes the place of another one."""
    with store.together():
        new = store.open_game(game.route, game.segment, game.terms)
        note = {"at": round(time.time(), 3), "ends": game.number, "why": why}
        store.append(new, Opened(router.settings.to_json()), note)
    return new


def _copy(source: str, target: str, number: int) -> None:
    with closing(connect(target)) as writing:
        writing.execute("PRAGMA synchronous = FULL")
        writing.execute("ATTACH DATABASE ? AS source", (source,))
        writing.execute("BEGIN IMMEDIATE")
        for table, column in TABLES.items():
            writing.execute(f"INSERT INTO main.{table} SELECT * FROM source.{table} WHERE {column} = ?", (number,))
        writing.execute("INSERT INTO main.uses (game) VALUES (?)", (number,))
        writing.execute("COMMIT")
        writing.execute("PRAGMA main.wal_checkpoint(PASSIVE)")
