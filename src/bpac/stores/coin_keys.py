"""The secret keys of a game's coins, kept in its store."""

from dataclasses import dataclass

from bpac.stores.store import CoinKey, Game, Store


@dataclass(frozen=True, slots=True)
class CoinKeys:
    """Keeps the keys of a game's coins in its store, for ``CommittedCoins``.

    Parameters
    ----------
    store, game: where they are kept.
    """

    store: Store
    game: Game

    def __setitem__(self, first_step: int, key: bytes) -> None:
        self.store.keep_key(self.game, CoinKey(first_step, key))
