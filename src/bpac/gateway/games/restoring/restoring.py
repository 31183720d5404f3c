"""Restoring a game after a restart: from its journal, or from its latest snapshot and the entries after it."""

import logging
from collections.abc import Container, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, NamedTuple, Protocol

from bpac.dashboard.history.history import History, Tokens
from bpac.errors import SnapshotError, StoreError
from bpac.gateway.games.money.savings import Savings
from bpac.gateway.games.terms import changes, is_switch
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.coins import Coins
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved
from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.journal.snapshot import load_snapshot, take_snapshot
from bpac.routing.route import Route
from bpac.routing.router import Router, Write
from bpac.stores.store import Archived, Game, Store, StoredEntry

log = logging.getLogger("bpac.gateway")


class CurrentGame(NamedTuple):
    """The game that the traffic of a segment belongs to.

    Parameters
    ----------
    game: the game in the store.
    is_new: whether it was opened just now; its journal is still empty.
    """

    game: Game
    is_new: bool


def current_game(store: Store, route: str, segment: str, terms: str, open_terms: Container[str] = ()) -> CurrentGame:
    """The latest game of a segment with these terms if it can go on, or a new one.

    A game that was left for other terms goes on when its terms are in force again. Its journal is complete, so its
    wealth is that of its own rounds; the requests in between were rounds of another game. Which requests become rounds
    of a game was decided before they came, so the wealth stays a supermartingale.

    Parameters
    ----------
    store: where journals are kept.
    route, segment: the names of the route and of the segment.
    terms: what the promise is about; a game with other terms does not go on.
    open_terms: names of terms in which a game that goes on may differ (default: none).
    """
    games = [game for game in store.games() if game.segment == segment and game.route == route]
    latest = games[-1] if games else None
    found = next((game for game in reversed(games) if not changes(game.terms, terms, open_terms)), None)
    about = {"route": route, "segment": segment}
    lost = next((loss for loss in store.losses() if found is not None and loss.game == found.number), None)
    changed = [] if latest is None or latest is found else changes(latest.terms, terms, open_terms)
    why = "; ".join(map(str, changed))
    if found is not None and lost is None and has_entries(store, found):
        if found is not latest:
            store.resume(found)
            log.warning("terms changed: game %d, which has these terms, goes on (%s)", found.number, why, extra=about)
        return CurrentGame(found, is_new=False)
    if lost is not None:
        # What was served in the missing rounds is not known, so the old wealth proves nothing.
        log.error(
            "the journal lost entries: a new game begins with a threshold of 0", extra={**about, "lost": str(lost)}
        )
    elif changed:
        log.warning("terms changed: a new game begins (%s)", why, extra=about)
    return CurrentGame(store.open_game(route, segment, terms), is_new=True)


def rounds_before(store: Store, game: Game) -> int:
    """The rounds of the longest earlier game of the same segment: as many are expected of a new one."""
    games = [one for one in store.games() if one.segment == game.segment and one.route == game.route]
    return max((_rounds_of(store, one) for one in games if one != game), default=0)


def _rounds_of(store: Store, game: Game) -> int:
    try:
        latest = store.rounds(game, limit=1)
        archived = None if latest else store.archived(game)
    except StoreError:
        return 0  # a damaged journal of a game that is over must not keep another one from starting
    if latest and isinstance(latest[0].decided.entry, Decision):
        return latest[0].decided.entry.step
    return 0 if archived is None else int(archived.snapshot["router"]["state"]["step"])


@dataclass(slots=True)
class Folded:
    """The state that follows from a journal.

    Parameters
    ----------
    router, savings, history: after the last entry.
    since_snapshot: the number of entries after the snapshot that was used, or of all entries.
    """

    router: Router
    savings: Savings
    history: History
    since_snapshot: int


def folded(store: Store, game: Game, journal: Write | None = None, coins: Coins | None = None) -> Folded:
    """The state that follows from the journal of a game, from its latest snapshot on if that can be used.

    Parameters
    ----------
    store, game: where the journal is; it must not be empty.
    journal: called with every entry that the router writes from now on; none if it only reports.
    coins: for the decisions to come.
    """
    try:
        snapshot = store.snapshot(game)
        if snapshot is not None:
            return _from_snapshot(store, game, journal, coins, snapshot)
    except (SnapshotError, KeyError, TypeError, ValueError, IndexError) as error:
        log.warning("snapshot unusable: reading the whole journal", extra={"error": repr(error)})
    route, savings, history, count = _from_journal(store, game)
    return Folded(_router(take_snapshot(route), journal, coins), savings, history, count)


def has_entries(store: Store, game: Game) -> bool:
    """Whether a journal has entries; a game that was just opened has none."""
    return store.head(game) != game.head


class OneJournal(Protocol):
    """The part of a store that a journal is read from."""

    def archived(self, game: Game) -> Archived | None:
        """The first entries that were cut from the store."""

    def entries(self, game: Game, after: int = 0) -> Iterator[StoredEntry]:
        """The entries in order, without the first ``after``."""


def state_after(store: OneJournal, game: Game, entries: int | None = None) -> dict[str, Any]:
    """What a snapshot after some entries of a journal would be, computed from the journal.

    Parameters
    ----------
    store, game: where the journal is.
    entries: how many, at least as many as are archived (default: all).
    """
    route, savings, history, _ = _from_journal(store, game, entries)
    return {"router": take_snapshot(route), "savings": asdict(savings), "history": history.state()}


def _from_journal(store: OneJournal, game: Game, upto: int | None = None) -> tuple[Route, Savings, History, int]:
    """The state after all entries up to a number, and how many were read: without those that are archived."""
    archived = store.archived(game)
    if archived is not None:
        savings, history = _loaded(archived.snapshot)
        route, rest = load_snapshot(archived.snapshot["router"]), store.entries(game, archived.entries)
        count = 0
    else:
        rest = store.entries(game)
        first = next(rest)
        savings, history, route = Savings(), History(switch=is_switch(game.terms)), opened(first.entry)
        savings.add(*first)
        count = 1
    count += _follow(route, savings, history, rest if upto is None else islice(rest, upto - route.entries))
    return route, savings, history, count


def _loaded(snapshot: dict[str, Any]) -> tuple[Savings, History]:
    return Savings.from_json(snapshot["savings"]), History.load(snapshot["history"])


def _from_snapshot(
    store: Store, game: Game, journal: Write | None, coins: Coins | None, snapshot: dict[str, Any]
) -> Folded:
    savings, history = _loaded(snapshot)
    kept: dict[str, Any] = snapshot["router"]
    route = load_snapshot(kept)
    if history.step != route.step:
        raise SnapshotError(f"the history ends at step {history.step}, and the router at step {route.step}")
    count = _follow(route, savings, history, store.entries(game, kept["entries"]))
    return Folded(_router(take_snapshot(route) if count else kept, journal, coins), savings, history, count)


def _follow(route: Route, savings: Savings, history: History, entries: Iterator[StoredEntry]) -> int:
    """Apply entries as they were applied when they were written, and count them."""
    count, tokens = 0, tokens_of(savings)
    for entry, note in entries:
        savings.add(entry, note)
        # The decision of an outcome is looked up before the outcome is applied: afterwards the route has forgotten it.
        decision = route.find(entry.step) if isinstance(entry, Resolved) else None
        follow(route, [entry])
        if isinstance(entry, Decision):
            history.decided(entry, note.get("at", 0.0), route, tokens)
        elif isinstance(entry, Resolved) and decision is not None:
            history.resolved(decision, route.settings.epsilon if entry.refused else entry.loss)
        history.written(entry, note, route.epoch)
        count += 1
    return count


def tokens_of(savings: Savings) -> Tokens:
    """A function for histories: the tokens spent so far, and those that always asking the expert would have spent."""

    def tokens() -> tuple[float, float]:
        asked = savings.experts.completion
        spent = savings.drafts.completion + asked + savings.judges.completion
        return spent, asked + savings.unseen.estimate

    return tokens


def _router(snapshot: dict[str, Any], journal: Write | None, coins: Coins | None) -> Router:
    kind = CascadeRouter if snapshot["settings"]["policy"].get("kind") == "Cascade" else Router
    return kind.rebuild([], snapshot=snapshot, coins=coins, journal=journal)
