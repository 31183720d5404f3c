"""Traces of requests with OpenTelemetry; it is not even imported unless ``traces`` is set in the configuration.

Each request is a span. Its draft, journal, expert and grading are spans within it, also those that end after the caller
has the answer. Spans carry what the response headers say about the decision, and never a prompt, an answer or a key.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from bpac import __version__
from bpac.errors import BpacError, MissingExtra


class Traces(Protocol):
    """Where spans are recorded."""

    def request(self, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[object]:
        """The span of a request; it continues the trace of the caller if the headers name one."""

    def stage(self, name: str, route: str) -> AbstractContextManager[object]:
        """A span within the current one."""

    def describe(self, **values: str | float) -> None:
        """Add attributes to the span of the request."""

    def carried(self) -> Mapping[str, str]:
        """Headers with which a model server can continue the trace."""

    def close(self) -> None:
        """Send the spans that have not been sent yet."""


class NoTraces:
    """Records nothing."""

    _NOTHING = nullcontext()
    _NO_HEADERS: Mapping[str, str] = {}

    def request(self, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[object]:
        """Nothing."""
        return self._NOTHING

    def stage(self, name: str, route: str) -> AbstractContextManager[object]:
        """Nothing."""
        return self._NOTHING

    def describe(self, **values: str | float) -> None:
        """Nothing."""

    def carried(self) -> Mapping[str, str]:
        """Nothing."""
        return self._NO_HEADERS

    def close(self) -> None:
        """Nothing."""


class OpenTelemetryTraces:
    """Sends spans to the collector that the environment variable ``OTEL_EXPORTER_OTLP_ENDPOINT`` names."""

    def __init__(self) -> None:
        try:
            from opentelemetry import context, propagate, trace  # noqa: PLC0415
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtra("opentelemetry", "traces") from error
        self._context, self._propagate, self._trace = context, propagate, trace
        named = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "bpac"), "service.version": __version__}
        self._provider = TracerProvider(resource=Resource.create(named))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("bpac.gateway", __version__)
        self._request = context.create_key("bpac-request")

    @contextmanager
    def request(self, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[None]:
        """The span of a request; it continues the trace of the caller if the headers name one."""
        carried = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        span = self._tracer.start_span(
            "chat completion", self._propagate.extract(carried), kind=self._trace.SpanKind.SERVER
        )
        inside = self._context.set_value(self._request, span, self._trace.set_span_in_context(span))
        token = self._context.attach(inside)
        try:
            yield
        finally:
            self._context.detach(token)
            span.end()

    @contextmanager
    def stage(self, name: str, route: str) -> Iterator[None]:
        """A span within the current one."""
        # The message of an error may quote an answer, so only its type is recorded.
        with self._tracer.start_as_current_span(
            name, attributes={"bpac.route": route}, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except BpacError as error:
                span.set_status(self._trace.StatusCode.ERROR, type(error).__name__)
                raise

    def describe(self, **values: str | float) -> None:
        """Add attributes to the span of the request."""
        span: Any = self._context.get_value(self._request)
        if span is not None:
            span.set_attributes({f"bpac.{name}": value for name, value in values.items()})

    def carried(self) -> Mapping[str, str]:
        """Headers with which a model server can continue the trace."""
        headers: dict[str, str] = {}
        self._propagate.inject(headers)
        return headers

    def close(self) -> None:
        """Send the spans that have not been sent yet."""
        self._provider.shutdown()
