"""Upstreams: the model servers behind the gateway, asked in the caller's own words."""

import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any, NoReturn

import orjson

from bpac import __version__
from bpac.errors import AnswerError, MissingExtra, Refused, Unavailable
from bpac.gateway.config.limits import Limits
from bpac.gateway.config.models import ModelSettings
from bpac.gateway.telemetry.log_rate import LogRate
from bpac.gateway.telemetry.metrics import Metrics
from bpac.gateway.telemetry.traces import NoTraces, Traces
from bpac.models.connections import TooLong, read_at_most, read_out, read_whole
from bpac.models.endpoint import Endpoint, HttpResponse
from bpac.models.fields import below, merged, redacted
from bpac.models.retrying import LATER, Failed, Patience, begun, carried_on, requested_wait
from bpac.wire.completions import Completion, read_completion, to_json
from bpac.wire.events import Event, SseReader, read_events
from bpac.wire.json_values import more_values_than

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
# Events at the end of a stream among which one says why the model stopped: more than anybody asks for choices.
ENDING = 256
# Bytes of an error that are read.
LONGEST_ERROR = 2**20
# Statuses about our own credentials, which callers have nothing to do with: not ours to pass on.
CREDENTIALS = frozenset({401, 403, 407})

log = logging.getLogger("bpac.gateway")


class PassedOn(Refused):
    """The server said no, and the caller is told so in the server's own words, as far as they are JSON.

    Parameters
    ----------
    message: what was asked of whom, and what came back.
    status: the server's status.
    body: the JSON object it sent; empty if it sent something else.
    retry_after: its ``Retry-After`` header.
    """

    def __init__(self, message: str, status: int, body: bytes, retry_after: str | None) -> None:
        super().__init__(message, status)
        self.body = body
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
    metrics: where failed attempts are counted, as ``bpac_upstream_failures_total{model,kind}``.
    limits: how long an answer may be.
    """

    def __init__(
        self,
        settings: ModelSettings,
        session: aiohttp.ClientSession,
        traces: Traces | None = None,
        metrics: Metrics | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.settings = settings
        self._traces = traces or NoTraces()
        self._metrics = metrics or Metrics()
        self._limits = limits or Limits()
        self._log_rate = LogRate()
        self._described = f"{settings.model} at {redacted(settings.base_url)}"  # once: every request has it at hand
        headers = CIMultiDict(HEADERS)
        if settings.api_key:
            headers["Authorization"] = f"Bearer {settings.api_key}"
        headers.update(settings.headers)
        self._endpoint = Endpoint(session, below(settings.base_url, "/chat/completions"), headers)
        self._patience = Patience(settings.retries, settings.backoff)
        self._whole_timeout = aiohttp.ClientTimeout(total=settings.timeout)
        self._piece_timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=settings.timeout, sock_read=settings.timeout
        )

    def __str__(self) -> str:
        return self._described

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
                data = await read_whole(reply.content, self._limits.max_answer)
            if more_values_than(data, self._limits.max_answer_values):
                raise TooLong(f"the answer has more than {self._limits.max_answer_values} values")
            return read_completion(data, numbers_only=numbers_only)
        except TooLong as error:
            raise self._too_long(error) from error
        except (aiohttp.ClientError, TimeoutError, OSError, AnswerError, ValueError, RecursionError) as error:
            raise self._failed(error) from error

    async def _events(self, request: bytes, end: float) -> AsyncGenerator[list[Event], None]:
        reader, size = SseReader(), 0
        # The latest only: all of a long stream would be held as long as it lasts.
        seen: deque[Event] = deque(maxlen=ENDING)
        small = min(self._limits.max_answer, self._limits.max_answer_values)
        try:
            async with self._endpoint.post(request, self._piece_timeout, self._traces.carried()) as reply:
                if reply.status >= 300:
                    await self._refused(reply)
                async for data in reply.content.iter_any():
                    if time.monotonic() > end:
                        self._count("timeout")
                        raise Unavailable(f"{self} does not end its stream")
                    size += len(data)
                    texts = reader.feed(data)
                    if size > small:  # nearly always it is not, and nothing needs to be checked
                        self._check(texts, size)
                    last = _end_of(texts)
                    if events := read_events(texts[:last]):
                        seen.extend(events)
                        yield events
                    if last is not None:
                        await read_out(reply.content)
                        return
        except TooLong as error:
            raise self._too_long(error) from error
        except (aiohttp.ClientError, TimeoutError, OSError, AnswerError) as error:
            raise self._failed(error) from error
        # Some servers leave out the mark of the end; then the model must have said why it stopped.
        if not any(event.finishes for event in seen):
            self._count("cut_off")
            raise Failed("the stream was cut off")

    def _check(self, texts: list[bytes], size: int) -> None:
        """Raise ``TooLong`` if there is more in a stream so far, or in its latest events, than is allowed."""
        most, values = self._limits.max_answer, self._limits.max_answer_values
        if size > most:
            raise TooLong(f"the stream is longer than {most} bytes")
        if any(more_values_than(text, values) for text in texts):
            raise TooLong(f"an event has more than {values} values")

    async def _refused(self, reply: HttpResponse) -> NoReturn:
        status, said = reply.status, await read_at_most(reply.content, LONGEST_ERROR)
        retry_after = reply.headers.get("Retry-After")
        if 300 <= status < 400:
            self._count("elsewhere")
            raise Unavailable(f"{self} is elsewhere (status {status}): correct its base_url", status)
        if status in CREDENTIALS:
            # Without a status: callers would read it as a verdict on their own key.
            self._count("credentials", status=status, remedy="check api_key and headers of this model")
            raise Unavailable(f"{self} does not accept the gateway's credentials (status {status})")
        refusal = PassedOn(f"{self} refused with status {status}", status, json_object(said), retry_after)
        if status < 500 and status not in LATER:
            self._count("refused")
            raise refusal
        self._count("busy")
        busy = _Busy(f"status {status}", status, requested_wait(retry_after))
        busy.reply = refusal
        raise busy

    def _too_long(self, error: TooLong) -> Unavailable:
        """Why an answer is given up; it is not asked for again, for it would be as long."""
        self._count("too_long", error=str(error))
        return Unavailable(f"{self}: {error}")

    def _failed(self, error: Exception) -> Failed:
        """A failed attempt, counted by its kind."""
        if isinstance(error, TimeoutError):
            self._count("timeout")
            return Failed("no answer in time")
        self._count("unusable" if isinstance(error, AnswerError | ValueError | RecursionError) else "connection")
        # What the server sent is not quoted: it may hold an answer, and errors are logged.
        return Failed(type(error).__name__)

    def _count(self, kind: str, **told: object) -> None:
        self._metrics.count("bpac_upstream_failures_total", model=self.settings.name, kind=kind)
        if told and (times := self._log_rate.count(kind)):
            known = {"model": self.settings.name, "kind": kind, "since_last_line": times}
            log.error("model cannot be used", extra=known | told)


def json_object(data: bytes) -> bytes:
    """What is passed on of a server's error: a JSON object as it is, and of anything else nothing.

    >>> json_object(b'{"error": {}}'), json_object(b"<html>")
    (b'{"error": {}}', b'')
    """
    try:
        return data if isinstance(orjson.loads(data), dict) else b""
    except orjson.JSONDecodeError:
        return b""


def _end_of(texts: list[bytes]) -> int | None:
    """Where the mark of the end is, if it is there."""
    if DONE in texts:
        return texts.index(DONE)
    return len(texts) - 1 if texts and texts[-1].strip() == DONE else None
