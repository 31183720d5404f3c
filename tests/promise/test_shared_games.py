"""The promise of games that four replicas share through a real Redis server; drafts and outcomes that lose are slow."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bpac.replay.simulation.laws import LAWS, Law
from bpac.routing.journal.entries import Opened
from bpac.routing.recorded_terms import DecisionRules, draft_scores
from bpac.routing.router import Router
from bpac.routing.settings import Settings
from bpac.stores.redis.folding.folder import Folder
from bpac.stores.redis.journal import PlainRestoring
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.messages import ReplicaMessages, arriving, deciding, resolving
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.server.connecting import RedisClient
from bpac.stores.store import Game
from tests.promise.shared_replicas import Player, own_views, players
from tests.promise.test_promise import most_explained
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import new_name

pytestmark = pytest.mark.promise

EPSILON, ALPHA = 0.1, 0.1
ROUNDS, STREAMS = 400, 40
# Turns between two publications: the thresholds that replicas use are as old.
PUBLISH_EVERY = 3


class PipelinedClient(RedisClient):
    """Sends what many games do in one turn of the event loop at once."""

    def __init__(self, address: str) -> None:
        super().__init__(read_address(address), timeout=20.0)
        self._waiting: list[tuple[tuple[Any, ...], asyncio.Future[Any]]] = []

    async def _evaluated(self, command: str, what: str, keys: Sequence[str], values: Sequence[Any]) -> Any:
        return await self.command(command, what, len(keys), *keys, *values)

    async def command(self, *words: Any) -> Any:
        """Run a command together with others."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(self._flush()))
        result = asyncio.get_running_loop().create_future()
        self._waiting.append((words, result))
        found = await result
        if isinstance(found, Exception):
            raise found
        return found

    async def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        async with self._client.pipeline(transaction=False) as pipeline:
            for words, _ in waiting:
                pipeline.execute_command(*words)
            for (_, result), found in zip(waiting, await pipeline.execute(raise_on_error=False), strict=True):
                result.set_result(found)


class SharedStream:
    """One game with its replicas and its folder."""

    def __init__(self, client: RedisClient, number: int, settings: Settings, law: Law) -> None:
        self.names = GameNames(client.address.name, number)
        self.game = Game(number, "route", "", "{}")
        self.rules = DecisionRules.of(settings)
        self.players = players(law, ROUNDS, number)
        self.sides = [ReplicaMessages(f"{number}-{at}", self.names, self.rules) for at in range(len(self.players))]
        self.client = client
        self.folder = Folder(
            client, self.names, self.game, replica="folder", settings=Opened(settings.to_json()),
            restoring=PlainRestoring(), lease=3600.0,
        )  # fmt: skip
        self.turns = 0

    async def start(self) -> None:
        """Create the game, and let everybody join."""
        names = self.names
        await self.client.run("create", [names.state], self.game.head.hex())
        for side in self.sides:
            await self.client.run("join", [names.state, names.replies, names.replicas], side.replica)
        await self.folder.step()  # it takes the lease, and starts …
        await self.folder.step()  # … and publishes what is in force

    async def turn(self) -> None:
        """One turn of every replica, and sometimes of the folder."""
        await asyncio.gather(
            *(self._turn(*seat) for seat in zip(self.players, self.sides, strict=True) if not seat[0].over)
        )
        self.turns += 1
        if self.turns % PUBLISH_EVERY == 0:
            await self.folder.step()

    async def _turn(self, player: Player, side: ReplicaMessages) -> None:
        count, drafts, known = player.arriving(), player.drafted(), player.known()
        scores = [draft_scores(self.rules, draft.uncertainty, 0.0) for draft in drafts]
        operations = [
            *(resolving(outcome.decision.step, outcome.loss, {}) for outcome in known),
            *(deciding(draft.ticket, score, {}) for draft, score in zip(drafts, scores, strict=True)),
            arriving(count),
        ]
        reply = side.read(await self.client.run("batch", side.keys, *side.batch(operations, f"{self.turns}")))
        assert reply.status == "ok"
        *decided, first = reply.results[len(known) :]
        player.arrived([side.ticket(first + at) for at in range(count)])
        for draft, score, result in zip(drafts, scores, decided, strict=True):
            player.decided(draft, side.decision(draft.ticket, score, result))


async def highest_thresholds(address: str, law: Law) -> list[float]:
    """The highest threshold that was ever in force in each stream."""
    client = PipelinedClient(address)
    settings = Router(EPSILON, ALPHA).settings
    streams = [SharedStream(client, number, settings, law) for number in range(1, STREAMS + 1)]
    await asyncio.gather(*(stream.start() for stream in streams))
    while running := [stream for stream in streams if not all(player.over for player in stream.players)]:
        await asyncio.gather(*(stream.turn() for stream in running))
    await client.close()
    return [max(player.highest for player in stream.players) for stream in streams]


def violations(law: Law, thresholds: list[float]) -> int:
    """How many streams had a threshold whose true risk is above ε."""
    kept_share = Router(EPSILON, ALPHA).settings.terms.kept_share
    return sum(kept_share * law.risk(threshold) > EPSILON + 1e-12 for threshold in thresholds)


@pytest.mark.parametrize("name", ["edge", "rising"])
def test_four_replicas_on_redis_keep_the_promise(name: str, redis: RedisServer) -> None:
    """One order and one published threshold: an unsafe threshold is in force in at most a share α of streams."""
    found = asyncio.run(highest_thresholds(redis.address(new_name()), LAWS[name]))
    assert violations(LAWS[name], found) <= most_explained(STREAMS, ALPHA)
    assert name == "edge" or sum(threshold > 0.0 for threshold in found) > STREAMS // 4  # thresholds do open


@pytest.mark.parametrize("name", ["edge", "rising"])
def test_replicas_that_certify_on_their_own_views_break_it(name: str) -> None:
    """Control: the same load, with thresholds that each replica certifies from what it knows."""
    found = list(own_views(LAWS[name], ROUNDS, range(1, STREAMS + 1), epsilon=EPSILON, alpha=ALPHA))
    assert violations(LAWS[name], found) > most_explained(STREAMS, ALPHA)
