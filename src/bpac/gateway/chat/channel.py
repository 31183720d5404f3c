"""A channel: from the task that fetches an answer to the caller who may have left."""

import asyncio
from collections import deque
from typing import Any


class Channel:
    """The parts of an answer in order.

    It is not bounded: the fetching must not wait for a slow caller, or an audit would last as long as a caller likes.
    """

    def __init__(self) -> None:
        # Lighter than a queue, which has locks for many readers: here one waits at most.
        self._parts: deque[Any] = deque()
        self._reader: asyncio.Future[None] | None = None
        self.begun = False
        self.ended = False
        # Why the draft is served in the place of an answer that failed, once that is recorded; empty if it is not.
        self.draft_instead = ""

    def put(self, part: Any) -> None:
        """Add a part."""
        self.begun = True
        self._add(part)

    def end(self, error: Exception | None = None) -> None:
        """Say that no more parts come, and what went wrong if something did."""
        self.ended = True
        self._add(error)

    async def get(self) -> Any:
        """The next part, none at the end; or what went wrong is raised."""
        while not self._parts:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        part = self._parts.popleft()
        if isinstance(part, Exception):
            raise part
        return part

    def _add(self, part: Any) -> None:
        self._parts.append(part)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
