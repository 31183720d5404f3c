"""Traces arrive at a collector: one per request with its stages, without prompts and answers."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import settings
from tests.gateway.raw import post
from tests.gateway.running import MESSAGES, Running, RunningGateway, pair
from tests.ports import free_port

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
    stages = {"draft", "journal", "expert", "grading"}
    assert set(spans) == {"chat homework", "chat draft", "chat expert", *stages}
    assert {span.trace_id.hex() for span in spans.values()} == {TRACE}
    request = spans["chat homework"]
    assert (request.parent_span_id.hex(), request.kind) == (PARENT, Span.SPAN_KIND_SERVER)
    assert all(spans[name].parent_span_id == request.span_id for name in stages)
    assert [(trace, span) for _, trace, span, _ in received] == [
        (TRACE, spans[n].span_id.hex()) for n in ("chat draft", "chat expert")
    ]
    assert all(spans[f"chat {name}"].parent_span_id == spans[name].span_id for name in ("draft", "expert"))
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
    assert {"chat homework", "chat draft", "chat expert", "draft", "expert"} == set(spans)
    failed = spans["chat draft"]
    assert (failed.status.message, attributes(failed)["error.type"]) == ("500", "500")


def attributes(span: Span) -> dict[str, Any]:
    """The attributes of a span, as Python values."""
    found: dict[str, Any] = {}
    for one in span.attributes:
        kind = one.value.WhichOneof("value")
        value = getattr(one.value, kind)
        found[one.key] = [part.string_value for part in value.values] if kind == "array_value" else value
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_each_attempt_is_a_span_with_the_attributes_of_generative_ai(
    monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """A retry of the expert behind another API, its judge, and what each of them used; nothing of what was said."""
    overloaded = iter([Reply("an error nobody may trace", status=529)])
    thoughts = Reply("an expert nobody may trace", reasoning="so nobody may trace", cached_tokens=5)

    def script(request: Request) -> Reply:
        named = {"draft": DRAFT, "expert": next(overloaded, thoughts) if request.api == "messages" else DRAFT}
        return named.get(request.body["model"], Reply("[[7]]"))

    with collecting(monkeypatch) as collector, ScriptedServer(script) as models:
        config = settings(models.base_url, gateway={"traces": True}, model={"retries": 1}, policy="always")
        config["models"]["large"] |= {"api": "messages"}
        config["models"]["critic"] = {**config["models"]["small"], "model": "judge"}
        config["routes"]["homework"]["loss"] = {"name": "judge", "judge": "critic"}
        with RunningGateway(config) as gateway:
            ask = {"model": "homework", "messages": MESSAGES, "stream": stream, "max_tokens": 50, "temperature": 0.5}
            assert post(gateway.url, ask).status == 200
            gateway.idle()
            sent = [request.headers["traceparent"].split("-")[2] for request in models.requests]
            port = int(models.base_url.rpartition(":")[2].removesuffix("/v1"))
    spans = collector.spans()
    attempts = [span for span in spans if span.kind == Span.SPAN_KIND_CLIENT]
    assert sorted(span.name for span in attempts) == [
        "chat draft", "chat expert", "chat expert", "chat judge", "chat judge",
    ]  # fmt: skip
    assert {span.span_id.hex() for span in attempts} == set(sent), "each server continues the trace of its attempt"
    refused, answered = (attributes(span) for span in attempts if span.name == "chat expert")
    assert (refused["error.type"], refused["http.response.status_code"]) == ("529", 529)
    assert "gen_ai.usage.input_tokens" not in refused
    expected = {
        gen_ai_attributes.GEN_AI_OPERATION_NAME: gen_ai_attributes.GenAiOperationNameValues.CHAT.value,
        gen_ai_attributes.GEN_AI_PROVIDER_NAME: "anthropic",
        gen_ai_attributes.GEN_AI_REQUEST_MODEL: "expert",
        gen_ai_attributes.GEN_AI_REQUEST_MAX_TOKENS: 50,
        gen_ai_attributes.GEN_AI_REQUEST_TEMPERATURE: 0.5,
        gen_ai_attributes.GEN_AI_RESPONSE_MODEL: "expert",
        gen_ai_attributes.GEN_AI_RESPONSE_FINISH_REASONS: ["stop"],
        gen_ai_attributes.GEN_AI_USAGE_INPUT_TOKENS: 7,
        gen_ai_attributes.GEN_AI_USAGE_OUTPUT_TOKENS: 9,
        gen_ai_attributes.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 5,
        "gen_ai.usage.reasoning.output_tokens": 4,
        "server.address": "127.0.0.1",
        "server.port": port,
        "bpac.model": "large",
    }
    assert {name: answered.get(name) for name in expected} == expected
    assert stream == (gen_ai_attributes.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK in answered)
    assert "error.type" not in answered
    known = {getattr(gen_ai_attributes, name) for name in dir(gen_ai_attributes) if name.startswith("GEN_AI_")}
    used = {name for span in spans for name in attributes(span)}
    assert {name for name in used if name.startswith("gen_ai.")} <= known, "no attribute is invented"
    data = b"".join(collector.received)
    assert b"nobody may trace" not in data
    assert MESSAGES[0]["content"].encode() not in data


def test_each_deployment_that_is_tried_is_a_span(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that fails and the one that answers, told apart by their addresses."""
    with collecting(monkeypatch) as collector, ScriptedServer(EXPERT) as models:
        config = settings(models.base_url, gateway={"traces": True}, policy="always")
        del config["models"]["large"]["base_url"]
        addresses = [f"http://127.0.0.1:{free_port()}/v1", models.base_url]
        config["models"]["large"]["deployments"] = [{"base_url": address} for address in addresses]
        with RunningGateway(config) as gateway:
            assert post(gateway.url, {"model": "homework", "messages": MESSAGES}).status == 200
            gateway.idle()
    tried = [attributes(span) for span in collector.spans() if span.name == "chat expert"]
    assert [f"http://{one['server.address']}:{one['server.port']}/v1" for one in tried] == addresses
    assert [one.get("error.type") for one in tried] == ["ClientConnectorError", None]


def test_a_draft_that_nobody_needs_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A streamed draft is cancelled when the expert takes over: its span ends, in another task than it began in."""
    slow = Reply("one two three four five six seven", probability=0.5, pause=0.05)
    with collecting(monkeypatch) as collector:
        score = {"name": "mean_token_probability", "first_tokens": 2}
        options = {"policy": "always", "score": score, "on_takeover": "cancel", "loss": "external"}
        with Running(pair(slow, EXPERT), gateway={"traces": True}, **options) as (gateway, _):
            post(gateway.url, {"model": "homework", "messages": MESSAGES, "stream": True})
            gateway.idle()
    (draft,) = [attributes(span) for span in collector.spans() if span.name == "chat draft"]
    assert draft["bpac.cancelled"] is True
    assert "error.type" not in draft


def test_requests_that_fail_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the type of the error, under the name of the route; unknown routes give no names to spans."""
    with collecting(monkeypatch) as collector, Running(Reply(status=503), gateway={"traces": True}) as (gateway, _):
        assert post(gateway.url, {"model": "homework", "messages": MESSAGES}).status == 502
        assert post(gateway.url, {"model": "a secret", "messages": MESSAGES}).status == 404
        gateway.idle()
    requests = {span.name: attributes(span) for span in collector.spans() if span.kind == Span.SPAN_KIND_SERVER}
    assert {name: found.get("error.type") for name, found in requests.items()} == {"chat homework": "503", "chat": None}


def test_odd_values_of_callers_and_servers_do_no_harm(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Numbers that are too large, half characters, and a finish reason in every event: spans can be exported."""
    chunk = '{"id": "a\\ud83d", "choices": [{"index": 0, "delta": {"content": "4"}, "finish_reason": "%s"}]}'
    data = "".join(f"data: {chunk % reason}\n\n" for reason in [""] * 10 + ["stop"] * 300) + "data: [DONE]\n\n"
    odd = Reply(raw=data.encode(), headers={"Content-Type": "text/event-stream"})
    with collecting(monkeypatch) as collector:
        with Running(pair(DRAFT, odd), gateway={"traces": True}, policy="always") as (gateway, _):
            ask = {"model": "homework", "messages": MESSAGES, "stream": True, "seed": 10**30, "max_tokens": 2**63}
            assert post(gateway.url, ask).status == 200
            gateway.idle()
        (expert,) = [attributes(span) for span in collector.spans() if span.name == "chat expert"]
    assert expert["gen_ai.response.id"] == "a?"
    assert expert["gen_ai.response.finish_reasons"] == ["stop"] * 128
    assert "gen_ai.request.seed" not in expert
    assert "Failed to encode" not in caplog.text


def test_opentelemetry_is_not_imported_without_traces() -> None:
    """Neither time nor memory is spent on it."""
    code = "import sys, bpac.gateway.server; sys.exit(any('opentelemetry' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
