"""A channel: parts of an answer on their way from the task that fetches them to the caller, who may have left."""

import asyncio
from collections import deque
from typing import Any


class Channel:
    """Parts of an answer, in order.

    It is unbounded: fetching must not wait for a slow caller, or callers could make the audit of a round last as long
    as they like.
    """

    __slots__ = ("_parts", "_reader")

    def __init__(self) -> None:
        # Lighter than a queue, which has locks for many readers: there is at most one reader here.
        self._parts: deque[Any] = deque()
        self._reader: asyncio.Future[None] | None = None

    def put(self, part: Any) -> None:
        """Add a part."""
        self._parts.append(part)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def end(self, error: Exception | None = None) -> None:
        """End the answer, with an error if it failed."""
        self.put(error)

    async def get(self) -> Any:
        """The next part; none at the end. An error that ended the answer is raised."""
        while not self._parts:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        part = self._parts.popleft()
        if isinstance(part, Exception):
            raise part
        return part
