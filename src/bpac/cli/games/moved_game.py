"""A game that is moved from one store to another: SQLite files of stopped gateways, or Redis.

1. A game is never continued in two places: its wealth would be spent twice. It ends here before it is copied, so that a
   crash in between leaves a game that is over, and not one that goes on twice; the same command then goes on.
2. A journal is copied to the byte, with the keys of its coins. Its number is part of its hash chain, and stays.
3. The target knows of the game when all of it is there, and not before.
"""

from contextlib import closing
from dataclasses import asdict
from typing import NamedTuple

from bpac.cli.games.changed_games import current, numbered
from bpac.cli.games.move_places import Place, place_at
from bpac.errors import InputError, StoreError
from bpac.gateway.games.restoring.restoring import folded, has_entries
from bpac.routing.router import Router
from bpac.stores.store import Game, Store
from bpac.stores.whole_game import read_whole

MOVED = "moved to "


class Moved(NamedTuple):
    """A game that was moved.

    Parameters
    ----------
    game: the game.
    router: its state.
    entries: how many entries its journal has in the store that it was moved to.
    head: of its hash chain, in both stores.
    new: the game that takes its place in the store that it was moved from; none if one begins with the next gateway.
    """

    game: Game
    router: Router
    entries: int
    head: str
    new: Game | None


def move_game(source: Place, target: str, number: int) -> Moved:
    """Move a game to another store; here it ends.

    Parameters
    ----------
    source: the store that it is in; no gateway plays the game.
    target: the other store: a SQLite file, which is made if it does not exist, or an address of Redis.
    number: of the game.
    """
    game = numbered(source.store, number)
    if not has_entries(source.store, game):
        raise InputError(f"game {number} has not begun: there is nothing to move")
    with closing(place_at(target)) as other:
        why, over = f"{MOVED}{other.name}", source.ending(game)
        if over not in (None, why):
            raise InputError(
                f"game {number} is over ({over}): it must not go on elsewhere. bpac export writes it to a file"
            )
        other.check_plays(folded(source.store, game).router)
        # An earlier call may have written it there, and it may have gone on since.
        there = over == why and _contains(other, game, source.store)
        if not there:
            _check_room(other, game)
        new = source.end(game, folded(source.store, game).router, why)
        # Read again: nothing is written to it from now on.
        state, head = folded(source.store, game), source.store.head(game)
        if not there:
            kept = {"router": state.router.snapshot(), "savings": asdict(state.savings)}
            other.adopt(read_whole(source.store, game, kept | {"history": state.history.state()}))
    # Opened again, as the next gateway does it.
    with closing(place_at(target)) as other:
        entries = sum(1 for _ in other.store.links(game))  # every entry is read along the hash chain
        if not there and other.store.head(game) != head:
            raise StoreError(f"game {number} in {other.name} is not the one in {source.name}: restore {other.name}")
    return Moved(game, state.router, entries, head.hex(), new)


def _contains(other: Place, game: Game, source: Store) -> bool:
    """Whether a journal elsewhere begins with the one here. Another game may have the same number and terms."""
    if game not in other.listed():
        return False
    head = source.head(game)
    archived = other.store.archived(game)
    return (archived is not None and archived.head == head) or any(
        link.head == head for link in other.store.links(game)
    )


def _check_room(other: Place, game: Game) -> None:
    taken = {one.number for one in other.listed()} | {loss.game for loss in other.store.losses()}
    if game.number in taken:
        raise InputError(
            f"{other.name} has another game {game.number}, and the number is part of the hash chain: move the game to "
            f"{other.elsewhere}, or begin a game there from its rounds (bpac export, bpac warm)"
        )
    if current(other.store, game.route, game.segment) is not None:
        name = f"{game.route} {game.segment}".rstrip()
        raise InputError(
            f"{other.name} has a game of {name} already, and two games cannot become one: bpac games merge"
        )
