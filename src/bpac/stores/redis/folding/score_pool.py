"""What the games of a route learn together when different gateways fold them: audits and scores, exchanged in Redis.

1. The folder of each game adds its audits to a stream that all of them read, and each has the sample of all games in
   memory. Who finds that it is enough fits the next score and offers it. The first that is offered is everybody's.
2. Each game writes the score to its own journal, and bets on the requests that arrive there after it, with its own
   share of its own α (``routing/learning/shared_scores.py``). So nothing here matters to the promise: a score may be
   any function of the past.
3. An audit is known by its game and step, so it counts once, however often it is added. One that is lost is missed.
"""

import time
from collections.abc import Callable
from hashlib import sha256

from msgspec import json, msgpack

from bpac.routing.journal.entries import Learned
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.learning.learning import Learning
from bpac.routing.learning.samples import MOST_SAMPLES, Sample
from bpac.stores.encoding import encode
from bpac.stores.redis.keys import SharedNames
from bpac.stores.redis.server.connecting import RedisClient

# Seconds between two looks at what others have added.
PAUSE = 0.25
# Audits that are sent and read at once.
PAGE = 500


class ScorePool:
    """One gateway's view of what the games of a route have learned together.

    Parameters
    ----------
    client: the connections.
    route: the name of the route.
    settings: when scores are learned, and from what; games with other settings learn apart.
    epsilon: the average loss that is allowed (ε).
    clock: a monotonic clock (default: that of this machine).
    """

    def __init__(
        self,
        client: RedisClient,
        route: str,
        settings: LearnedScore,
        epsilon: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        names = SharedNames(client.address.name)
        which = sha256(repr((route, settings, epsilon)).encode()).hexdigest()[:16]
        self._keys = [names.of(f"audits:{which}"), names.of(f"scores:{which}")]
        self._all = Learning(settings, epsilon)
        self._members: dict[int, Learning] = {}
        self._to_add: list[tuple[int, int, Sample]] = []
        self._read_to = "0-0"
        self._clock = clock
        self._looked_at = -PAUSE
        self._busy = False  # the games of a route exchange through one object

    def add(self, number: int, member: Learning) -> None:
        """Let a game that is folded here take part; nothing happens if it does already.

        Parameters
        ----------
        number: of the game.
        member: what it has learned.
        """
        if self._members.get(number) is member:
            return
        self._members[number] = member
        member.pool, member.number = self, number
        for step, sample in member.samples.items():
            self.observed(number, step, sample)
        self._tell()

    def remove(self, number: int) -> None:
        """Another gateway folds a game from now on, or none does."""
        self._members.pop(number, None)

    def observed(self, number: int, step: int, sample: Sample) -> None:
        """An audit of a game has an outcome."""
        if self._all.wants_more:
            self._to_add.append((number, step, sample))

    def offers(self, score: int) -> bool:
        """Whether that score has been learned."""
        return score <= len(self._all.joined)

    def next(self, score: int, tickets: int) -> Learned | None:
        """The entry of a score for a game that does not have it yet; none if it has not been learned."""
        if not self.offers(score):
            return None
        model, rounds, gain, _, _ = self._all.joined[score - 1]
        return Learned(score, model.to_json(), rounds, gain, tickets, shared=True)

    async def exchange(self) -> None:
        """Add what was observed here, take in what others added, and offer a score if one can be learned."""
        if self._busy or not self._all.wants_more or self._clock() - self._looked_at < PAUSE:
            return
        self._busy, self._looked_at = True, self._clock()
        try:
            while await self._exchanged(""):
                pass
            if self._all.enough:
                entry = self._all.fitted(0)
                await self._exchanged(encode([entry.model, entry.rounds, entry.gain]))
        finally:
            self._busy = False
        self._tell()

    async def _exchanged(self, offer: str) -> bool:
        """One call of Redis; whether there may be more to send or to read."""
        some = self._to_add[:PAGE]
        rows = [encode([number, step, *sample]) for number, step, sample in some]
        known = len(self._all.joined)
        values = (self._read_to, rows, known, offer, PAGE, MOST_SAMPLES)
        audits, scores = await self._client.run("exchange", self._keys, msgpack.encode(values))
        del self._to_add[: len(some)]
        for name, row in audits:
            self._read_to = name.decode()
            number, step, features, loss, propensity = json.decode(row)
            kept = tuple(float(value) if type(value) is int else value for value in features)
            self._all.samples.add((number, step), Sample(kept, float(loss), float(propensity)))
        for text in scores:
            model, rounds, gain = json.decode(text)
            self._all.join(Learned(len(self._all.joined) + 1, model, rounds, float(gain), shared=True), 0)
        return bool(self._to_add) or len(audits) == PAGE

    def _tell(self) -> None:
        """Let the games know whether there is a score that they do not have."""
        for member in self._members.values():
            member.due = member.wants_more and self.offers(len(member.joined) + 1)
