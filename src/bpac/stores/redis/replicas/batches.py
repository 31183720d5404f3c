"""What a replica tells Redis goes there in batches, and takes effect once.

1. All that happens in one turn of the event loop is one batch, and one batch is under way at a time; what happens
   meanwhile is the next one.
2. A batch without a reply is sent again until ``timeout`` has passed. Then Redis counts as gone (``down``): requests
   under way end here, and new ones are refused at once; they are for the expert. Outcomes are kept and sent later. If
   this process dies before, their rounds count as losses of 1.
3. When Redis is back, the first batch cuts off what was under way, as a crash does: requests that were ended by an
   outage must not be withdrawn one by one (MATH section 12). Rounds that turn out to be decided by a batch whose reply
   never came are given up.
4. A batch that fails in any other way leaves unknown what became of it: this replica begins anew under another name,
   and what it had under way is cut off.
"""

import asyncio
import logging
import math
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from bpac.errors import StoreError
from bpac.routing.cascade.recorded_walks import RecordedWalk
from bpac.routing.recorded_terms import DecisionRules, RecordedScores
from bpac.stores.redis.folding.fold import RESTART
from bpac.stores.redis.journal import EntriesLost
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.messages import (
    CUT_OFF,
    MOST_DECISIONS,
    BatchReply,
    Operation,
    ReplicaMessages,
    SharedTicket,
    resolving,
)
from bpac.stores.redis.replicas.named_decisions import read_named
from bpac.stores.redis.replicas.replica_names import new_name
from bpac.stores.redis.server.connecting import RedisClient, RedisGone, WrongType

log = logging.getLogger("bpac.stores")

# What is known of a request when it is decided: the scores of its draft, or its walk through a cascade.
Draft = RecordedScores | RecordedWalk

# Seconds between two attempts while Redis does not answer.
PAUSE, LONGEST_PAUSE = 0.02, 1.0


class Waiting:
    """An operation on its way.

    Parameters
    ----------
    operation: what happened.
    result: who waits for the result; none if nobody does.
    scored: ticket and draft of a decision.
    """

    __slots__ = ("operation", "result", "scored")

    def __init__(
        self,
        operation: Operation,
        result: "asyncio.Future[Any] | None" = None,
        scored: tuple[SharedTicket, Draft] | None = None,
    ) -> None:
        self.operation = operation
        self.result = result
        self.scored = scored


class Batches:
    """The operations of one process in a game, on their way to Redis.

    Parameters
    ----------
    client: the connections.
    names: the keys of the game.
    rules: by which the game decides.
    timeout: seconds after which Redis counts as gone.
    renamed: called with the name of this replica whenever it gets one.
    noticed: called with why when Redis counts as gone, and with none when it is back.

    Attributes
    ----------
    down: why Redis cannot be used; none as long as it can.
    ended: why the game cannot go on; none as long as it can.
    calls, operations: how many scripts were run, and how many operations they carried.
    answered_at: when the last call was sent that Redis has answered, on the monotonic clock.
    """

    def __init__(
        self,
        client: RedisClient,
        names: GameNames,
        rules: DecisionRules,
        timeout: float,
        renamed: Callable[[str], object] = lambda name: None,
        *,
        noticed: Callable[[StoreError | None], object] = lambda outage: None,
    ) -> None:
        self._client = client
        self._names = names
        self.timeout = timeout
        # Shorter than a lease: whoever is silent for one after Redis is back counts as dead.
        self._longest_pause = min(LONGEST_PAUSE, timeout / 2)
        self._renamed = renamed
        self._noticed = noticed
        self.messages = ReplicaMessages("", names, rules)
        self.down: StoreError | None = None
        self.ended: StoreError | None = None
        self.calls = self.operations = 0
        self._called_at = self.answered_at = 0.0
        self._queue: deque[Waiting] = deque()
        self._task: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Register with the game; it is tried again until ``timeout`` has passed, as every other call is."""
        await self._join_within(self.timeout)

    async def _join_within(self, seconds: float) -> None:
        give_up, pause = time.monotonic() + seconds, PAUSE
        while True:
            try:
                return await self._join()
            except RedisGone:  # also if a copy that is just being made did not acknowledge in time
                if self.ended is not None or time.monotonic() > give_up:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, self._longest_pause)

    async def _join(self) -> None:
        """Register with the game, under a name that no process ever had."""
        name = new_name()
        names = self._names
        try:
            status = await self._client.run("join", [names.state, names.replies, names.replicas], name)
        except WrongType:
            status = b"lost"
        if status != b"ok":
            self.end(EntriesLost(f"the game is {status.decode()}", cause=f"the game is {status.decode()}"))
            raise self.ended or StoreError("the game is over")
        self.messages.joined(name)
        self._renamed(name)

    def tell(self, operation: Operation) -> None:
        """Send an operation whose result does not matter; while Redis is gone only outcomes are kept."""
        if self.ended is None and (self.down is None or operation[0] == "r"):
            self._queue.append(Waiting(operation))
            self._start()

    async def _sent(self, operation: Operation, scored: tuple[SharedTicket, Draft] | None = None) -> Any:
        return await asyncio.shield(self._queued(operation, scored))

    def _queued(self, operation: Operation, scored: tuple[SharedTicket, Draft] | None = None) -> "asyncio.Future[Any]":
        failure = self.ended or self.down
        if failure is not None:
            raise failure
        result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.append(Waiting(operation, result, scored))
        self._start()
        return result

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._queue and self.ended is None:
                await asyncio.sleep(0)  # whatever else happens in this turn goes along
                await self._send_or_leave(self._taken())
        finally:
            self._task = None

    async def _send_or_leave(self, batch: list[Waiting]) -> None:
        try:
            await self._send(batch)
        except Exception as error:
            # It is not known what became of the batch. Under another name, this replica begins anew: what it had under
            # way is cut off, and its audits are given up, as those of a process that died.
            log.error("a batch failed: this replica begins anew", exc_info=error)
            self._fail(batch)
            try:
                await self.join()
            except RedisGone as gone:
                await self._outage([], gone, self._joined_again)
            except StoreError:
                pass  # the game is over, and what waits has failed with it

    def _taken(self) -> list[Waiting]:
        """The next batch: arrivals are counted together, and it has at most as many decisions as one key serves."""
        batch: list[Waiting] = []
        while self._queue and len(batch) < MOST_DECISIONS:
            batch.append(self._queue.popleft())
        return batch

    async def _send(self, batch: list[Waiting]) -> None:
        """Send a batch until it has a reply, or Redis counts as gone."""
        nonce, give_up, pause = secrets.token_hex(8), time.monotonic() + self.timeout, PAUSE
        while True:
            try:
                reply = await self._asked([one.operation for one in batch], nonce)
                if reply.status != "gone":
                    break
                await self._join()  # this process was taken for dead; what was cut off meanwhile is void
            except RedisGone as error:
                if time.monotonic() > give_up:
                    await self._outage(batch, error, lambda: self._recovered(batch))
                    return
                await asyncio.sleep(pause)
                pause = min(2 * pause, self._longest_pause)
            except EntriesLost:
                self._fail(batch)
                return
        if reply.status == "ok":
            self._distribute(batch, reply.results)
        else:
            self.end(EntriesLost(f"the game cannot go on: {reply.detail}", cause=reply.detail))
            self._fail(batch)

    async def _asked(self, operations: list[Operation], nonce: str) -> BatchReply:
        messages, self._called_at = self.messages, time.monotonic()
        try:
            raw = await self._client.run("batch", messages.keys, *messages.batch(operations, nonce))
        except WrongType as error:
            return BatchReply("lost", str(error), [])
        self.answered_at = self._called_at
        self.calls += 1
        self.operations += len(operations)
        return messages.read(raw)

    def _distribute(self, batch: list[Waiting], results: list[Any]) -> None:
        for one, result in zip(batch, results, strict=True):
            if one.result is not None and not one.result.done():
                one.result.set_result(self._value(one, result))

    def _value(self, one: Waiting, result: Any) -> Any:
        if not result:
            return None
        if one.scored is not None:
            return self.messages.decision(*one.scored, result)
        if isinstance(result, list):
            return read_named(result, self.messages.rules)
        return self.messages.ticket(result) if one.operation[0] in ("a", "j") else result

    def _fail(self, batch: list[Waiting]) -> None:
        """Nothing of it, and nothing that waits, can be done."""
        for one in (*batch, *self._queue):
            if one.result is not None and not one.result.done():
                one.result.set_exception(self.ended or self.down or StoreError("the store failed"))
                one.result.exception()  # its caller may have left
        self._queue.clear()

    def end(self, error: StoreError) -> None:
        """Note that the game cannot go on: entries were lost. What waits, and what is sent from now on, fails."""
        if self.ended is None:
            log.error("a game ends: a new one begins with a threshold of 0", extra={"why": str(error)})
        self.ended = error
        self._fail([])  # no batch follows that would

    async def _outage(
        self, batch: list[Waiting], error: RedisGone, back: Callable[[], Awaitable[list[Operation]]]
    ) -> None:
        """Redis is gone: requests end here, and outcomes are kept; go on when it is back.

        Parameters
        ----------
        batch: the operations that had no reply.
        error: why Redis counts as gone.
        back: returns when it is back and what was under way is cut off, with outcomes of the batch that are void.
        """
        self.down = error
        outcomes = [Waiting(one.operation) for one in (*batch, *self._queue) if one.operation[0] == "r"]
        log.error(
            "Redis is gone: the expert answers every request", extra={"error": str(error), "remedy": error.remedy}
        )
        self._noticed(error)
        self._fail(batch)
        try:
            given_up = await back()
        except Exception as unforeseen:  # whatever it is, Redis must not count as gone for ever
            log.error("what was under way cannot be recovered: this replica begins anew", exc_info=unforeseen)
            given_up = await self._joined_again()
        if self.ended is None:
            kept = [one for one in outcomes if one.operation not in given_up]
            self._queue.extendleft(reversed(kept))
            log.warning("Redis is back: requests that were under way are cut off")
        self.down = None
        self._noticed(None)

    async def _recovered(self, batch: list[Waiting]) -> list[Operation]:
        """Cut off what was under way; the operations of the batch that had taken effect, if it had."""
        nonce, pause, done = secrets.token_hex(8), PAUSE, list[Operation]()
        while True:
            try:
                reply = await self._asked([CUT_OFF], nonce)
            except RedisGone:
                await asyncio.sleep(pause)
                pause = min(2 * pause, self._longest_pause)
                continue
            if reply.status == "ok":
                return done
            if reply.status == "earlier":
                done = [one.operation for one in batch]
                self._give_up_decided(batch, reply.results)
                nonce = secrets.token_hex(8)
            elif reply.status == "gone":
                try:
                    await self._join()
                except StoreError:
                    await asyncio.sleep(pause)
            else:
                self.end(EntriesLost(f"the game cannot go on: {reply.detail}", cause=reply.detail))
                return done

    async def _joined_again(self) -> list[Operation]:
        """Register under another name; what was under way under the one before is cut off."""
        with suppress(StoreError):  # only if the game is over
            await self._join_within(math.inf)
        return []

    def _give_up_decided(self, batch: list[Waiting], results: list[Any]) -> None:
        """Give up on the rounds that were decided without this process knowing it."""
        for one, result in zip(batch, results, strict=True):
            if one.scored is not None and result:
                decision = self.messages.decision(*one.scored, result)
                if decision.call_expert:
                    note: dict[str, Any] = {}
                    self._queue.append(Waiting(resolving(decision.step, None, note, cause=RESTART)))
