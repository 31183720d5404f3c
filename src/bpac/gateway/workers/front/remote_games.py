"""The games of a route, by segment, in a front: the owner has them open."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.segment_names import Caller, segment_of, task_of
from bpac.gateway.workers.front.owner_link import OwnerLink
from bpac.gateway.workers.front.remote_desk import GameFacts, RemoteDesk

# Names of segments whose game is remembered; callers may send any number of names.
MOST_NAMES = 4096


@dataclass(slots=True)
class Generation:
    """The number that the owner knows a configuration by.

    Parameters
    ----------
    number: the number; 0 if the owner does not know it any more.
    """

    number: int


class RemoteGames:
    """The games of a route that the owner has open, by segment.

    Parameters
    ----------
    link: the connection to the owner.
    route: the settings of the route.
    generation: the number of the configuration in the owner.
    opened: called with each game when it is used for the first time.
    timed: called with the seconds that each decision took.
    """

    def __init__(
        self,
        link: OwnerLink,
        route: RouteSettings,
        generation: Generation,
        *,
        opened: Callable[[RemoteDesk], None],
        timed: Callable[[float], None],
    ) -> None:
        self._call_opened = opened
        self._timed = timed
        self._link = link
        self._route = route
        self._generation = generation
        self._by_name: dict[str, RemoteDesk] = {}
        self._by_number: dict[int, RemoteDesk] = {}

    async def desk(self, request: ChatRequest, caller: Caller, label: str) -> RemoteDesk:
        """The game that a request belongs to; a new one for the first request of a segment."""
        by = self._route.segment_by
        segment = "" if by is None else segment_of(by, request, caller, label)
        return self._by_name.get(segment) or await self._opened(segment)

    async def _opened(self, segment: str) -> RemoteDesk:
        facts = await self._link.ask("open", self._generation.number, self._route.name, segment)
        facts["feature_names"] = tuple(facts["feature_names"])
        found = GameFacts(**facts)
        desk = self._by_number.get(found.number)
        if desk is None:
            desk = RemoteDesk(self._link, found, cascade=bool(self._route.models), timed=self._timed)
            self._by_number[found.number] = desk
            self._call_opened(desk)
        if len(self._by_name) >= MOST_NAMES:
            self._by_name.clear()
        self._by_name[segment] = desk
        return desk

    def task(self, request: ChatRequest, caller: Caller, label: str) -> str:
        """The task of a request, as ``task_by`` names it; empty if it names none."""
        return task_of(self._route, request, caller, label)

    def desks(self) -> Iterable[RemoteDesk]:
        """The games that were used so far."""
        return self._by_number.values()

    def forget(self) -> None:
        """Ask for the games again: another owner may have other ones."""
        self._by_name.clear()
        self._by_number.clear()
