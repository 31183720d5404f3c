"""The list of games on the dashboard: of thousands, those that an operator looks for, and all of them by route.

Computing what a game shows takes up to a millisecond, so it is kept until the game's journal has another entry: only
the games that had traffic since the last request are computed again.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from bpac.dashboard.verdict import URGENCY
from bpac.gateway.games.shown.search import whole_number
from bpac.gateway.games.shown.shown_game import ShownGame
from bpac.gateway.http.bad_request import BadRequest
from bpac.wire.json import to_json

# Games in a response.
MOST_GAMES = 200
# Games that are computed before other requests have their turn.
AT_ONCE = 4
# A search is for a part of a name, and names have at most 200 characters.
LONGEST_SEARCH = 300


class GameRow(NamedTuple):
    """A game in the list.

    Parameters
    ----------
    game, route, segment: its number and its names.
    unit: what a round of it is.
    level: the level of its verdict.
    steps, expert_calls, tokens_saved, average_upper, unscored: as in its document.
    body: its short document, as JSON.
    """

    game: int
    route: str
    segment: str
    unit: str
    level: str
    steps: int
    expert_calls: int
    tokens_saved: float
    average_upper: float
    unscored: int
    body: bytes


# Keys by which the list is sorted; the largest first, except names and levels.
SORTS: Mapping[str, Callable[[GameRow], Any]] = {
    "urgency": lambda row: (URGENCY.index(row.level), -row.steps),
    "name": lambda row: (row.route, row.segment.casefold(), row.segment),
    "loss": lambda row: -row.average_upper,
    "expert_calls": lambda row: -(row.expert_calls / row.steps if row.steps else -1.0),
    "saved": lambda row: -row.tokens_saved,
    "requests": lambda row: -row.steps,
    "unscored": lambda row: -row.unscored,
}


@dataclass(frozen=True, slots=True)
class GameListQuery:
    """Which games are listed, and in which order.

    Parameters
    ----------
    search: part of the name of the route or the segment, in any case (default: empty, all).
    route: the name of the route (default: empty, all).
    level: the level of the verdict (default: empty, any).
    sort: one of ``SORTS`` (default: urgency).
    reverse: whether the order is reversed (default: false).
    offset: how many games to skip (default: 0).
    limit: the largest number of games (default: 200).
    """

    search: str = ""
    route: str = ""
    level: str = ""
    sort: str = "urgency"
    reverse: bool = False
    offset: int = 0
    limit: int = MOST_GAMES

    @classmethod
    def read(cls, parameters: Mapping[str, str], most: int = MOST_GAMES) -> "GameListQuery":
        """The query in the parameters of a URL, or ``BadRequest`` with the parameter that is wrong."""
        for name, choices in {"level": URGENCY, "sort": tuple(SORTS), "reverse": ("0", "1")}.items():
            if parameters.get(name) and parameters[name] not in choices:
                raise BadRequest(f"{name} must be one of {', '.join(choices)}", 422, name, "invalid_value")
        if len(parameters.get("search", "")) > LONGEST_SEARCH:
            raise BadRequest(f"search must have at most {LONGEST_SEARCH} characters", 422, "search", "too_long")
        return cls(
            search=parameters.get("search", ""),
            route=parameters.get("route", ""),
            level=parameters.get("level", ""),
            sort=parameters.get("sort") or "urgency",
            reverse=parameters.get("reverse") == "1",
            offset=whole_number(parameters, "offset", 0) if parameters.get("offset") else 0,
            limit=min(most, whole_number(parameters, "limit", 1) if parameters.get("limit") else most),
        )

    def find(self, rows: Iterable[GameRow]) -> list[GameRow]:
        """The games that match, in order, without regard to offset and limit."""
        wanted = self.search.casefold()
        found = [
            row
            for row in rows
            if wanted in f"{row.route} / {row.segment}".casefold()
            and self.route in ("", row.route)
            and self.level in ("", row.level)
        ]
        # Of equal games, the older first in either order.
        found.sort(key=lambda row: row.game)
        return sorted(found, key=SORTS[self.sort], reverse=self.reverse)


class GameList:
    """The rows of all games, each computed when its game has changed.

    Parameters
    ----------
    document_of: the short document of a game.
    """

    def __init__(self, document_of: Callable[[ShownGame], dict[str, Any]]) -> None:
        self._document_of = document_of
        self._kept: WeakKeyDictionary[ShownGame, tuple[int, GameRow]] = WeakKeyDictionary()

    async def rows(self, games: Iterable[ShownGame]) -> list[GameRow]:
        """The rows of games."""
        found, computed = [], 0
        for game in games:
            written = game.written
            kept = self._kept.get(game)
            if kept is None or kept[0] != written:
                kept = written, _row(self._document_of(game))
                self._kept[game] = kept
                computed += 1
                if not computed % AT_ONCE:
                    await asyncio.sleep(0)  # requests under way come first
            found.append(kept[1])
        return found


def routes_document(rows: Iterable[GameRow]) -> list[dict[str, Any]]:
    """The games of each route together, in the order of the routes, as JSON values."""
    routes: dict[str, dict[str, Any]] = {}
    levels: dict[str, Counter[str]] = {}
    for row in rows:
        empty = {"games": 0, "steps": 0, "expert_calls": 0, "tokens_saved": 0.0, "unscored": 0}
        total = routes.setdefault(row.route, {"route": row.route, "unit": row.unit, **empty})
        total["games"] += 1
        for name in ("steps", "expert_calls", "tokens_saved", "unscored"):
            total[name] += getattr(row, name)
        levels.setdefault(row.route, Counter())[row.level] += 1
    return [{**total, "levels": dict(levels[route])} for route, total in routes.items()]


def _row(document: dict[str, Any]) -> GameRow:
    return GameRow(
        document["game"],
        document["route"],
        document["segment"],
        document["unit"],
        document["verdict"]["level"],
        document["steps"],
        document["expert_calls"],
        document["savings"]["tokens_saved"],
        document["certificate"]["average_upper"],
        document["unscored"]["requests"],
        to_json(document),
    )
