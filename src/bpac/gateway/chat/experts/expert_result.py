"""The result of an expert call for the caller who waits for it: an answer, the draft instead, or an error."""

import asyncio
from typing import NamedTuple

from bpac.gateway.chat.experts.channel import Channel


class ExpertAnswer(NamedTuple):
    """The expert answers.

    Parameters
    ----------
    first: the whole answer, or the first part of a stream.
    rest: the further parts of a stream, and its end.
    """

    first: bytes
    rest: Channel


class DraftInstead(NamedTuple):
    """The expert does not answer, and the journal records that the caller gets the draft in its place.

    Parameters
    ----------
    reason: ``expert-failed`` or ``expert-refused``, as the header ``x-bpac-fallback`` says it.
    """

    reason: str


class ExpertResult:
    """Set by the task that asks the expert, and awaited by the caller, who may leave at any time.

    Attributes
    ----------
    begun: whether a part of the answer has come: from then on the draft cannot be served instead.
    ended: whether nothing more will come.
    deployment: the name of the deployment that answers; empty if the expert has only one.
    """

    __slots__ = ("_rest", "_result", "begun", "deployment", "ended")

    def __init__(self) -> None:
        self._result: asyncio.Future[ExpertAnswer | DraftInstead] = asyncio.get_running_loop().create_future()
        self._rest = Channel()
        self.begun = False
        self.ended = False
        self.deployment = ""

    async def get(self) -> ExpertAnswer | DraftInstead:
        """The result as soon as it is known; an error before the first part of the answer is raised."""
        return await self._result

    def put(self, part: bytes) -> None:
        """Pass on a part of the answer."""
        if self.begun:
            self._rest.put(part)
        else:
            self.begun = True
            self._set(ExpertAnswer(part, self._rest))

    def end(self) -> None:
        """End the answer."""
        self.ended = True
        self._rest.end()
        self._set(ExpertAnswer(b"", self._rest))  # only where no part has come

    def serve_draft(self, reason: str) -> None:
        """Have the caller get the draft; the journal must say so already."""
        self.ended = True
        self._set(DraftInstead(reason))

    def fail(self, error: Exception) -> None:
        """Have the caller get an error, in the stream if the answer has begun."""
        self.ended = True
        self._rest.end(error)
        if not self._result.done():
            self._result.set_exception(error)
            self._result.exception()  # so that asyncio does not report it where no caller waits

    def _set(self, result: ExpertAnswer | DraftInstead) -> None:
        if not self._result.done():
            self._result.set_result(result)
