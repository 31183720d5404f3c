"""A channel: from the task that fetches an answer to the caller who may have left."""

import asyncio
from typing import Any


class Channel:
    """The parts of an answer in order.

    It is not bounded: the fetching must not wait for a slow caller, or an audit would last as long as a caller likes.
    """

    def __init__(self) -> None:
        self._parts: asyncio.Queue[Any] = asyncio.Queue()
        self.begun = False

    def put(self, part: Any) -> None:
        """Add a part."""
        self.begun = True
        self._parts.put_nowait(part)

    def end(self, error: Exception | None = None) -> None:
        """Say that no more parts come, and what went wrong if something did."""
        self._parts.put_nowait(error)

    async def get(self) -> Any:
        """The next part, none at the end; or what went wrong is raised."""
        part = await self._parts.get()
        if isinstance(part, Exception):
            raise part
        return part
