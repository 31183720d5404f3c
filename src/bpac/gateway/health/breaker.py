"""A circuit breaker: requests do not wait for a model server that is down.

1. Closed: requests are sent, and attempts that fail in a row are counted. An answer, also a refusal, resets the count.
2. After ``limit`` failures in a row the server is suspected, and the gateway sends it a small request of its own
   (``HealthMonitor``). Requests are sent meanwhile.
3. Open: that request failed as well. Requests fail at once, and so do retries of requests that are under way.
4. The gateway sends further requests of its own until one is answered, which closes the breaker.

Only requests of the gateway's own open and close it, so that no caller can do either, and so that whether a draft is
asked for depends neither on what callers ask nor on what drafts answer (docs/guarantee.md). It also works without
traffic: a gateway that is not ready gets none.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from bpac.errors import AnswerError, Refused, Unavailable
from bpac.models.retrying import Failed

T = TypeVar("T")


def counts(failure: Failed) -> bool:
    """Whether a failed attempt may mean that the server is down; a rate limit does not.

    >>> counts(Failed("no answer in time")), counts(Failed("status 503", 503)), counts(Failed("status 429", 429))
    (True, True, False)
    """
    return failure.status is None or failure.status >= 500


class Breaker:
    """The circuit breaker of one model server.

    Parameters
    ----------
    who: the model and its server, for error messages.
    limit: failed attempts in a row after which the server is suspected; 0 for never.

    Attributes
    ----------
    failure: why it is open; none while it is closed.
    in_a_row: failed attempts since the last answer.
    suspected: called when the server is suspected to be down.
    """

    __slots__ = ("_limit", "_who", "failure", "in_a_row", "suspected")

    def __init__(self, who: str, limit: int) -> None:
        self._who = who
        self._limit = limit
        self.failure: Failed | None = None
        self.in_a_row = 0
        self.suspected: Callable[[], object] = nothing

    @property
    def enabled(self) -> bool:
        """Whether it may open at all."""
        return self._limit > 0

    @property
    def down(self) -> Unavailable | None:
        """The error of a request that is not sent; none if it is sent.

        It looks like the error of a draft that ended as the gateway's own request did: see ``ends_drafts``.
        """
        if self.failure is None:
            return None
        error = Unavailable(f"{self._who} is down: {self.failure}", self.failure.status)
        error.__cause__ = self.failure
        return error

    def check(self) -> None:
        """Raise ``Unavailable`` if the server is down."""
        if self.failure is not None and (error := self.down) is not None:
            raise error

    async def attempt(self, send: Callable[[], Awaitable[T]]) -> T:
        """The result of one attempt; an attempt that fails while the server is down is not repeated.

        Parameters
        ----------
        send: makes the attempt; it raises ``Failed`` if the attempt is worth repeating.
        """
        try:
            result = await send()
        except (Refused, AnswerError):
            self.in_a_row = 0
            raise
        except Failed as failure:
            if counts(failure):
                self.missed()
            if self.failure is not None:
                raise Unavailable(f"{self._who} is down: {failure}", failure.status) from failure
            raise
        self.in_a_row = 0
        return result

    def missed(self) -> None:
        """Count an attempt that had no answer."""
        self.in_a_row += 1
        if self.enabled and self.in_a_row >= self._limit and self.failure is None:
            self.suspected()

    def open(self, failure: Failed) -> None:
        """Send no requests.

        Parameters
        ----------
        failure: why.
        """
        self.failure = failure

    def close(self) -> None:
        """Send requests again."""
        self.failure = None
        self.in_a_row = 0


def nothing() -> None:
    """Do nothing."""
