"""Budgets and rate limits of keys that hold over all gateways which share games: Redis counts, by its own clock.

While Redis is gone, each gateway goes on by itself: with the budgets from what it read last, and with the limits per
minute from what it admitted itself. So all of them together may admit more. What was admitted then is not counted
later.
"""

import asyncio
from dataclasses import dataclass

from bpac.gateway.auth.keys import Identity, KeyLimits
from bpac.gateway.budgets.budgets import Budgets, Charge, estimated_tokens
from bpac.gateway.budgets.refusals import too_fast, used_up
from bpac.gateway.http.bad_request import BadRequest
from bpac.stores.redis.keys import SharedNames
from bpac.stores.redis.server.connecting import RedisClient, RedisGone

# In the order in which the script takes them and says which is reached.
LIMITS = ("requests per day", "tokens per day", "requests per minute", "tokens per minute")


@dataclass(slots=True)
class SharedCharge:
    """One request that was admitted.

    Parameters
    ----------
    budgets: where it is counted.
    known: the same request, as this gateway counts it.
    keys: of the counts in Redis.
    counted: when it was counted there, on the clock of Redis.
    """

    budgets: "SharedBudgets"
    known: Charge
    keys: list[str]
    counted: int

    @property
    def estimate(self) -> int:
        """The tokens that were charged in advance."""
        return self.known.estimate

    @estimate.setter
    def estimate(self, tokens: int) -> None:
        self.known.estimate = tokens

    def settle(self, tokens: int) -> None:
        """Charge the tokens that were used instead of the estimate."""
        self._add(0, tokens - self.estimate)
        self.known.settle(tokens)

    def refund(self) -> None:
        """The gateway did not answer: charge nothing."""
        self._add(-1, -self.estimate)
        self.known.refund()

    def _add(self, requests: int, tokens: int) -> None:
        if requests or tokens:
            self.budgets.add(self, requests, tokens)


class SharedBudgets:
    """What every tenant with a limit has used, at all gateways.

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
        """Count a request, or raise ``BadRequest`` with status 429 if a limit is reached; none without a limit."""
        limits = identity.limits
        if limits is None:
            return None
        most = [-1 if one is None else one for one in limits]
        keys = [self._names.of(f"{what}:{identity.owner}") for what in ("used", "minute")]
        try:
            reached, wait, now, requests, tokens = await self._client.run(
                "spend", keys, *most, estimated_tokens(identity, size)
            )
        except RedisGone:
            return self._known.admit(identity, size)
        used = self._known.today(identity.owner, now)
        if reached:
            used.requests, used.tokens = requests, tokens
            raise _refusal(identity.owner, limits, reached.decode(), wait)
        charge = self._known.count(identity, size, now)
        used.requests, used.tokens = requests, tokens
        return SharedCharge(self, charge, keys, now)

    def add(self, charge: SharedCharge, requests: int, tokens: int) -> None:
        """Change counts in Redis, without waiting."""
        task = asyncio.create_task(self._added(charge, requests, tokens))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _added(self, charge: SharedCharge, requests: int, tokens: int) -> None:
        limited = int(charge.known.minute is not None)
        try:
            await self._client.run("settle_charge", charge.keys, charge.counted, requests, tokens, limited)
        except RedisGone:
            return  # more is counted than was used

    async def stop(self) -> None:
        """Wait until everything is counted."""
        if self._tasks:
            await asyncio.wait(self._tasks)


def _refusal(owner: str, limits: KeyLimits, reached: str, wait: int) -> BadRequest:
    most = limits[LIMITS.index(reached)] or 0
    what, _, per = reached.partition(" per ")
    return used_up(owner, most, what, wait) if per == "day" else too_fast(owner, most, what, wait)
