"""Everything that a store keeps of one game, so that another store can take it over."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from bpac.routing.journal.entries import Committed
from bpac.routing.journal.entry_lines import entry_from_json
from bpac.stores.encoding import encode
from bpac.stores.store import Archived, Claim, CoinKey, Game, Store


class WrittenEntry(NamedTuple):
    """An entry as it is written.

    Parameters
    ----------
    text: the entry, to the byte: the hash chain is computed over it.
    note: its note, as JSON.
    """

    text: str
    note: str


class WholeGame(NamedTuple):
    """A game that is moved.

    Parameters
    ----------
    game: the game; its number is part of the hash chain, and stays.
    archived: what takes the place of its first entries; none if it is complete.
    entries: the others, in order.
    keys: of the coins of their rounds.
    claims: what was claimed about it.
    snapshot: the state after the last entry, as JSON values; none for a game that has just begun.
    """

    game: Game
    archived: Archived | None
    entries: Iterator[WrittenEntry]
    keys: list[CoinKey]
    claims: list[Claim]
    snapshot: dict[str, Any] | None


def read_whole(store: Store, game: Game, snapshot: dict[str, Any]) -> WholeGame:
    """A game with everything that a store keeps of it.

    Parameters
    ----------
    store, game: where it is.
    snapshot: the state after its last entry.
    """
    archived = store.archived(game)
    blocks = [] if archived is None or not archived.block else [entry_from_json(archived.block)]
    blocks += [stored.entry for stored in _stored(store, game, archived) if isinstance(stored.entry, Committed)]
    keys = [store.key(game, block.first_step) for block in blocks if isinstance(block, Committed)]
    pairs = zip(store.links(game), _stored(store, game, archived), strict=True)
    written = (WrittenEntry(link.text, encode(stored.note)) for link, stored in pairs)
    return WholeGame(game, archived, written, [key for key in keys if key is not None], store.claims(game), snapshot)


def _stored(store: Store, game: Game, archived: Archived | None) -> Any:
    return store.entries(game, 0 if archived is None else archived.entries)
