"""Traces of requests with OpenTelemetry; it is not even imported unless ``traces`` is set in the configuration.

Each request is a span. Its draft, journal, expert and grading are spans within it, also those that end after the caller
has the answer, and each attempt to get an answer of a model server is one within these (``attempt_spans``). Spans carry
what the response headers say about the decision, and never a prompt, an answer or a key.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from bpac import __version__
from bpac.errors import BpacError, MissingExtra
from bpac.gateway.telemetry.tracing.attempt_spans import NO_ATTEMPT, AttemptSpan, NewAttempt, OpenAttempt
from bpac.gateway.telemetry.tracing.gen_ai import ModelAddress, error_type, request_attributes


class Traces(Protocol):
    """Where spans are recorded."""

    def request(self, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[object]:
        """The span of a request; it continues the trace of the caller if the headers name one."""

    def stage(self, name: str, route: str) -> AbstractContextManager[object]:
        """A span within the current one."""

    def describe(self, **values: str | float) -> None:
        """Add attributes to the span of the request."""

    def asked(self, operation: str, route: str) -> None:
        """Name the span of the request after what it asks for, and of which route."""

    def failed(self, error: BaseException) -> None:
        """Mark the span of the request as failed."""

    def attempts(self, model: ModelAddress) -> NewAttempt:
        """Begins the spans of attempts to send requests to a model."""

    def close(self) -> None:
        """Send the spans that have not been sent yet."""


class NoTraces:
    """Records nothing."""

    _NOTHING = nullcontext()

    def request(self, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[object]:
        """Nothing."""
        return self._NOTHING

    def stage(self, name: str, route: str) -> AbstractContextManager[object]:
        """Nothing."""
        return self._NOTHING

    def describe(self, **values: str | float) -> None:
        """Nothing."""

    def asked(self, operation: str, route: str) -> None:
        """Nothing."""

    def failed(self, error: BaseException) -> None:
        """Nothing."""

    def attempts(self, model: ModelAddress) -> NewAttempt:
        """Nothing."""
        return lambda _: NO_ATTEMPT

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
        span = self._tracer.start_span("chat", self._propagate.extract(carried), kind=self._trace.SpanKind.SERVER)
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
        if (span := self._of_request()) is not None:
            span.set_attributes({f"bpac.{name}": value for name, value in values.items()})

    def asked(self, operation: str, route: str) -> None:
        """Name the span of the request after what it asks for, and of which route."""
        if (span := self._of_request()) is not None:
            span.update_name(f"{operation} {route}")
            known = {"operation.name": operation, "provider.name": "bpac", "request.model": route}
            span.set_attributes({f"gen_ai.{name}": value for name, value in known.items()})

    def failed(self, error: BaseException) -> None:
        """Mark the span of the request as failed."""
        if (span := self._of_request()) is not None:
            name = error_type(error)
            span.set_attribute("error.type", name)
            span.set_status(self._trace.StatusCode.ERROR, name)

    def _of_request(self) -> Any:
        return self._context.get_value(self._request)

    def attempts(self, model: ModelAddress) -> NewAttempt:
        """Begins the spans of attempts to send requests to a model."""
        name, known = f"{model.operation} {model.model}", model.attributes()

        def begun(body: Mapping[str, Any]) -> AttemptSpan:
            if not self._trace.get_current_span().get_span_context().is_valid:
                return NO_ATTEMPT
            attributes = known | request_attributes(body)
            span = self._tracer.start_span(name, kind=self._trace.SpanKind.CLIENT, attributes=attributes)
            headers: dict[str, str] = {}
            self._propagate.inject(headers, self._trace.set_span_in_context(span))
            return OpenAttempt(span, headers, self._trace.StatusCode.ERROR)

        return begun

    def close(self) -> None:
        """Send the spans that have not been sent yet."""
        self._provider.shutdown()
