"""The model servers behind the gateway: a caller's request is sent to them, and their answers are read."""

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, NoReturn, TypeVar

from bpac.errors import AnswerError, ModelError, Refused, Unavailable
from bpac.gateway.config.limits import Limits
from bpac.gateway.config.models import ModelSettings
from bpac.gateway.telemetry.counters import Metrics
from bpac.gateway.telemetry.log_rate import LogRate
from bpac.gateway.telemetry.traces import NoTraces, Traces
from bpac.models.connections import FAILURES, HEADERS, HttpResponse, Session, idle_timeout, total_timeout
from bpac.models.endpoint import new_endpoint
from bpac.models.fields import endpoint_url, merged, merged_headers, redacted
from bpac.models.reading import StreamCutOff, TooLong, TooSlow, read_answer, read_start, read_whole, stream_events
from bpac.models.retrying import LATER, Failed, RetryPolicy, requested_wait, resumed, started
from bpac.models.via import via
from bpac.wire.completions import Completion
from bpac.wire.json import from_strict_json, to_json
from bpac.wire.stream import StreamEvent

# Bytes of an error response that are read.
LONGEST_ERROR = 2**20
# Statuses about the gateway's own credentials. A caller would take them for a verdict on the caller's key.
CREDENTIALS = frozenset({401, 403, 407})

T = TypeVar("T")

log = logging.getLogger("bpac.gateway")


class UpstreamRefused(Refused):
    """The server refused the request, and the caller gets the server's own error.

    Parameters
    ----------
    message: which server refused, and with which status.
    status: the server's status.
    body: the JSON object it sent; empty if it sent something else.
    retry_after: its ``Retry-After`` header.
    """

    def __init__(self, message: str, status: int, body: bytes, retry_after: str | None) -> None:
        super().__init__(message, status)
        self.body = body
        self.retry_after = retry_after


class _Busy(Failed):
    """An attempt that the server answered with an error which may pass."""

    refusal: UpstreamRefused


class Upstream:
    """One model on one server.

    Parameters
    ----------
    settings: the model and its server.
    session: the connections, shared by all upstreams.
    traces: adds headers to requests, with which the server can continue the trace (default: no traces).
    metrics: counts failed attempts as ``bpac_upstream_failures_total{model,kind}`` (default: a private counter).
    limits: how long an answer may be.
    path: the endpoint below the address of the server.
    """

    def __init__(
        self,
        settings: ModelSettings,
        session: Session,
        traces: Traces | None = None,
        metrics: Metrics | None = None,
        limits: Limits | None = None,
        *,
        path: str = "/chat/completions",
    ) -> None:
        self.settings = settings
        self._traces = traces or NoTraces()
        self._metrics = metrics or Metrics()
        self._limits = limits or Limits()
        self._log_rate = LogRate()
        self._described = f"{settings.model} at {redacted(settings.base_url)}"  # made once: every request needs it
        key = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        headers = merged_headers(HEADERS, key, settings.headers)
        way = via(settings.base_url, settings.ca_file)
        self._endpoint = new_endpoint(session, endpoint_url(settings.base_url, path), headers, way)
        self._retrying = RetryPolicy(settings.retries, settings.backoff)
        self._whole_timeout = total_timeout(settings.timeout)
        self._stream_timeout = idle_timeout(settings.timeout)

    def __str__(self) -> str:
        return self._described

    async def whole(self, body: Mapping[str, Any], *, logprobs_only: bool = False) -> Completion:
        """A whole answer; ``UpstreamRefused`` or ``Unavailable`` if there is none.

        Parameters
        ----------
        body: the request.
        logprobs_only: whether the log-probability is all that is needed of each token (default: no).
        """
        return await self._retried(partial(self._complete, self._request(body), logprobs_only))

    def stream(self, body: Mapping[str, Any], *, within: float) -> AsyncGenerator[list[StreamEvent], None]:
        """The events of an answer, in lists of those that arrived together; ``UpstreamRefused`` or ``Unavailable``.

        Parameters
        ----------
        body: the request.
        within: seconds after which a stream that has not ended is given up, even if events keep coming.
        """
        request, deadline = self._request(body), time.monotonic() + within
        return resumed(lambda: self._retried(lambda: started(self._events(request, deadline))), str(self))

    def log_failed_draft(self, error: ModelError) -> None:
        """Log that a draft of this model failed: the first failure of each kind, then at most one line per minute.

        The caller gets the expert's answer then, so that only the log shows that the server of the drafts is down.
        """
        kind = "refused" if isinstance(error, Refused) else "failed"
        if times := self._log_rate.count(f"draft {kind}"):
            known = {"model": self.settings.name, "kind": kind, "since_last_line": times}
            log.warning("draft failed", extra=known | {"error": str(error)})

    def _request(self, body: Mapping[str, Any]) -> bytes:
        own = {**self.settings.body, "model": self.settings.model}
        return to_json(merged(body, own) if self.settings.body else {**body, **own})

    async def _retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        try:
            return await self._retrying.get(attempt, str(self))
        except Unavailable as error:
            # A caller can wait as long as the server asks for, and so gets its error.
            if isinstance(error.__cause__, _Busy) and error.status is not None and error.status < 500:
                raise error.__cause__.refusal from error
            raise

    async def _complete(self, request: bytes, logprobs_only: bool) -> Completion:
        try:
            async with self._endpoint.post(request, self._whole_timeout, self._traces.carried()) as response:
                if response.status >= 300:
                    await self._refuse(response)
                data = await read_whole(response.content, self._limits.max_answer)
            return read_answer(data, self._limits.max_answer_values, logprobs_only=logprobs_only)
        except (*FAILURES, AnswerError) as error:
            raise self._failure(error) from error

    async def _events(self, request: bytes, deadline: float) -> AsyncGenerator[list[StreamEvent], None]:
        try:
            async with self._endpoint.post(request, self._stream_timeout, self._traces.carried()) as response:
                if response.status >= 300:
                    await self._refuse(response)
                max_bytes, max_values = self._limits.max_answer, self._limits.max_answer_values
                arriving = stream_events(response.content, max_bytes, max_values, deadline)
                async with aclosing(arriving):
                    async for events in arriving:
                        yield events
        except StreamCutOff:
            self._count("cut_off")
            raise
        except (*FAILURES, AnswerError) as error:
            raise self._failure(error) from error

    async def _refuse(self, response: HttpResponse) -> NoReturn:
        status, data = response.status, await read_start(response.content, LONGEST_ERROR)
        retry_after = response.headers.get("Retry-After")
        if 300 <= status < 400:
            self._count("elsewhere")
            raise Unavailable(f"{self} is elsewhere (status {status}): correct its base_url", status)
        if status in CREDENTIALS:
            self._count("credentials", status=status, remedy="check api_key and headers of this model")
            raise Unavailable(f"{self} does not accept the gateway's credentials (status {status})")
        refusal = UpstreamRefused(f"{self} refused with status {status}", status, json_object(data), retry_after)
        if status < 500 and status not in LATER:
            self._count("refused")
            raise refusal
        self._count("busy")
        busy = _Busy(f"status {status}", status, requested_wait(retry_after))
        busy.refusal = refusal
        raise busy

    def _failure(self, error: Exception) -> Failed | Unavailable:
        """What a failed attempt raises, after it was counted by its kind."""
        if isinstance(error, TooLong):  # another attempt would be as long
            self._count("too_long", error=str(error))
            return Unavailable(f"{self}: {error}")
        if isinstance(error, TooSlow):
            self._count("timeout")
            return Unavailable(f"{self} does not end its stream")
        if isinstance(error, TimeoutError):
            self._count("timeout")
            return Failed("no answer in time")
        self._count("unusable" if isinstance(error, AnswerError) else "connection")
        # What the server sent is not quoted: it may hold an answer, and errors are logged.
        return Failed(type(error).__name__)

    def _count(self, kind: str, **logged: object) -> None:
        self._metrics.count("bpac_upstream_failures_total", model=self.settings.name, kind=kind)
        if logged and (times := self._log_rate.count(kind)):
            known = {"model": self.settings.name, "kind": kind, "since_last_line": times}
            log.error("model cannot be used", extra=known | logged)


def json_object(data: bytes) -> bytes:
    """The data if it is a JSON object, and nothing otherwise: only JSON is passed on to callers.

    >>> json_object(b'{"error": {}}'), json_object(b"<html>")
    (b'{"error": {}}', b'')
    """
    try:
        return data if isinstance(from_strict_json(data), dict) else b""
    except ValueError:
        return b""
