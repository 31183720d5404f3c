"""Budgets of keys that hold over all gateways which share games: what was used is counted in Redis.

While Redis is gone, each gateway goes on from what it knows, so that a budget may be exceeded by what the others admit
meanwhile. What was admitted then is not counted later.
"""

import asyncio
import time
from dataclasses import dataclass

from bpac.gateway.auth.keys import Identity
from bpac.gateway.budgets.budgets import DAY, Budgets, Charge, Used, estimated_tokens, used_up
from bpac.stores.redis.connecting import RedisClient, RedisGone
from bpac.stores.redis.keys import SharedNames

# Counts of a day are kept a little longer than the day.
KEEP = 2 * DAY


@dataclass(slots=True)
class SharedCharge:
    """One request that was admitted.

    Parameters
    ----------
    budgets: where it is counted.
    key: of the counts in Redis.
    used: what this gateway knows of them.
    estimate: the tokens that were charged in advance.
    """

    budgets: "SharedBudgets"
    key: str
    used: Used
    estimate: int

    def settle(self, tokens: int) -> None:
        """Charge the tokens that were used instead of the estimate."""
        self._add(0, tokens - self.estimate)
        self.estimate = tokens

    def refund(self) -> None:
        """The gateway did not answer: charge nothing."""
        self._add(-1, -self.estimate)
        self.estimate = 0

    def _add(self, requests: int, tokens: int) -> None:
        self.used.requests += requests
        self.used.tokens += tokens
        if requests or tokens:
            self.budgets.add(self.key, requests, tokens)


class SharedBudgets:
    """What every tenant with a budget has used today, at all gateways.

    Parameters
    ----------
    client: the connections to Redis.
    known: what this gateway knows.
    """

    def __init__(self, client: RedisClient, known: Budgets) -> None:
        self._client = client
        self._names = SharedNames(client.address.name)
        self._known = known
        self._tasks: set[asyncio.Task[None]] = set()

    async def admit(self, identity: Identity, size: int) -> SharedCharge | Charge | None:
        """Count a request, or raise ``BadRequest`` with status 429 if a budget is used up; none without a budget."""
        budget = identity.budget
        if budget is None:
            return None
        now, estimate = time.time(), estimated_tokens(identity, size)
        limits = [-1 if most is None else most for most in (budget.requests_per_day, budget.tokens_per_day)]
        key = self._names.of(f"used:{int(now) // DAY}:{identity.owner}")
        try:
            what, requests, tokens = await self._client.run("spend", [key], *limits, 1, estimate, KEEP)
        except RedisGone:
            return self._known.admit(identity, size, now)
        used = self._known.today(identity.owner, now)
        used.requests, used.tokens = requests, tokens
        if what:
            most = limits[0] if what == b"requests" else limits[1]
            raise used_up(identity.owner, f"{most} {what.decode()}", now)
        return SharedCharge(self, key, used, estimate)

    def add(self, key: str, requests: int, tokens: int) -> None:
        """Change counts in Redis, without waiting."""
        task = asyncio.create_task(self._added(key, requests, tokens))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _added(self, key: str, requests: int, tokens: int) -> None:
        try:
            await self._client.run("spend", [key], -1, -1, requests, tokens, KEEP)
        except RedisGone:
            return  # more is counted than was used

    async def stop(self) -> None:
        """Wait until everything is counted."""
        if self._tasks:
            await asyncio.wait(self._tasks)
