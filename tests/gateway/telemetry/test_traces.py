"""Traces arrive at a collector: one per request with its stages, without prompts and answers."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bpac.testing import Reply
from tests.gateway.running import MESSAGES, Running, pair

DRAFT, EXPERT = Reply("a draft nobody may trace", probability=0.7), Reply("an expert nobody may trace")
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector(ThreadingHTTPServer):
    """Receives traces as OpenTelemetry's collector does."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                if self.path == "/v1/traces":
                    received.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        super().__init__(("127.0.0.1", 0), Handler)

    def spans(self) -> list[Span]:
        """All spans, in the order in which they ended."""
        requests = [ExportTraceServiceRequest.FromString(data) for data in self.received]
        return [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def collecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that traces are sent to."""
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_address[1]}")
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_one_trace_with_its_stages(monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    """It continues the trace of the caller, and is passed on to the model servers."""
    with collecting(monkeypatch) as collector:
        with Running(pair(DRAFT, EXPERT), gateway={"traces": True}, policy="always") as (gateway, models):
            header = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            answer = gateway.client().chat.completions.with_raw_response.create(
                model="homework", messages=MESSAGES, stream=stream, extra_headers=header
            )
            decision = answer.headers["x-bpac-decision"]
            answer.parse()
            gateway.idle()
            received = [request.headers["traceparent"].split("-") for request in models.requests]
        spans = {span.name: span for span in collector.spans()}
    assert set(spans) == {"chat completion", "draft", "journal", "expert", "grading"}
    assert {span.trace_id.hex() for span in spans.values()} == {TRACE}
    request = spans["chat completion"]
    assert request.parent_span_id.hex() == PARENT
    assert all(spans[name].parent_span_id == request.span_id for name in set(spans) - {request.name})
    assert [(trace, span) for _, trace, span, _ in received] == [
        (TRACE, spans[n].span_id.hex()) for n in ("draft", "expert")
    ]
    noted = {pair.key: pair.value for pair in request.attributes}
    assert noted["bpac.decision"].string_value == decision
    assert noted["bpac.answered_by"].string_value == "expert"
    assert noted["bpac.uncertainty"].double_value == pytest.approx(0.3)
    sent = b"".join(collector.received)
    assert b"nobody may trace" not in sent
    assert MESSAGES[0]["content"].encode() not in sent


def test_a_failed_stage_is_marked_without_the_message_of_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the type of the error is sent."""
    with collecting(monkeypatch) as collector:
        with Running(pair(Reply(status=500), EXPERT), gateway={"traces": True}) as (gateway, _):
            gateway.client().chat.completions.create(model="homework", messages=MESSAGES)
            gateway.idle()
        spans = {span.name: span for span in collector.spans()}
    assert spans["draft"].status.message == "Unavailable"
    assert not spans["draft"].events
    assert {"chat completion", "draft", "expert"} == set(spans)


def test_opentelemetry_is_not_imported_without_traces() -> None:
    """Neither time nor memory is spent on it."""
    code = "import sys, bpac.gateway.server; sys.exit(any('opentelemetry' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
