"""A SQLite store that is only read, also while a gateway writes to it."""

import os
from collections.abc import Mapping
from contextlib import ExitStack, closing
from typing import Any

from bpac.errors import StoreError
from bpac.routing.journal.entries import Entry
from bpac.stores.private_files import place_of, refuse_link
from bpac.stores.sqlite.reading.checking import quoted
from bpac.stores.sqlite.reading.reading import UNREADABLE, SqliteReader
from bpac.stores.sqlite.recovery.causes import MOVED, cause_of
from bpac.stores.sqlite.writing.connecting import connect
from bpac.stores.sqlite.writing.migrations import HASH_CHAINS, check
from bpac.stores.store import Claim, CoinKey, Game


class ReadOnlySqliteStore(SqliteReader):
    """The journals in a SQLite file, to be read only.

    Parameters
    ----------
    path: the file.
    """

    def __init__(self, path: str) -> None:
        place = place_of(path)
        refuse_link(place)
        if not os.path.exists(place):
            raise StoreError(
                f"{place} does not exist: start the gateway first, or run this command in the directory where it was "
                "started",
                cause=MOVED.what,
                remedy=MOVED.remedy,
            )
        with ExitStack() as opened:
            try:
                reading = opened.enter_context(closing(connect(place, read_only=True)))
                version = check(reading, place)
                if version == 0:
                    raise StoreError(f"{place} is empty: no gateway has used it yet")
                if version < HASH_CHAINS:
                    raise StoreError(f"{place} is of an older version: start the gateway once, which upgrades it")
                super().__init__(place, reading)
            except UNREADABLE as error:
                cause = cause_of(error)
                raise StoreError(
                    f"{place} cannot be read as a store ({quoted(error)})", cause=cause.what, remedy=cause.remedy
                ) from error
            opened.pop_all()

    @property
    def failure(self) -> StoreError:
        """The reason why nothing can be written."""
        return StoreError(f"{self.path} is opened for reading only")

    def reopened(self) -> "ReadOnlySqliteStore":
        """Raise ``StoreError``."""
        raise self.failure

    def open_game(self, route: str, segment: str, terms: str) -> Game:
        """Raise ``StoreError``."""
        raise self.failure

    def resume(self, game: Game) -> None:
        """Raise ``StoreError``."""
        raise self.failure

    def append(self, game: Game, entry: Entry, note: Mapping[str, Any]) -> None:
        """Raise ``StoreError``."""
        raise self.failure

    def save_snapshot(self, game: Game, snapshot: Mapping[str, Any], claim: Claim) -> None:
        """Raise ``StoreError``."""
        raise self.failure

    def keep_key(self, game: Game, key: CoinKey) -> None:
        """Raise ``StoreError``."""
        raise self.failure

    async def durable(self) -> None:
        """Return at once: nothing is ever written."""

    def close(self) -> None:
        """Close the connection."""
        self._reading.close()
