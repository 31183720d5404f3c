"""Names of decisions, and the keys of the coins that make each of them its decision's own."""

import hashlib
import hmac

from bpac.routing.coins import key_digest
from bpac.stores.store import Game, Store


def decision_name(store: Store, game: Game, step: int) -> str:
    """The name of a decision, which nobody can guess and which no other decision ever has."""
    return f"dec-{game.number}-{step}-{_seal(store, game, step)}"


def read_name(text: str, store: Store) -> tuple[int, int] | None:
    """Game and step of a decision's name; none if this store never gave that name, or lost that decision."""
    parts = text.split("-")
    if len(parts) != 4 or parts[0] != "dec" or not all(part.isascii() and part.isdecimal() for part in parts[1:3]):
        return None
    if len(parts[1]) > 18 or len(parts[2]) > 18 or not parts[3].isascii():
        return None
    number, step = int(parts[1]), int(parts[2])
    game = next((game for game in store.games() if game.number == number), None)
    return (number, step) if game is not None and hmac.compare_digest(_seal(store, game, step), parts[3]) else None


def _seal(store: Store, game: Game, step: int) -> str:
    """What nobody can guess.

    With the commitment to the coins of that step: every start of a gateway makes a new one, so that a step which is
    decided again, because the end of the journal was lost, gets another name.
    """
    key = store.key(game, step)
    block = b"" if key is None else b"-" + key_digest(key.key).encode()
    return hashlib.blake2b(b"%d-%d%s" % (game.number, step, block), key=store.secret, digest_size=8).hexdigest()
