"""A game on a real Redis server with several replicas, each as a gateway has it, in one event loop."""

import asyncio
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from bpac.errors import StoreError
from bpac.routing.journal.entries import Opened
from bpac.routing.recorded_terms import DecisionRules, draft_scores
from bpac.routing.settings import Settings
from bpac.stores.redis.folding.folder import Folder
from bpac.stores.redis.journal import EntriesLost, PlainRestoring
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.messages import resolving, withdrawing
from bpac.stores.redis.replicas.replica import GameReplica
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.server.connecting import RedisClient
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Game
from tests.routing.learning.drafts import Draft

# Stores and seats that a test has opened.
OPENED: list[RedisStore] = []
SEATS: list["Seat"] = []
# A lease and a timeout that no pause of a busy machine exceeds: nobody counts as dead unless a test moves a clock.
PATIENT = {"lease": 30, "timeout": 30}


class MovedClock:
    """A monotonic clock that a test moves on, so that a lease ends when the test says so, and not before."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def __call__(self) -> float:
        """Seconds."""
        return time.monotonic() + self._ahead

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self._ahead += seconds


class Seat:
    """One replica of a game: its connections, its side of the game, and its folder."""

    def __init__(self, address: str, game: Game, settings: Settings, **options: Any) -> None:
        where = read_address(address)
        self.client = RedisClient(where)
        self.lease = where.lease
        self.rules = DecisionRules.of(settings)
        names = GameNames(where.name, game.number)
        self.folder = Folder(
            self.client, names, game, replica="", settings=Opened(settings.to_json()), restoring=PlainRestoring(),
            lease=where.lease, **options,
        )  # fmt: skip
        self.side = GameReplica(self.client, names, self.rules, where.timeout, self._renamed)
        self.counts: Counter[str] = Counter()
        self.lost: StoreError | None = None
        self._stops = False
        self._task: asyncio.Task[None] | None = None
        self._dither = random.Random(1)
        SEATS.append(self)

    def _renamed(self, name: str) -> None:
        self.folder.replica = name

    async def sit_down(self) -> None:
        """Take part."""
        await self.side.join()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while not self._stops and not task.cancelling():
            try:
                more = await self.folder.step()
                await self.side.beat(self.lease / 4)
            except EntriesLost as error:
                self.lost = error
                self.side.end(error)
                return
            except StoreError:
                more = False
            if not more:
                await asyncio.sleep(0.003)

    async def stop_folding(self) -> None:
        """Fold no more, without a word to anybody."""
        self._stops = True
        if self._task is not None:
            await self._task

    async def get_up(self) -> None:
        """Leave, as a gateway that stops does."""
        await self.stop_folding()
        with suppress(StoreError):
            await self.side.leave()
            await self.folder.stop()
        await self.client.close()
        SEATS.remove(self)

    async def close(self) -> None:
        """End tasks and connections, whatever state they are in."""
        tasks = [task for task in (self._task, self.side._task) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.client.close()

    async def play(self, draft: Draft, time: Callable[[float], float], loss: float) -> None:
        """One request, from its arrival to its outcome."""
        try:
            ticket = await self.side.arrive()
            await asyncio.sleep(time(draft.loss))
            if draft.loss < 0:
                self.side.tell(withdrawing(ticket, "test", 1.0))
                self.counts["withdrawn"] += 1
                return
            features = draft.features if self.rules.learns else None
            scores = draft_scores(self.rules, draft.uncertainty, self._dither.random(), ticket.models, features)
            decision = await self.side.decide(ticket, scores, {"at": 1.0})
        except StoreError:
            self.counts["failed"] += 1
            return
        if decision is None:
            self.counts["void"] += 1
            return
        self.counts["decided"] += 1
        self.counts["served"] += decision.serve_draft
        if decision.call_expert:
            self.counts["called"] += 1
            await asyncio.sleep(time(draft.loss))
            self.side.tell(resolving(decision.step, loss, {}))
            self.counts["resolved"] += 1


def new_game(address: str, terms: str = "{}") -> tuple[RedisStore, Game]:
    """A game that nobody has played."""
    store = RedisStore(read_address(address))
    OPENED.append(store)
    return store, store.open_game("route", "", terms)


def run_game(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run what a test does; seats that it leaves behind, also if it fails, end in the event loop that they belong to.

    A connection that is left to the garbage collector is a warning in some other test, which then fails for no fault of
    its own.
    """

    async def all_closed() -> None:
        try:
            await main()
        finally:
            while SEATS:
                await SEATS.pop().close()

    asyncio.run(all_closed())


def close_stores() -> None:
    """Close the stores of all new games."""
    while OPENED:
        OPENED.pop().close()


def new_name() -> str:
    """A name that no other test has."""
    return f"t{secrets.token_hex(6)}"


async def settled(store: RedisStore, game: Game) -> None:
    """Wait until everything in the inbox is folded and published."""
    names = store.of(game)
    for _ in range(12_000):
        last = store.client.command("XREVRANGE", names.inbox, "+", "-", "COUNT", 1)
        folded = store.client.command("HGET", names.state, "folded")
        if last and last[0][0] == folded:
            return
        await asyncio.sleep(0.005)
    raise AssertionError("nobody folds")
