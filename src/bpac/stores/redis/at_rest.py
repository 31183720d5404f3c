"""Games in Redis that no gateway plays, so that a command may change them."""

import time
from typing import Any

from bpac.errors import StoreError, StoreInUse
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Game


def check_at_rest(store: RedisStore, game: Game) -> str:
    """Raise ``StoreInUse`` while a gateway plays a game; what was noted of gateways that died.

    Parameters
    ----------
    store, game: where it is.
    """
    names, command = store.of(game), store.client.command
    beats = command("HGETALL", names.replicas)
    if beats:
        # Replicas that died are still listed; those that live count on.
        time.sleep(store.address.lease)
        if command("HGETALL", names.replicas) != beats:
            raise _played(game)
    last = command("XREVRANGE", names.inbox, "+", "-", "COUNT", 1)
    if last and last[0][0] != command("HGET", names.state, "folded"):
        raise _behind(game)
    words: list[Any] = [word for pair in beats.items() for word in pair] if isinstance(beats, dict) else beats
    return " ".join(word.decode() for word in words)


def retire(store: RedisStore, game: Game, why: str) -> None:
    """End a game that goes on elsewhere; nothing happens if it was ended for the same reason before.

    Parameters
    ----------
    store, game: where it is.
    why: what gateways and commands say of it from now on.
    """
    names = store.of(game)
    if store.over(game) == why:
        return
    dead = check_at_rest(store, game)
    status = store.client.run("retire", [names.state, names.inbox, names.replicas], why, dead).decode()
    if status == "played":
        raise _played(game)
    if status == "behind":
        raise _behind(game)
    if status == "half":
        raise StoreError(
            f"game {game.number} is half written, because a script failed in its middle: start a gateway, which ends "
            "it and begins a new one"
        )
    if status:
        raise StoreError(f"game {game.number} is over ({store.over(game)})")


def _played(game: Game) -> StoreInUse:
    return StoreInUse(f"gateways are playing game {game.number}: stop all of them, or some would go on with it")


def _behind(game: Game) -> StoreError:
    return StoreError(
        f"game {game.number} has rounds that are decided and not in its journal: start a gateway, which folds them, "
        "and stop it again"
    )
