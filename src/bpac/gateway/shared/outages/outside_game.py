"""One shared game and what is served outside it while Redis is gone."""

from bpac.gateway.shared.outages.outage_terms import OutageServing, OutageTerms
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.replicas.outside import OutsideCounts, read_counts, report
from bpac.stores.redis.replicas.replica import GameReplica
from bpac.stores.redis.server.connecting import RedisClient


class OutsideGame:
    """What this gateway may serve outside a game, and what all gateways have.

    Parameters
    ----------
    serving: what is served while Redis is gone; none if the expert answers.
    client, names: the connections, and the keys of the game.
    route: the name of the route.
    side: this gateway's side of the game.

    Attributes
    ----------
    counts: what all gateways have reported, as far as it is known here.
    """

    def __init__(
        self, serving: OutageServing | None, client: RedisClient, names: GameNames, route: str, side: GameReplica
    ) -> None:
        self._serving = serving
        self._client = client
        self._names = names
        self._route = route
        self._side = side
        self._game = f"{names.name}:{names.number}"
        # Replica and drafts that were reported last.
        self._reported = ("", -1)
        self.counts = OutsideCounts()

    def last_terms(self) -> OutageTerms | None:
        """The terms that were published last, for a request that arrives while Redis is gone; none if not allowed."""
        side, serving = self._side, self._serving
        if serving is None or side.down is None or side.ended is not None:
            return None
        if not serving.is_allowed(side.answered_at, side.down):
            return None
        rules, ticket = side.messages.rules, side.messages.ticket(0)
        return OutageTerms(serving, self._route, self._game, rules, ticket, answered_at=lambda: side.answered_at)

    async def report(self, *, leaves: bool = False) -> None:
        """Tell Redis what was served while it was gone, and that it may happen again; in the end, that it may not."""
        if self._serving is None:
            return
        drafts = self._serving.drafts
        now = "" if leaves else self._side.messages.replica, drafts.totals[self._game]
        if now != self._reported:
            await report(self._client, self._names, drafts.identity, now[1], now[0])
            self._reported = now
            await self.read()

    async def read(self) -> None:
        """Read what all gateways have reported."""
        self.counts = await read_counts(self._client, self._names)
