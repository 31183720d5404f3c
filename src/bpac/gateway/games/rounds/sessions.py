"""Sticky sessions: the decision that the requests of one conversation, or of one episode of an agent, follow.

1. An *episode* is one round: its first request takes the ticket, has the draft that is scored, and is decided by one
   coin. Later requests of the session follow: the model that the decision chose answers them, and nothing is decided.
2. While the first request of a session is on its way to its decision, it holds the *claim* of the session, and others
   wait. If it comes to no decision (no score, its caller leaves, an error), there is no episode, and the next request
   takes the claim.
3. An episode is over after ``sticky_idle`` seconds without a request, ``sticky_age`` seconds after its decision, or
   after ``sticky_requests`` requests, so that no caller keeps one decision for ever. The next request begins another.
4. A session belongs to its caller: equal names of two API keys are two sessions. What is kept, and noted beside the
   decision in the journal, is a keyed hash of caller and name.
5. After a restart the notes tell which decision a session follows. When its last request came, and how many there were,
   is not in the journal: both are counted anew from the restart. ``sticky_age`` still holds.
6. At most ``MOST_SESSIONS`` are kept. Beyond that the one that was used least recently is forgotten: its next request
   begins another episode, and it is counted.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.telemetry.log_rate import LogRate
from bpac.routing.decision import Decision
from bpac.stores.store import Game, Store

log = logging.getLogger("bpac.gateway")

# Sessions of a game that are kept, and rounds that are read for them after a restart.
MOST_SESSIONS = 100_000
# The key in the note beside a decision.
NOTED = "session"
# Rounds that are read from the journal at once.
_BATCH = 1000


class SessionClaim(NamedTuple):
    """The right to begin the episode of a session.

    Parameters
    ----------
    key: of the session.
    number: which claim it is.
    """

    key: str
    number: int


@dataclass(slots=True)
class OpenEpisode:
    """An episode whose requests follow its decision.

    Parameters
    ----------
    decision: what was decided.
    began: when, in seconds since 1970.
    last: when its last request came.
    requests: how many requests it has had since the start of this process.
    """

    decision: Decision
    began: float
    last: float
    requests: int = 1


class Sessions:
    """The sessions of a game.

    Parameters
    ----------
    route: the settings of the route.
    clock: gives the seconds since 1970 (default: the time).

    Attributes
    ----------
    forgotten: sessions that were forgotten because there were too many.
    """

    def __init__(self, route: RouteSettings, clock: Callable[[], float] = time.time) -> None:
        self._route = route
        self._clock = clock
        self._open: OrderedDict[str, OpenEpisode] = OrderedDict()
        self._claims: dict[str, tuple[SessionClaim, asyncio.Future[None]]] = {}
        self._last_claim = 0
        self.forgotten = 0
        self._rate = LogRate()

    def look(self, key: str) -> "Decision | SessionClaim | asyncio.Future[None]":
        """What a request of a session does.

        It follows a decision, begins the episode with a claim, or waits and looks again.
        """
        now = self._clock()
        episode = self._open.get(key)
        if episode is not None and not self._is_over(episode, now):
            episode.last = now
            episode.requests += 1
            self._open.move_to_end(key)
            return episode.decision
        if (held := self._claims.get(key)) is not None:
            return held[1]
        self._last_claim += 1
        claim = SessionClaim(key, self._last_claim)
        self._claims[key] = claim, asyncio.get_running_loop().create_future()
        return claim

    async def join(self, key: str) -> "Decision | SessionClaim":
        """The decision that a request follows, or the claim of the session, which must be given back or decided."""
        while isinstance(found := self.look(key), asyncio.Future):
            await asyncio.shield(found)
        return found

    def leave(self, claim: SessionClaim) -> None:
        """Give a claim back; nothing happens if its request was decided."""
        held = self._claims.get(claim.key)
        if held is not None and held[0] == claim:
            self._end_claim(claim.key)

    def decided(self, key: str, decision: Decision) -> None:
        """An episode begins with the decision of its first request."""
        now = self._clock()
        self._keep(key, OpenEpisode(decision, now, now))
        self._end_claim(key)

    def _keep(self, key: str, episode: OpenEpisode) -> None:
        self._open[key] = episode
        self._open.move_to_end(key)
        if len(self._open) > MOST_SESSIONS:
            _, oldest = self._open.popitem(last=False)
            if not self._is_over(oldest, self._clock()):
                self._forget()

    def _forget(self) -> None:
        self.forgotten += 1
        if times := self._rate.count("forgotten"):
            about = {"route": self._route.name, "most": MOST_SESSIONS, "since_last_line": times}
            log.warning("a session was forgotten, because there are too many: lower sticky_idle", extra=about)

    def _end_claim(self, key: str) -> None:
        held = self._claims.pop(key, None)
        if held is not None and not held[1].done():
            held[1].set_result(None)

    def _is_over(self, episode: OpenEpisode, now: float) -> bool:
        route = self._route
        return (
            now - episode.last > route.sticky_idle
            or now - episode.began > route.sticky_age
            or episode.requests >= route.sticky_requests
        )

    def restore(self, store: Store, game: Game) -> None:
        """Read from the notes of a journal which decisions are followed.

        Parameters
        ----------
        store, game: where the journal is.
        """
        now, found = self._clock(), dict[str, OpenEpisode]()
        for decision, key, at in _noted(store, game):
            if now - at > self._route.sticky_age:
                break
            found.setdefault(key, OpenEpisode(decision, at, now))
        for key, episode in reversed(found.items()):
            self._keep(key, episode)

    def sweep(self) -> None:
        """Forget the episodes that are over: those used least recently come first."""
        now = self._clock()
        while self._open and self._is_over(next(iter(self._open.values())), now):
            self._open.popitem(last=False)

    def to_json(self) -> dict[str, Any]:
        """What the status says of them."""
        now = self._clock()
        open_now = sum(not self._is_over(episode, now) for episode in self._open.values())
        return {"sticky_by": self._route.sticky_by, "open": open_now, "forgotten": self.forgotten}


def _noted(store: Store, game: Game) -> Iterator[tuple[Decision, str, float]]:
    """The latest decisions that began episodes, newest first: with the key of their session and their time."""
    before, read = None, 0
    while read < MOST_SESSIONS and (rounds := store.rounds(game, before, _BATCH)):
        read += len(rounds)
        for (entry, note), _ in rounds:
            if isinstance(entry, Decision):
                before = entry.step
                if NOTED in note:
                    yield entry, note[NOTED], note.get("at", 0.0)


def session_key(secret: bytes, caller: str, session: str) -> str:
    """The key of a session, from which neither caller nor name can be read.

    Parameters
    ----------
    secret: of the store.
    caller: who sends its requests.
    session: its name.
    """
    text = json.dumps([caller, session]).encode()
    return hashlib.blake2b(text, key=secret[:64], digest_size=16).hexdigest()
