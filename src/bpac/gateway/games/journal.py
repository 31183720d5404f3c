"""The journal of a live game: every entry goes to the store with its note before it takes effect.

What follows from the entries is kept beside them: the router, the savings and the history. Snapshots of the three let a
later start read only the entries after the latest one.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bpac.dashboard.history.history import History
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.money.savings import Savings
from bpac.gateway.games.restoring.restoring import current_game, folded, rounds_before
from bpac.gateway.games.terms import terms_of
from bpac.routing.coins import CommittedCoins
from bpac.routing.journal.entries import Entry, Opened, Started, Withdrawn
from bpac.stores.coin_keys import CoinKeys
from bpac.stores.store import Claim, Store


class GameJournal:
    """The journal of one game, restored from the store or new.

    Parameters
    ----------
    store: where the journal is kept.
    route: the settings of the route.
    segment: the segment of the traffic; empty if the route is not divided.
    alpha: the probability with which the promise may fail in this game.
    snapshot_every: entries between two snapshots.

    Attributes
    ----------
    game: the game in the store.
    router, savings, history: the state after the last entry.
    written: the number of entries that this process wrote.
    """

    def __init__(self, store: Store, route: RouteSettings, segment: str, alpha: float, snapshot_every: int) -> None:
        self.store = store
        self._snapshot_every = snapshot_every
        self._since_snapshot = 0
        self.written = 0
        self.savings = Savings()
        self.history = History(switch=route.is_switch)
        terms = terms_of(route, route.new_router(alpha))
        found = current_game(store, route.name, segment, terms, route.open_terms)
        self.game = found.game
        coins = CommittedCoins(CoinKeys(store, self.game))
        if found.is_new:
            self.router = route.new_router(alpha, self._write_for_router, coins)
        else:
            state = folded(store, self.game, self._write_for_router, coins)
            self.router, self.savings, self.history = state.router, state.savings, state.history
            self._since_snapshot = state.since_snapshot
        if not self.router.step and (rounds := rounds_before(store, self.game)) > self.router.expected.rounds:
            # A new game of a route that has much traffic may make more audits, because they pay for longer.
            self.router.expect(**self.router.expected._replace(rounds=rounds)._asdict())

    def go_on_under(self, snapshot_every: int) -> None:
        """Use another number of entries between two snapshots from now on."""
        self._snapshot_every = snapshot_every

    def write(self, entry: Entry, note: Mapping[str, Any], epoch: int = 0) -> None:
        """Append an entry to the journal.

        Parameters
        ----------
        entry: what was decided, or what came of it.
        note: what is worth knowing about it without being part of the game: its time, counts of tokens.
        epoch: the epoch of the router, for entries about tickets (default: of no interest).
        """
        note = self.savings.with_late_tokens(note)
        self.store.append(self.game, entry, note)
        self.savings.add(entry, note)
        self.history.written(entry, note, epoch)
        self._since_snapshot += 1
        self.written += 1

    def _write_for_router(self, entry: Entry) -> None:
        """Append an entry that the router writes by itself: about tickets, or a commitment to coins."""
        note: dict[str, Any] = {}
        if isinstance(entry, Withdrawn):
            note = {"at": now()}
        elif isinstance(entry, Started) and (cut_off := len(self.router.under_way)):
            note = {"at": now(), "cut_off": cut_off}
        self.write(entry, note, 0 if isinstance(entry, Opened) else self.router.epoch)  # it opens the router itself

    def snapshot_if_due(self) -> None:
        """Take a snapshot if enough entries were written since the last one; router and history must agree."""
        if self._since_snapshot >= self._snapshot_every:
            self.snapshot()

    def snapshot(self) -> None:
        """Take a snapshot, with what it claims about the game for auditors, unless nothing has changed."""
        if self._since_snapshot or self.savings.has_late:
            self._since_snapshot = 0
            router = self.router.snapshot()
            claim = Claim.of(self.router, router["entries"])
            state = {"router": router, "savings": asdict(self.savings), "history": self.history.state()}
            self.store.save_snapshot(self.game, state, claim)


def now() -> float:
    """Seconds since 1970, to the millisecond."""
    return round(time.time(), 3)
