"""Budgets and rate limits: requests and tokens of each tenant, counted before and after each request.

1. A day is a day in UTC; a minute is any 60 seconds. What is used is counted by the name of a key, so that keys of one
   name share a budget, and a key can be replaced without a new budget.
2. A request is counted when it is admitted, and its prompt is estimated then. When its response has been sent, the
   tokens that the answer reports (``usage.total_tokens``) take the place of the estimate. Of a minute, tokens beyond
   the estimate count in the second in which they are known: otherwise a long answer would be forgotten at its end.
3. A request that the gateway does not answer is not counted. If a model fails, the request counts, and no tokens do.
4. A request is refused before anything is decided about it, so a limit cannot choose which rounds of a game count.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bpac.gateway.auth.keys import Identity, KeyLimits
from bpac.gateway.budgets.minute import LastMinute
from bpac.gateway.budgets.refusals import too_fast, used_up

DAY = 86_400
# Bytes of a request per token, for the estimate of a prompt.
BYTES_PER_TOKEN = 4
NO_LIMITS = KeyLimits()


@dataclass(slots=True)
class Used:
    """What a tenant has used on one day.

    Parameters
    ----------
    day: days since 1970.
    requests, tokens: how many.
    """

    day: int
    requests: int = 0
    tokens: int = 0


@dataclass(slots=True)
class Charge:
    """One request that was admitted.

    Parameters
    ----------
    used: where it is counted.
    estimate: the tokens that were charged in advance; none if tokens are not counted.
    budgets: learns that something has changed.
    minute: where it is counted for the limits per minute; none if its key has no such limit.
    second: in which it was admitted, on the clock of the budgets.
    """

    used: Used
    estimate: int
    budgets: "Budgets"
    minute: LastMinute | None = None
    second: int = 0

    def settle(self, tokens: int) -> None:
        """Charge the tokens that were used instead of the estimate."""
        more = tokens - self.estimate
        self.used.tokens += more
        self.estimate = tokens
        self.budgets.changed = True
        if self.minute is not None and more > 0:
            self.minute.add(int(self.budgets.clock()), 0, more)
        elif self.minute is not None:
            self.minute.take_back(self.second, 0, -more)

    def refund(self) -> None:
        """The gateway did not answer: charge nothing."""
        self.settle(0)
        self.used.requests -= 1
        if self.minute is not None:
            self.minute.take_back(self.second, 1, 0)


def estimated_tokens(identity: Identity, size: int) -> int:
    """The tokens that a request is charged in advance; none if tokens are not counted.

    Parameters
    ----------
    identity: who asks.
    size: bytes of the request's body.
    """
    counted = identity.limits is not None and identity.limits.counts_tokens
    return size // BYTES_PER_TOKEN if counted else 0


class Budgets:
    """What every tenant with a limit has used today and in the last minute.

    Parameters
    ----------
    clock: a monotonic clock in seconds, for the limits per minute.

    Attributes
    ----------
    changed: whether there is something to save.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._used: dict[str, Used] = {}
        self._minutes: dict[str, LastMinute] = {}
        self.clock = clock
        self.changed = False

    def admit(self, identity: Identity, size: int, now: float | None = None) -> Charge | None:
        """Count a request, or raise ``BadRequest`` with status 429 if a limit is reached; none without a limit.

        Parameters
        ----------
        identity: who asks.
        size: bytes of the request's body.
        now: seconds since 1970 (default: the time).
        """
        limits = identity.limits
        if limits is None:
            return None
        now = time.time() if now is None else now
        used = self.today(identity.owner, now)
        for what, spent, most in (
            ("requests", used.requests, limits.requests_per_day),
            ("tokens", used.tokens, limits.tokens_per_day),
        ):
            if most is not None and spent >= most:
                raise used_up(identity.owner, most, what, DAY - int(now) % DAY)
        self._check_minute(identity.owner, limits)
        return self.count(identity, size, now)

    def _check_minute(self, owner: str, limits: KeyLimits) -> None:
        minute = self._minutes.get(owner)
        if minute is None:
            return
        now = self.clock()
        for what, most in (("requests", limits.requests_per_minute), ("tokens", limits.tokens_per_minute)):
            if most is not None and (wait := minute.wait(now, most, tokens=what == "tokens")):
                raise too_fast(owner, most, what, wait)

    def count(self, identity: Identity, size: int, now: float) -> Charge:
        """Count a request that is admitted.

        Parameters
        ----------
        identity: who asks.
        size: bytes of the request's body.
        now: seconds since 1970.
        """
        used, estimate = self.today(identity.owner, now), estimated_tokens(identity, size)
        used.requests += 1
        used.tokens += estimate
        self.changed = True
        if not (identity.limits or NO_LIMITS).has_rate:
            return Charge(used, estimate, self)
        minute = self._minutes.setdefault(identity.owner, LastMinute())
        second = int(self.clock())
        minute.add(second, 1, estimate)
        return Charge(used, estimate, self, minute, second)

    def today(self, name: str, now: float) -> Used:
        """What a tenant has used today."""
        day = int(now) // DAY
        used = self._used.get(name)
        if used is None or used.day < day:
            used = self._used[name] = Used(day)
        return used

    def to_json(self) -> dict[str, dict[str, int]]:
        """What was used per day, by tenant, as JSON values."""
        return {
            name: {"day": used.day, "requests": used.requests, "tokens": used.tokens}
            for name, used in self._used.items()
        }

    def shown(self) -> dict[str, dict[str, Any]]:
        """What was used per day and, by tenants with a limit per minute, in the last minute, as JSON values."""
        found: dict[str, dict[str, Any]] = {name: {**used} for name, used in self.to_json().items()}
        now = self.clock()
        for name, minute in self._minutes.items():
            requests, tokens = minute.used(now)
            found[name]["last_minute"] = {"requests": requests, "tokens": tokens}
        return found

    def load(self, values: Mapping[str, Any]) -> None:
        """Continue from what ``to_json`` returned."""
        self._used = {
            str(name): Used(int(used["day"]), int(used["requests"]), int(used["tokens"]))
            for name, used in values.items()
        }
