"""Routers that survive their process: ``bpac.open``.

1. The journal is in one SQLite file, the same store that the gateway uses.
2. Every decision and every outcome is committed to the file before the call that made it returns. What the caller then
   serves is therefore never forgotten, whatever happens to the process.
3. Opening the file again gives the same router: same threshold, same wealth, same audits that wait for their outcome.
4. Coins come from secret keys whose digests are in the journal before their first use, as in the gateway, so that an
   exported journal can be checked with ``bpac audit``.
5. One process owns the file at a time, and a process that was forked does not own it.
6. Until the router is closed, the files beside it (``-wal``, ``.head``) belong to it. A copy of the first file alone
   lacks the latest rounds, and is refused.
"""

import json
import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

from bpac.errors import InputError, SettingsError, SnapshotError, StoreError
from bpac.routing.cascade.walk import Walk
from bpac.routing.coins import CommittedCoins
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Labelled, Opened
from bpac.routing.learning.features import Features
from bpac.routing.router import Router
from bpac.routing.settings import Settings
from bpac.routing.tickets.ticket import Ticket
from bpac.stores.coin_keys import CoinKeys
from bpac.stores.export import journal_lines
from bpac.stores.sqlite.store import SqliteStore
from bpac.stores.store import Claim, Game

# The name of the game in the file, where a gateway would have the name of a route.
ROUTE = "router"
# Decisions between two snapshots, so that opening the file after a crash need not read the whole journal.
SNAPSHOT_EVERY = 1000


class SavedRouter(Router):
    """A router whose journal is in a file. Make one with ``bpac.open``; close it, or use it in a ``with`` block."""

    _store: SqliteStore
    _game: Game
    _next_snapshot = 0
    # Closes the store, also when the router is forgotten without being closed.
    _release: Callable[[], object]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def decide(
        self,
        uncertainty: float | Mapping[str, float] | Walk,
        *,
        ticket: Ticket | None = None,
        features: Features | None = None,
    ) -> Decision:
        """Decide for a query; the decision is in the file when this returns.

        Parameters
        ----------
        uncertainty, ticket, features: as for ``Router.decide``.
        """
        decision = super().decide(uncertainty, ticket=ticket, features=features)
        if decision.step >= self._next_snapshot:
            # The decision stands in the file. If the file fails now, the next call raises the error.
            with suppress(StoreError):
                self.save_snapshot()
        return decision

    def close(self) -> None:
        """Release the file. Audits that wait for their outcome can be reported after the next opening."""
        # With the lock: another thread may be deciding.
        with self._lock:
            try:
                if self._store.failure is None and not self._lock.busy:
                    self.stop()
                    self.save_snapshot()
            finally:
                self._release()

    def _learn(self, rows: list[Labelled]) -> None:
        if self.labelled:
            raise InputError(
                f"{self._store.path} has {self.labelled} rows of history already, and rows that are fed twice would "
                "count twice: ask router.labelled before a warm start"
            )
        with self._store.together():
            super()._learn(rows)

    def save_snapshot(self) -> None:
        """Write the state to the file, so that the next opening is quick. ``close`` and ``decide`` also do it."""
        with self._lock:
            self._next_snapshot = self.step + SNAPSHOT_EVERY
            snapshot = self.snapshot()
            self._store.save_snapshot(self._game, {"router": snapshot}, Claim.of(self, snapshot["entries"]))

    def exported(self) -> Iterator[str]:
        """The journal as lines of JSON, for ``bpac audit`` and for ``bpac.read_journal``."""
        return journal_lines(self._store, self._game)


def open_router(path: str | os.PathLike[str], epsilon: float | None = None, **settings: Any) -> SavedRouter:
    """The router in a file; a new one if the file holds none yet.

    Parameters
    ----------
    path: the file.
    epsilon: limit on the loss (ε). Needed for a new router.
    settings: further settings, as ``Router`` takes them. For a router that exists, ``epsilon`` and these must be the
        ones it was made with, or be left out: other settings are another promise, which needs a file of its own.

    >>> import tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> path = f"{directory.name}/router.db"
    >>> with open_router(path, epsilon=0.05) as router:
    ...     decision = router.decide(0.3)
    >>> with open_router(path) as router:
    ...     router.step, router.owed == (decision,)
    (1, True)
    >>> directory.cleanup()
    """
    given_by_file = {"seed", "coins", "journal"} & settings.keys()
    if given_by_file:
        raise SettingsError(f"{', '.join(sorted(given_by_file))} cannot be set: coins and journal are kept in the file")
    if epsilon is None and settings:
        raise SettingsError("give epsilon together with the other settings, or leave all of them out")
    wanted = None if epsilon is None else Router(epsilon, **settings).settings
    if wanted is None and not os.path.exists(path):
        raise SettingsError(f"{os.fspath(path)} does not exist: give epsilon to start a new router in it")
    store = SqliteStore(os.fspath(path), commit_each=True)
    try:
        return _opened(store, wanted)
    except BaseException:
        store.close()
        raise


def _opened(store: SqliteStore, wanted: Settings | None) -> SavedRouter:
    lost = store.losses()
    if lost:
        raise StoreError(
            f"{store.path}: {lost[0]}. A router cannot go on without them: restore the file from a copy, or start a "
            "new router in another file"
        )
    if not store.end_is_known:
        raise StoreError(
            f"{store.path} was copied or moved without {store.path}.head, so it is not known whether the journal is "
            "complete: put that file beside it, or start a new router in another file"
        )
    games = store.games()
    if len(games) > 1 or any(game.route != ROUTE for game in games):
        raise StoreError(f"{store.path} holds the journals of a gateway, not of one router: give another file")
    if games:
        router = _restored(store, games[0])
        if wanted is not None and not wanted.covers(router.settings):
            raise SettingsError(
                f"{store.path} holds a router with other settings: {_difference(router.settings, wanted)}. Open it "
                "without settings to go on with it, or give another file for another promise"
            )
        return router
    if wanted is None:
        raise SettingsError(f"{store.path} holds no router yet: give epsilon to start a new one")
    settings = wanted.to_json()
    with store.together():
        game = store.open_game(ROUTE, "", json.dumps(settings))
        store.append(game, Opened(settings), {})
    store.checkpoint()
    return _restored(store, game)


def _restored(store: SqliteStore, game: Game) -> SavedRouter:
    try:
        kept = store.snapshot(game)
        snapshot = kept and kept["router"]
        entries = store.entries(game, snapshot["entries"] if snapshot else 0)
        router = _rebuilt(store, game, entries, snapshot)
    except (SnapshotError, KeyError, TypeError):
        # The journal is the truth; a snapshot only saves time.
        router = _rebuilt(store, game, store.entries(game), None)
    return router


def _rebuilt(store: SqliteStore, game: Game, entries: Iterator[Any], snapshot: Any) -> SavedRouter:
    router = SavedRouter.rebuild(
        (kept.entry for kept in entries),
        snapshot=snapshot,
        coins=CommittedCoins(CoinKeys(store, game)),
        journal=partial(store.append, game, note={}),
    )
    router._store, router._game, router._next_snapshot = store, game, router.step + SNAPSHOT_EVERY
    router._release = weakref.finalize(router, store.close)
    return router


def _difference(kept: Settings, wanted: Settings) -> str:
    ours, theirs = kept.to_json(), wanted.to_json()
    differing = (name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name))
    return ", ".join(f"{name} is {ours.get(name)!r}, not {theirs.get(name)!r}" for name in differing)
