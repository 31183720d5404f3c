"""Who is alive: the folder of a game watches the counters of its replicas, and takes those that stand still off it.

A server that started again may have lost what it acknowledged last. Every replica finds that out for itself with its
next call (``messages.py``). If one dies before it could, nobody knows what it had decided: then the game ends. So the
id of the server is kept in the game, and a new one is noted only when every replica has called that server or has left:
a folder that stops before leaves it to the next one to find out who has not. In a cluster, the server is the node that
the game is on.
"""

import logging
from collections.abc import Callable, Collection
from typing import Any

from bpac.stores.redis.journal import EntriesLost
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.server.connecting import RedisClient, fields_of

log = logging.getLogger("bpac.stores")


class StandingStill:
    """Since when values stand still, on this process's own monotonic clock: no clock of another machine matters.

    Parameters
    ----------
    limit: seconds after which a value stands still.
    clock: a monotonic clock.

    >>> now = iter([0.0, 3.0, 6.0])
    >>> still = StandingStill(5.0, lambda: next(now))
    >>> [still.has_stopped("a", 1) for _ in range(3)]
    [False, False, True]
    """

    def __init__(self, limit: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._seen: dict[str, tuple[Any, float]] = {}

    def has_stopped(self, name: str, value: Any) -> bool:
        """Whether a value has not changed for as long as the limit."""
        now = self._clock()
        before, since = self._seen.get(name, (None, now))
        if before != value:
            self._seen[name] = value, now
            return False
        return now - since >= self._limit

    def keep(self, names: Collection[str]) -> None:
        """Forget all values but those."""
        self._seen = {name: seen for name, seen in self._seen.items() if name in names}

    def forget(self) -> None:
        """Begin anew."""
        self._seen.clear()


class ReplicaWatch:
    """The replicas of a game, as its folder watches them.

    Parameters
    ----------
    client: the connections.
    names: the keys of the game.
    lease: seconds without a sign of life after which a replica counts as dead.
    clock: a monotonic clock.

    Attributes
    ----------
    members: the names of the replicas that take part.
    """

    def __init__(self, client: RedisClient, names: GameNames, lease: float, clock: Callable[[], float]) -> None:
        self._client = client
        self._names = names
        self._beats = StandingStill(lease, clock)
        self.members: frozenset[str] = frozenset()
        # The server that was seen last, the replicas that have not called it yet, and whether it is noted in the game
        # that all have.
        self._server = ""
        self._unconfirmed: dict[str, str] = {}
        self._noted = False

    def forget(self) -> None:
        """Begin anew: another folder may have watched meanwhile."""
        self._beats.forget()

    async def look(self, token: int, own: str) -> None:
        """Take replicas that died off the game; ``EntriesLost`` if what one had decided last may be lost.

        Parameters
        ----------
        token: of the folder.
        own: the name of the replica that folds, which lives.
        """
        names = self._names
        server, known, found = await self._client.run("look", [names.state, names.replicas])
        beats = {name.decode(): beat.decode() for name, beat in fields_of(found).items()}
        self._beats.keep(beats)
        self.members = frozenset(beats)
        await self._look_at_server(server.decode(), known.decode(), beats)
        keys = [names.state, names.inbox, names.open, names.replies, names.replicas]
        for name, beat in beats.items():
            if name != own and self._beats.has_stopped(name, beat):
                if name in self._unconfirmed:
                    why = f"Redis started again and replica {name} died: what it had decided last may be lost"
                    raise EntriesLost(f"game {names.number}: {why}", cause=why)
                log.warning("a replica died", extra={"game": names.number, "replica": name})
                await self._client.run("remove", keys, token, name, beat, self._server)
        if not self._noted and not self._unconfirmed:
            self._noted = await self._client.run("confirm", [names.state], token, self._server) == 1

    async def _look_at_server(self, server: str, known: str, beats: dict[str, str]) -> None:
        """Note which replicas have yet to find out whether a server that started again lost what they wrote.

        Parameters
        ----------
        server: the id of the server.
        known: the id of the one that all replicas had called before.
        beats: the counters of the replicas, on this server.
        """
        if server != self._server:
            may_have_lost = known not in ("", server) and not await self._client.keeps_all()
            if may_have_lost:
                log.warning("Redis started again, or another server took over", extra={"game": self._names.number})
            self._server, self._noted = server, server == known
            self._unconfirmed = dict(beats) if may_have_lost else {}
        self._unconfirmed = {name: beat for name, beat in self._unconfirmed.items() if beats.get(name) == beat}
