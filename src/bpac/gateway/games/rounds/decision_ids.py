"""Ids of decisions (``dec-GAME-STEP-SEAL``), and the keys of the coins, which make each id unique."""

import hashlib
import hmac

from bpac.routing.coins import key_digest
from bpac.stores.store import Game, Store


def decision_id(store: Store, game: Game, step: int) -> str:
    """The id of a decision, which cannot be guessed and which no other decision ever has."""
    return f"dec-{game.number}-{step}-{_seal(store, game, step)}"


def id_with_key(secret: bytes, game: Game, step: int, key: bytes) -> str:
    """The same id, where the key of the step's coin is at hand.

    Parameters
    ----------
    secret: of the store.
    game, step: the decision.
    key: of its coin.
    """
    return f"dec-{game.number}-{step}-{_sealed(secret, game, step, key)}"


def read_decision_id(text: str, store: Store) -> tuple[int, int] | None:
    """The number of the game and the step in a decision's id; none if this store never issued it, or lost it."""
    found = _named(text, store)
    if found is None:
        return None
    game, step, seal = found
    return (game.number, step) if hmac.compare_digest(_seal(store, game, step), seal) else None


def is_unreadable(text: str, store: Store) -> bool:
    """Whether an id cannot be checked any more: the key of its coin was removed with the entries that were archived."""
    found = _named(text, store)
    if found is None:
        return False
    game, step, _ = found
    return step > 0 and store.archived(game) is not None and store.key(game, step) is None


def _named(text: str, store: Store) -> tuple[Game, int, str] | None:
    """The game, the step and the seal that a text names, if it looks like an id."""
    parts = text.split("-")
    if len(parts) != 4 or parts[0] != "dec" or not all(part.isascii() and part.isdecimal() for part in parts[1:3]):
        return None
    if len(parts[1]) > 18 or len(parts[2]) > 18 or not parts[3].isascii():
        return None
    number, step = int(parts[1]), int(parts[2])
    game = next((game for game in store.games() if game.number == number), None)
    return None if game is None else (game, step, parts[3])


def _seal(store: Store, game: Game, step: int) -> str:
    """The part of an id that cannot be guessed.

    It depends on the commitment to the coins of the step. Each start of a gateway makes a new commitment, so a step
    that is decided again, because the end of the journal was lost, gets another id.
    """
    key = store.key(game, step)
    return _sealed(store.secret, game, step, None if key is None else key.key)


def _sealed(secret: bytes, game: Game, step: int, key: bytes | None) -> str:
    block = b"" if key is None else b"-" + key_digest(key).encode()
    return hashlib.blake2b(b"%d-%d%s" % (game.number, step, block), key=secret, digest_size=8).hexdigest()
