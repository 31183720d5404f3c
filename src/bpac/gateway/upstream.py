"""Upstreams: the model servers behind the gateway, asked in the caller's own words."""

import time
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any, NoReturn

from bpac import __version__
from bpac.errors import AnswerError, MissingExtra, Refused, Unavailable
from bpac.gateway.completions import Completion, read_completion, to_json
from bpac.gateway.model_settings import ModelSettings
from bpac.gateway.pieces import Event, Reader, read_events
from bpac.gateway.tracing import NoTraces, Traces
from bpac.models.connections import read_out, read_whole
from bpac.models.endpoint import Endpoint, Reply
from bpac.models.fields import merged
from bpac.models.retrying import LATER, Failed, Patience, begun, carried_on, requested_wait

try:
    import aiohttp
    from multidict import CIMultiDict
except ImportError as error:
    raise MissingExtra("aiohttp", "gateway") from error

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": f"bpac/{__version__}",
}
# The mark of the end of a stream.
DONE = b"[DONE]"
# Longer than anything a server writes in earnest.
LONGEST_ERROR, LONGEST_ANSWER = 2**20, 2**26


class PassedOn(Refused):
    """The server said no, and the caller is told so in the server's own words.

    Parameters
    ----------
    message: what was asked of whom, and what came back.
    status, body, content_type: the server's reply.
    retry_after: its ``Retry-After`` header.
    """

    def __init__(self, message: str, status: int, body: bytes, content_type: str, retry_after: str | None) -> None:
        super().__init__(message, status)
        self.body = body
        self.content_type = content_type
        self.retry_after = retry_after


class _Busy(Failed):
    """An attempt that failed with a reply."""

    reply: PassedOn


class Upstream:
    """One model on one server.

    Parameters
    ----------
    settings: where it is and how it is asked.
    session: the connections, shared by all upstreams.
    traces: what the server is told of the trace a request belongs to.
    """

    def __init__(self, settings: ModelSettings, session: aiohttp.ClientSession, traces: Traces | None = None) -> None:
        self.settings = settings
        self._traces = traces or NoTraces()
        headers = CIMultiDict(HEADERS)
        if settings.api_key:
            headers["Authorization"] = f"Bearer {settings.api_key}"
        headers.update(settings.headers)
        self._endpoint = Endpoint(session, f"{settings.base_url}/chat/completions", headers)
        self._patience = Patience(settings.retries, settings.backoff)
        self._whole_timeout = aiohttp.ClientTimeout(total=settings.timeout)
        self._piece_timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=settings.timeout, sock_read=settings.timeout
        )

    def __str__(self) -> str:
        return f"{self.settings.model} at {self.settings.base_url}"

    async def whole(self, body: Mapping[str, Any], *, numbers_only: bool = False) -> Completion:
        """A whole answer, of its tokens only the log-probabilities if they suffice; ``PassedOn`` or ``Unavailable``."""
        completion: Completion = await self._tried(partial(self._ask, self._request(body), numbers_only))
        return completion

    def stream(self, body: Mapping[str, Any], *, within: float) -> AsyncGenerator[list[Event], None]:
        """The pieces of an answer, as many at a time as come at once; ``PassedOn`` or ``Unavailable`` if none come.

        Parameters
        ----------
        body: what is asked.
        within: seconds after which a stream that has not ended is given up, though its server is not silent.
        """
        request, end = self._request(body), time.monotonic() + within
        return carried_on(lambda: self._tried(lambda: begun(self._events(request, end))), str(self))

    def _request(self, body: Mapping[str, Any]) -> bytes:
        ours = {**self.settings.body, "model": self.settings.model}
        return to_json(merged(body, ours) if self.settings.body else {**body, **ours})

    async def _tried(self, attempt: Any) -> Any:
        try:
            return await self._patience.get(attempt, str(self))
        except Unavailable as error:
            # Who is told "later" by a server that means it has to hear it from us, too.
            if isinstance(error.__cause__, _Busy) and error.status is not None and error.status < 500:
                raise error.__cause__.reply from error
            raise

    async def _ask(self, request: bytes, numbers_only: bool) -> Completion:
        try:
            async with self._endpoint.post(request, self._whole_timeout, self._traces.carried()) as reply:
                if reply.status >= 300:
                    await self._refused(reply)
                data = await read_whole(reply.content, LONGEST_ANSWER)
            return read_completion(data, numbers_only=numbers_only)
        except (aiohttp.ClientError, TimeoutError, OSError, AnswerError, ValueError, RecursionError) as error:
            raise Failed(_described(error)) from error

    async def _events(self, request: bytes, end: float) -> AsyncGenerator[list[Event], None]:
        reader, seen = Reader(), list[Event]()
        try:
            async with self._endpoint.post(request, self._piece_timeout, self._traces.carried()) as reply:
                if reply.status >= 300:
                    await self._refused(reply)
                async for data in reply.content.iter_any():
                    if time.monotonic() > end:
                        raise Unavailable(f"{self} does not end its stream")
                    texts = reader.feed(data)
                    last = _end_of(texts)
                    if events := read_events(texts[:last]):
                        seen += events
                        yield events
                    if last is not None:
                        await read_out(reply.content)
                        return
        except (aiohttp.ClientError, TimeoutError, OSError, AnswerError) as error:
            raise Failed(_described(error)) from error
        # Some servers leave out the mark of the end; then the model must have said why it stopped.
        if not any(event.finishes for event in seen):
            raise Failed("the stream was cut off")

    async def _refused(self, reply: Reply) -> NoReturn:
        status, said = reply.status, await reply.content.read(LONGEST_ERROR)
        retry_after = reply.headers.get("Retry-After")
        content_type = reply.headers.get("Content-Type", "application/json")
        if 300 <= status < 400:
            raise Unavailable(f"{self} is elsewhere (status {status}): correct its base_url", status)
        passed_on = PassedOn(f"{self} refused with status {status}", status, said, content_type, retry_after)
        if status < 500 and status not in LATER:
            raise passed_on
        busy = _Busy(f"status {status}", status, requested_wait(retry_after))
        busy.reply = passed_on
        raise busy


def _end_of(texts: list[bytes]) -> int | None:
    """Where the mark of the end is, if it is there."""
    if DONE in texts:
        return texts.index(DONE)
    return len(texts) - 1 if texts and texts[-1].strip() == DONE else None


def _described(error: Exception) -> str:
    # What the server sent is not quoted: it may hold an answer, and errors are logged.
    return "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
