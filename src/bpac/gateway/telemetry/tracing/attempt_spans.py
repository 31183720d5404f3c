"""Spans of attempts to get an answer of a model server, with OpenTelemetry's attributes for generative AI.

1. Each attempt is a span of kind CLIENT within the span of its stage: retries, deployments, drafts, experts and judges.
   Attempts outside requests, such as probes, have none.
2. It is never the current span: a stream may end in another task than the one it began in.
3. It has names, counts and the type of an error, and nothing of what was asked or answered.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from bpac.gateway.telemetry.tracing.gen_ai import error_type, usage_attributes
from bpac.wire.stream import StreamEvent

_LONGEST_NAME = 200
_MOST_CHOICES = 128


class AttemptSpan(Protocol):
    """The span of one attempt, in a ``with`` block, at whose end it ends.

    Attributes
    ----------
    headers: headers with which the model server can continue the trace.
    """

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers with which the model server can continue the trace."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def responded(self, status: int) -> None:
        """The server has responded with a status."""

    def answered(self, read: Callable[[], Any]) -> None:
        """The server has sent a whole answer, whose JSON value ``read`` returns."""

    def received(self, events: list[StreamEvent]) -> None:
        """Events of a stream have arrived."""


# Begins the span of an attempt to send a request.
NewAttempt = Callable[[Mapping[str, Any]], AttemptSpan]


class NoAttempt:
    """Records nothing."""

    headers: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing."""

    def responded(self, status: int) -> None:
        """Nothing."""

    def answered(self, read: Callable[[], Any]) -> None:
        """Nothing."""

    def received(self, events: list[StreamEvent]) -> None:
        """Nothing."""


NO_ATTEMPT = NoAttempt()


class OpenAttempt:
    """A span that is being recorded.

    Parameters
    ----------
    span: the span.
    headers: headers with which the model server can continue the trace.
    failed: the status code of a span that failed.
    """

    def __init__(self, span: Any, headers: Mapping[str, str], failed: Any) -> None:
        self._span = span
        self._failed = failed
        self._began = time.monotonic()
        self._streams = False
        self._usage: Any = None
        self._finish_reasons: list[str] = []
        self.headers = headers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._span.set_attributes(usage_attributes(self._usage))
        if self._finish_reasons:
            self._span.set_attribute("gen_ai.response.finish_reasons", self._finish_reasons)
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            # Nobody needed the answer any more, which is no fault of the server.
            self._span.set_attribute("bpac.cancelled", True)
        elif error is not None:
            name = error_type(error)
            self._span.set_attribute("error.type", name)
            self._span.set_status(self._failed, name)
        self._span.end()

    def responded(self, status: int) -> None:
        """The server has responded with a status."""
        self._span.set_attribute("http.response.status_code", status)

    def answered(self, read: Callable[[], Any]) -> None:
        """The server has sent a whole answer, whose JSON value ``read`` returns."""
        document = read()
        self._name(document)
        self._usage = document.get("usage")
        choices = document.get("choices")
        listed = choices if isinstance(choices, list) else []
        self._finish(choice.get("finish_reason") for choice in listed if isinstance(choice, Mapping))

    def received(self, events: list[StreamEvent]) -> None:
        """Events of a stream have arrived."""
        if not self._streams:
            self._streams = True
            self._span.set_attribute("gen_ai.request.stream", True)
            self._span.set_attribute("gen_ai.response.time_to_first_chunk", time.monotonic() - self._began)
            self._name(events[0].body())
        for _, chunk in events:
            self._usage = chunk.usage or self._usage
            self._finish(choice.finish_reason for choice in chunk.choices)

    def _name(self, document: Mapping[str, Any]) -> None:
        for field in ("id", "model"):
            value = document.get(field)
            if isinstance(value, str) and value:
                self._span.set_attribute(f"gen_ai.response.{field}", _short(value))

    def _finish(self, reasons: Iterable[Any]) -> None:
        # Some servers repeat a reason, or send an empty one, in every event of a stream.
        given = [_short(reason) for reason in reasons if isinstance(reason, str) and reason]
        self._finish_reasons += given[: _MOST_CHOICES - len(self._finish_reasons)]


def _short(text: str) -> str:
    """The beginning of a server's text, without half characters, which exporters fail on."""
    return text[:_LONGEST_NAME].encode("utf-8", "replace").decode()
