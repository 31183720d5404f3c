"""Budgets: requests and tokens per day of each tenant, counted before and after each request.

1. A day is a day in UTC. What is used is counted by the name of a key, so that keys of one name share a budget, and a
   key can be replaced without a new budget.
2. A request is counted when it is admitted, and its prompt is estimated then. When its response has been sent, the
   tokens that the answer reports (``usage.total_tokens``) take the place of the estimate.
3. A request that the gateway does not answer is not counted. If a model fails, the request counts, and no tokens do.
4. A request is refused before anything is decided about it, so a budget cannot choose which rounds of a game count.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bpac.gateway.auth.keys import Identity
from bpac.gateway.http.bad_request import BadRequest

DAY = 86_400
# Bytes of a request per token, for the estimate of a prompt.
BYTES_PER_TOKEN = 4


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
    """

    used: Used
    estimate: int
    budgets: "Budgets"

    def settle(self, tokens: int) -> None:
        """Charge the tokens that were used instead of the estimate."""
        self.used.tokens += tokens - self.estimate
        self.estimate = tokens
        self.budgets.changed = True

    def refund(self) -> None:
        """The gateway did not answer: charge nothing."""
        self.settle(0)
        self.used.requests -= 1


def used_up(owner: str, budget: str, now: float) -> BadRequest:
    """The error of a request that a budget does not allow.

    Parameters
    ----------
    owner: the tenant.
    budget: what is used up.
    now: seconds since 1970.
    """
    wait = DAY - int(now) % DAY
    message = f"the budget of {owner} is used up: {budget} per day; the next day begins in {wait} s"
    return BadRequest(message, 429, code="insufficient_quota", retry_after=wait)


def estimated_tokens(identity: Identity, size: int) -> int:
    """The tokens that a request is charged in advance; none if tokens are not counted.

    Parameters
    ----------
    identity: who asks.
    size: bytes of the request's body.
    """
    counted = identity.budget is not None and identity.budget.tokens_per_day is not None
    return size // BYTES_PER_TOKEN if counted else 0


class Budgets:
    """What every tenant with a budget has used today.

    Attributes
    ----------
    changed: whether there is something to save.
    """

    def __init__(self) -> None:
        self._used: dict[str, Used] = {}
        self.changed = False

    def admit(self, identity: Identity, size: int, now: float | None = None) -> Charge | None:
        """Count a request, or raise ``BadRequest`` with status 429 if a budget is used up; none without a budget.

        Parameters
        ----------
        identity: who asks.
        size: bytes of the request's body.
        now: seconds since 1970 (default: the time).
        """
        budget = identity.budget
        if budget is None:
            return None
        now = time.time() if now is None else now
        used = self.today(identity.owner, now)
        for what, spent, most in (
            ("requests", used.requests, budget.requests_per_day),
            ("tokens", used.tokens, budget.tokens_per_day),
        ):
            if most is not None and spent >= most:
                raise used_up(identity.owner, f"{most} {what}", now)
        used.requests += 1
        estimate = estimated_tokens(identity, size)
        used.tokens += estimate
        self.changed = True
        return Charge(used, estimate, self)

    def today(self, name: str, now: float) -> Used:
        """What a tenant has used today."""
        day = int(now) // DAY
        used = self._used.get(name)
        if used is None or used.day < day:
            used = self._used[name] = Used(day)
        return used

    def to_json(self) -> dict[str, dict[str, int]]:
        """What was used, by tenant, as JSON values."""
        return {
            name: {"day": used.day, "requests": used.requests, "tokens": used.tokens}
            for name, used in self._used.items()
        }

    def load(self, values: Mapping[str, Any]) -> None:
        """Continue from what ``to_json`` returned."""
        self._used = {
            str(name): Used(int(used["day"]), int(used["requests"]), int(used["tokens"]))
            for name, used in values.items()
        }
