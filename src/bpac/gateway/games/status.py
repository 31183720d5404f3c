"""Where games stand: the values behind ``/v1/status``, ``/metrics`` and ``bpac status``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpac.dashboard.history import History
from bpac.dashboard.state import State, state_of
from bpac.dashboard.unscored import UnscoredReport
from bpac.gateway.games.savings import SavingsReport
from bpac.routing.router import Router
from bpac.routing.summary import Summary
from bpac.stores.store import Game, LostEntries


@dataclass(frozen=True, slots=True)
class GameStatus:
    """Where one game stands.

    Parameters
    ----------
    game: the game in its store.
    summary: the summary of its router.
    state: whether it routes, in one word.
    unscored: the requests without a score.
    savings: what was spent and saved.
    """

    game: Game
    summary: Summary
    state: State
    unscored: UnscoredReport
    savings: SavingsReport

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values, without the name of the route."""
        return {
            "segment": self.game.segment,
            "game": self.game.number,
            **self.summary.to_json(),
            "state": self.state,
            "unscored": self.unscored.to_json(),
            "savings": self.savings.to_json(),
        }


def game_status(game: Game, router: Router, history: History, savings: SavingsReport) -> GameStatus:
    """Where a game stands.

    Parameters
    ----------
    game: the game in its store.
    router, history: its state.
    savings: what was spent and saved in it.
    """
    summary = router.summary()
    unscored = history.unscored.report(router.step)
    return GameStatus(game, summary, state_of(router, history, summary), unscored, savings)


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    """Where a running gateway stands.

    Parameters
    ----------
    routes: the games of each route.
    losses: journals that lost acknowledged entries.
    connections: open connections of callers.
    refused: requests that a limit or a check refused, by reason.
    """

    routes: Mapping[str, Sequence[GameStatus]]
    losses: Sequence[LostEntries]
    connections: int
    refused: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "routes": {name: [game.to_json() for game in games] for name, games in self.routes.items()},
            "losses": [loss._asdict() for loss in self.losses],
            "callers": {"connections": self.connections, "refused": dict(self.refused)},
        }
