"""The budget policy on a real Redis server: what several replicas serve together stays below ε on any stream.

Replicas decide on a threshold that was published turns ago. The script that gives out steps counts the audits since
then, and lets no draft be kept if their losses could have used the budget up (MATH section 7).
"""

import asyncio
import random
from typing import Literal

import pytest

from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Opened
from bpac.routing.policies import Budget
from bpac.routing.recorded_terms import DecisionRules, draft_scores
from bpac.routing.router import Router
from bpac.routing.settings import Settings
from bpac.stores.redis.folding.fold import Fold
from bpac.stores.redis.folding.folder import Folder
from bpac.stores.redis.journal import PlainRestoring
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.messages import ReplicaMessages, SharedTicket, arriving, deciding, resolving
from bpac.stores.redis.server.connecting import RedisClient
from bpac.stores.store import Game
from tests.promise.test_promise import most_explained
from tests.promise.test_shared_games import PipelinedClient
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import new_name

pytestmark = pytest.mark.promise

EPSILON, ALPHA = 0.1, 0.1
# Turns of each stream, requests that each of the replicas has in a turn, and turns between two publications.
STREAMS, TURNS, AT_ONCE, REPLICAS, PUBLISH_EVERY = 12, 30, 8, 2, 5


class AttackedStream:
    """One game, whose callers know the published threshold: drafts are wrong exactly if they could be kept."""

    def __init__(self, client: RedisClient, number: int, settings: Settings) -> None:
        self.client = client
        self.names = GameNames(client.address.name, number)
        self.game = Game(number, "route", "", "{}")
        self.rules = DecisionRules.of(settings)
        self.sides = [ReplicaMessages(f"{number}-{at}", self.names, self.rules) for at in range(REPLICAS)]
        self.folder = Folder(
            client, self.names, self.game, replica="folder", settings=Opened(settings.to_json()),
            restoring=PlainRestoring(), lease=3600.0,
        )  # fmt: skip
        self.waiting: list[list[SharedTicket]] = [[] for _ in self.sides]
        self.owed: list[tuple[int, float]] = []
        self.losses: dict[int, tuple[Decision, float]] = {}
        self.dice = random.Random(number)

    async def play(self) -> None:
        """All turns."""
        names = self.names
        await self.client.run("create", [names.state], self.game.head.hex())
        for side in self.sides:
            await self.client.run("join", [names.state, names.replies, names.replicas], side.replica)
        for _ in range(2):
            await self.folder.step()
        for turn in range(TURNS):
            for at, side in enumerate(self.sides):
                await self._turn(at, side, f"{turn}")
            if turn % PUBLISH_EVERY == 0:
                await self.folder.step()

    async def _turn(self, at: int, side: ReplicaMessages, nonce: str) -> None:
        tickets, known = self.waiting[at], [one for one in self.owed if self.dice.random() < 0.3]
        self.owed = [one for one in self.owed if one not in known]
        scores = draft_scores(self.rules, 0.0, 0.0)
        operations = [
            *(resolving(step, loss, {}) for step, loss in known),
            *(deciding(ticket, scores, {}, budget=True) for ticket in tickets),
            arriving(AT_ONCE),
        ]
        reply = side.read(await self.client.run("batch", side.keys, *side.batch(operations, nonce)))
        assert reply.status == "ok"
        *decided, first = reply.results[len(known) :]
        for ticket, result in zip(tickets, decided, strict=True):
            decision, loss = side.decision(ticket, scores, result), float(ticket.terms.threshold > 0.0)
            self.losses[decision.step] = decision, loss
            if decision.call_expert:
                self.owed.append((decision.step, loss))
        self.waiting[at] = [side.ticket(first + number) for number in range(AT_ONCE)]

    @property
    def exceeded(self) -> bool:
        """Whether the average served loss was ever above ε."""
        served, above = 0.0, False
        for step, (decision, loss) in sorted(self.losses.items()):
            served += loss * decision.serve_draft
            above = above or served > EPSILON * step + 1e-9
        return above

    @property
    def kept(self) -> int:
        """How many drafts were served."""
        return sum(decision.serve_draft for decision, _ in self.losses.values())


async def played(address: str, explore: Literal["serve", "shadow"]) -> list[AttackedStream]:
    """All streams."""
    client = PipelinedClient(address)
    settings = Router(EPSILON, ALPHA, Budget(first=50), explore=explore).settings
    streams = [AttackedStream(client, number, settings) for number in range(1, STREAMS + 1)]
    await asyncio.gather(*(stream.play() for stream in streams))
    await client.close()
    return streams


@pytest.mark.parametrize("explore", ["serve", "shadow"])
def test_replicas_keep_a_budget_together(explore: Literal["serve", "shadow"], redis: RedisServer) -> None:
    """The average served loss exceeds ε in at most a share α of attacked streams, and drafts are kept all the same."""
    streams = asyncio.run(played(redis.address(new_name()), explore))
    assert sum(stream.exceeded for stream in streams) <= most_explained(STREAMS, ALPHA)
    assert sum(stream.kept > 0 for stream in streams) > STREAMS // 2


def test_without_the_count_a_stale_bound_breaks_it(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: the same load, if audits since the publication are not counted."""
    counted = Fold.room

    def stale(fold: Fold) -> list[float]:
        epsilon, now, *_ = counted(fold)
        return [epsilon, *([now] * 64)]

    monkeypatch.setattr(Fold, "room", stale)
    streams = asyncio.run(played(redis.address(new_name()), "serve"))
    assert sum(stream.exceeded for stream in streams) > most_explained(STREAMS, ALPHA)
