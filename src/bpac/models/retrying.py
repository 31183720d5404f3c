"""Retrying failed requests: which ones, how often and after which wait."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

from bpac.arguments import keep, positive, whole
from bpac.errors import Unavailable

T = TypeVar("T")

# Statuses below 500 after which a request may succeed later: timeout, conflict (a model is being loaded), too early,
# too many requests.
LATER = frozenset({408, 409, 425, 429})


class Failed(Exception):
    """An attempt that is worth repeating.

    Parameters
    ----------
    reason: what went wrong.
    status: the HTTP status (default: none, because there was no response).
    retry_after: seconds to wait that the server asked for (default: 0).
    """

    def __init__(self, reason: str, status: int | None = None, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how soon a failed attempt is repeated.

    Parameters
    ----------
    retries: how often a failed attempt is repeated (default: 2).
    backoff: seconds before the first repetition, doubled before each further one (default: 0.5).
    longest_wait: the most seconds to wait before a repetition (default: 60). If a server asks for more, it is not
        repeated.
    """

    retries: int = 2
    backoff: float = 0.5
    longest_wait: float = 60.0

    def __post_init__(self) -> None:
        whole(self.retries, "retries", 0)
        keep(self, backoff=positive(self.backoff, "backoff"))
        keep(self, longest_wait=positive(self.longest_wait, "longest_wait"))

    async def get(self, attempt: Callable[[], Awaitable[T]], who: str) -> T:
        """The result of the first attempt that succeeds, or ``Unavailable``.

        Parameters
        ----------
        attempt: makes one attempt; it raises ``Failed`` if the attempt is worth repeating.
        who: the server, for the error message.
        """
        tried = 0
        while True:
            try:
                return await attempt()
            except Failed as failure:
                tried += 1
                if tried > self.retries or failure.retry_after > self.longest_wait:
                    attempts = f"{tried} attempt{'s' if tried > 1 else ''}"
                    raise Unavailable(f"{who} gave no answer in {attempts}: {failure}", failure.status) from failure
                pause = max(self.pause(tried), failure.retry_after)
            await asyncio.sleep(pause)

    def pause(self, tried: int) -> float:
        """Seconds to wait after so many attempts, drawn at random so that many clients do not come back at once."""
        return min(self.longest_wait, self.backoff * 2.0 ** min(tried - 1, 60)) * random.uniform(0.5, 1.0)


async def started(items: AsyncGenerator[T, None]) -> tuple[T, AsyncGenerator[T, None]]:
    """The first item of a stream and the rest of it. An attempt can be repeated until the first item is there."""
    try:
        return await anext(items), items
    except StopAsyncIteration:
        raise Failed("a stream without events") from None


async def resumed(
    start: Callable[[], Awaitable[tuple[T, AsyncGenerator[T, None]]]], who: str
) -> AsyncGenerator[T, None]:
    """All items of a stream that is retried until its first item; ``Unavailable`` if it breaks off after that.

    Parameters
    ----------
    start: fetches the first item and the rest, retrying as it sees fit.
    who: the server, for the error message.
    """
    first, rest = await start()
    async with aclosing(rest):
        yield first
        try:
            async for item in rest:
                yield item
        except Failed as failure:
            raise Unavailable(f"{who} broke off its stream: {failure}", failure.status) from failure


def requested_wait(retry_after: str | None) -> float:
    """The seconds that a ``Retry-After`` header asks for, as a number or a date; 0 if it cannot be read.

    >>> requested_wait("2.5"), requested_wait(None), requested_wait("Thu, 01 Jan 1970 00:00:00 GMT")
    (2.5, 0.0, 0.0)
    """
    text = retry_after or "0"
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0
