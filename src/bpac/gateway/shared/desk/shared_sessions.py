"""Sticky sessions of a shared game: which request of which gateway is decided, and which ones follow.

The rules are those of ``games/rounds/sessions.py``; Redis keeps them for all gateways (``named_decisions.py``):

1. The first request of a session gets a ticket that holds its name, in the same operation that looks for a decision.
   Of requests at several gateways at once, one is decided; the others look again until it is, and follow.
2. If it comes to no decision, its ticket is withdrawn, or cut off with its gateway, and the next request is decided.
3. The decision is kept under the name in the operation that makes it. So a gateway that dies after that has decided
   the episode, and requests at other gateways follow it; its audit counts as that of any gateway that died.
4. While Redis is gone, nobody knows what a session follows: the expert answers, which loses nothing. Also with
   ``store_outage`` no draft is served on the last terms, because the episode may be one of the expert.
5. An episode's loss may be reported for ``deadline`` seconds after its last request, at whichever gateway that came.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any

from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.rounds.sessions import MOST_SESSIONS
from bpac.routing.decision import Decision
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.replicas.named_decisions import NamedTerms
from bpac.stores.redis.server.connecting import RedisClient

log = logging.getLogger("bpac.gateway")


class SharedSessions:
    """The sessions of a shared game, as one gateway uses and shows them.

    Parameters
    ----------
    route: the settings of the route.
    client: the connections to Redis.
    names: the keys of the game.
    most: sessions that are kept at most (default: as many as a single gateway keeps).
    """

    def __init__(self, route: RouteSettings, client: RedisClient, names: GameNames, most: int = MOST_SESSIONS) -> None:
        self.route = route
        self._client = client
        self._names = names
        self.most = most
        self._open = self._forgotten = 0

    @property
    def loss_is_reported(self) -> bool:
        """Whether rounds are episodes whose loss is reported from outside."""
        return self.route.sticky_by is not None and self.route.loss["name"] == "external"

    def named(self, key: str) -> NamedTerms:
        """For how long the key of a session stands for one decision."""
        route = self.route
        hold = max(route.sticky_idle, route.draft_deadline + route.deadline)
        deadline = route.deadline if self.loss_is_reported else 0.0
        return NamedTerms(key, self.most, route.sticky_idle, route.sticky_age, route.sticky_requests, hold, deadline)

    async def silent(self, decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions that no request has followed within the deadline of their outcome."""
        steps = [decision.step for decision in decisions]
        ages = await self._client.run("followed", [self._names.followed], *steps)
        deadline = self.route.deadline
        return [decision for decision, age in zip(decisions, ages, strict=True) if not 0 <= age < deadline]

    async def read(self) -> None:
        """Read how many sessions are open, and how many were forgotten."""
        if self.route.sticky_by is None:
            return
        self._open = await self._client.command("ZCOUNT", self._names.named_ends, time.time(), "+inf")
        forgotten = int(await self._client.command("HGET", self._names.state, "names_forgotten") or 0)
        if forgotten > self._forgotten:
            about = {"route": self.route.name, "most": self.most, "since_last_line": forgotten - self._forgotten}
            log.warning("a session was forgotten, because there are too many: lower sticky_idle", extra=about)
        self._forgotten = forgotten

    def to_json(self) -> dict[str, Any]:
        """What the status says of them; requests on their way to a decision count as open sessions."""
        return {"sticky_by": self.route.sticky_by, "open": self._open, "forgotten": self._forgotten}
