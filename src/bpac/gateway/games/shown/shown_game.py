"""What status, dashboard, metrics and feedback read of a game, wherever its journal is written.

A game of this process (``LiveGame``) is one. So is a copy that follows a journal which another process writes.
"""

from typing import Any, Protocol

from bpac.dashboard.history.history import History
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.money.savings import Savings
from bpac.gateway.games.rounds.reported import Reported
from bpac.gateway.games.shown.status import GameStatus
from bpac.gateway.games.shown.troubles import GameTrouble
from bpac.routing.router import Router
from bpac.stores.store import Game, Store


class ShownSessions(Protocol):
    """The sessions of a game."""

    def to_json(self) -> dict[str, Any]:
        """What the status says of them."""


class ShownGame(Protocol):
    """One game, to be read and left as it is."""

    @property
    def number(self) -> int:
        """The number of the game in its store."""

    @property
    def store(self) -> Store:
        """Where the journal is kept, for reading."""

    @property
    def kept(self) -> Game:
        """The game in its store."""

    @property
    def written(self) -> int:
        """A number that changes with every entry of the journal."""

    @property
    def route(self) -> RouteSettings:
        """The settings of the route."""

    @property
    def segment(self) -> str:
        """The segment of the traffic; empty if the route is not divided."""

    @property
    def router(self) -> Router:
        """The state after the last entry."""

    @property
    def history(self) -> History:
        """What the dashboard shows of the past."""

    @property
    def savings(self) -> Savings:
        """What was spent and saved."""

    @property
    def sessions(self) -> ShownSessions:
        """Its sessions, which are sticky or not."""

    @property
    def score_trouble(self) -> GameTrouble | None:
        """What is wrong with the latest scores; none if nothing is known to be."""

    def decision_id(self, step: int) -> str:
        """The id of a decision, which cannot be guessed and which no other decision ever has."""

    def status(self) -> GameStatus:
        """Where the game stands."""

    def answers(self, step: int) -> dict[str, str] | None:
        """Both answers of a round that waits for feedback; none if they are not kept."""

    async def feedback(self, step: int, reported: Reported) -> None:
        """Record what is reported from outside; ``ObservationError`` or ``InputError`` if it does not fit."""
