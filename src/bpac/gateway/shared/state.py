"""What follows from the journal of a shared game: the state of its router, the savings and the history."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bpac.dashboard.history.history import History
from bpac.gateway.games.money.savings import Savings
from bpac.gateway.games.restoring.restoring import tokens_of
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Opened, Resolved
from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.journal.snapshot import load_snapshot, take_snapshot
from bpac.routing.route import Route
from bpac.routing.router import Router
from bpac.stores.redis.folding.fold import Owners


class SharedState:
    """The state after some entries.

    Parameters
    ----------
    route, savings, history: after these entries.
    owners: the replicas that wait for outcomes, by step.
    """

    def __init__(self, route: Route, savings: Savings, history: History, owners: Mapping[int, str]) -> None:
        self.route = route
        self.router: Router = (CascadeRouter if route.stages else Router).showing(route)
        self.savings = savings
        self.history = history
        self.owners = Owners(owners)
        self._tokens = tokens_of(savings)

    def apply(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Apply the next entry, as it was applied when it was written."""
        route = self.route
        self.savings.add(entry, note)
        # Looked up before the outcome is applied: afterwards the route has forgotten it.
        decision = route.find(entry.step) if isinstance(entry, Resolved) else None
        follow(route, [entry])
        if isinstance(entry, Decision):
            self.history.decided(entry, note.get("at", 0.0), route, self._tokens)
        elif isinstance(entry, Resolved) and decision is not None:
            self.history.resolved(decision, route.settings.epsilon if entry.refused else entry.loss)
        self.history.written(entry, note, route.epoch)
        self.owners.apply(entry, note)

    def snapshot(self) -> dict[str, Any]:
        """All of it as JSON values."""
        state = {"router": take_snapshot(self.route), "savings": asdict(self.savings), "history": self.history.state()}
        return state | {"owners": self.owners.state()}


class SharedRestoring:
    """Makes states to start from.

    Parameters
    ----------
    switch: whether the game asks if the draft's model may replace the expert (default: false).
    """

    def __init__(self, *, switch: bool = False) -> None:
        self._switch = switch

    def new(self, entry: Opened) -> SharedState:
        """The state after the first entry of a journal."""
        state = SharedState(opened(entry), Savings(), History(switch=self._switch), {})
        state.savings.add(entry, {})
        return state

    def load(self, snapshot: dict[str, Any]) -> SharedState:
        """The state that a snapshot contains."""
        savings, history = Savings.from_json(snapshot["savings"]), History.load(snapshot["history"])
        return SharedState(load_snapshot(snapshot["router"]), savings, history, dict(snapshot["owners"]))
