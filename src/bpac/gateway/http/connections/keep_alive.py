r"""Keep-alive comments: a stream whose first event takes long gets comments, so that proxies do not give it up.

1. The response of a stream starts with its first event, so that errors before it have a status, and decisions headers.
2. If the first event has not come after some seconds, the response starts without it, with the header
   ``x-bpac-decision: pending``, and gets a comment (``: waiting``) every so often, or what its API has for that, such
   as the event ``ping``. Clients ignore both.
3. What the headers would have said follows as comments (``: x-bpac-decision: …``) before the first event, and an error
   as an event.
"""

import asyncio
from collections.abc import Iterable

from bpac.gateway.http.asgi import Message, Send, send_error
from bpac.gateway.http.doors.error_formats import ErrorFormat

Header = tuple[bytes, bytes]

STREAM_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
)


class KeepAlive:
    """The response to one request, which may have started before its first event.

    Parameters
    ----------
    send: sends the messages of the response.
    every: seconds until the first comment, and between comments; 0 if the request does not stream, or for no comments.
    errors: how errors and comments look.
    """

    __slots__ = ("_errors", "_every", "_send", "_started", "_task", "_timer")

    def __init__(self, send: Send, every: float, errors: ErrorFormat) -> None:
        self._send = send
        self._every = every
        self._errors = errors
        self._started = False
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        if every:
            # A timer and not a task: nearly all responses start before it.
            self._timer = asyncio.get_running_loop().call_later(every, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._comment())

    async def _comment(self) -> None:
        headers = [*STREAM_HEADERS, (b"x-bpac-decision", b"pending")]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        self._started = True
        while True:
            await self._send_part(self._errors.waiting)
            await asyncio.sleep(self._every)

    def end(self) -> None:
        """Send no more comments: the response is there, or the caller has left."""
        # A task that is cancelled sends nothing more, so it need not be awaited.
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    async def send(self, message: Message) -> None:
        """Send a message of the response; if it has started already, its headers become comments."""
        if self._started and message["type"] == "http.response.start":
            await self._send_part(_comments(message["headers"]))
        else:
            await self._send(message)

    async def send_error(self, error: Exception, known: Iterable[Header]) -> None:
        """Send an error as the response, or as the last event if the response has started.

        Parameters
        ----------
        error: the error.
        known: headers about the decision.
        """
        if not self._started:
            await send_error(self._send, self._errors.response(error), known)
            return
        await self._send_part(_comments(known) + self._errors.event(error))
        await self._send({"type": "http.response.body", "body": b""})

    async def _send_part(self, part: bytes) -> None:
        await self._send({"type": "http.response.body", "body": part, "more_body": True})


def _comments(headers: Iterable[Header]) -> bytes:
    lines = [b": %b: %b\n" % header for header in headers if header[0].startswith(b"x-bpac-")]
    return b"".join(lines) + b"\n" if lines else b""
