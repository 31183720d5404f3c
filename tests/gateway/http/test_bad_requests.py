"""Requests that cannot be answered get OpenAI's error body, and are not counted as steps."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from bpac.gateway.auth.authentication import Authentication
from bpac.gateway.auth.keys import ApiKeys
from bpac.gateway.http.endpoints.endpoints import other_endpoints
from bpac.gateway.http.endpoints.posted_endpoints import posted_endpoints
from bpac.testing import Reply
from tests.gateway.configured import get_json
from tests.gateway.raw import CHAT, post
from tests.gateway.running import ASK, MESSAGES, Running, RunningGateway, pair

HEAD = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()


@pytest.fixture(scope="module")
def gateway() -> Iterator[RunningGateway]:
    """One gateway for all tests: none of them may change its state."""
    with Running(pair(Reply("41"), Reply("42")), gateway={"max_body": 1_000_000}) as (running, _):
        yield running
        assert running.status()["steps"] == 0
        assert running.service.busy == 0
        assert post(running.url, ASK).status == 200


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", None), (b"{", None), (b"nonsense", None), (b"[]", None), (b'"text"', None), (b"null", None),
        (b"\xff\xfe", None), (b'{"model": NaN}', None), (b"[" * 100_000, None), (b'{"a":' * 5000, None),
        (json.dumps(ASK | {"x": json.loads("[" * 70 + "]" * 70)}).encode(), None),
        (json.dumps({"messages": MESSAGES}).encode(), "model"),
        (json.dumps(ASK | {"model": 7}).encode(), "model"),
        (json.dumps({"model": "homework"}).encode(), "messages"),
        (json.dumps(ASK | {"messages": []}).encode(), "messages"),
        (json.dumps(ASK | {"messages": "6 * 7?"}).encode(), "messages"),
        (json.dumps(ASK | {"messages": ["6 * 7?"]}).encode(), "messages"),
        (json.dumps(ASK | {"stream": "yes"}).encode(), "stream"),
        (json.dumps(ASK | {"stream_options": []}).encode(), "stream_options"),
        (json.dumps(ASK | {"logprobs": 1}).encode(), "logprobs"),
        (json.dumps(ASK | {"top_logprobs": 21}).encode(), "top_logprobs"),
        (json.dumps(ASK | {"top_logprobs": True}).encode(), "top_logprobs"),
        (json.dumps(ASK | {"n": 0}).encode(), "n"), (json.dumps(ASK | {"n": 1.5}).encode(), "n"),
        (json.dumps(ASK | {"n": 10**30}).encode(), "n"),
    ],
)  # fmt: skip
def test_a_malformed_request_is_refused(gateway: RunningGateway, body: bytes, param: str | None) -> None:
    """With status 400 and the field that is wrong."""
    got = post(gateway.url, body)
    assert got.status == 400
    assert got.headers["content-type"] == "application/json"
    assert set(got.json["error"]) == {"message", "type", "param", "code"}
    assert (got.json["error"]["type"], got.json["error"]["param"]) == ("invalid_request_error", param)


def test_a_body_that_is_too_large_is_refused(gateway: RunningGateway) -> None:
    """With status 413, whether its length was announced or not."""
    got = post(gateway.url, b'{"a": "' + b"x" * 1_000_001 + b'"}')
    assert (got.status, got.json["error"]["code"]) == (413, "too_large")
    host, port = gateway.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as caller:
        caller.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            caller.sendall(b"%x\r\n" % 65536 + b"x" * 65536 + b"\r\n")
        assert b"413" in caller.recv(65536)


def test_a_request_that_breaks_off_leaves_nothing_behind(gateway: RunningGateway) -> None:
    """The next one is answered."""
    host, port = gateway.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as caller:
        caller.sendall(HEAD + b'Content-Length: 100\r\n\r\n{"model"')
    assert post(gateway.url, b"{").status == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", CHAT, 405), ("DELETE", CHAT, 405), ("GET", "/", 404), ("GET", "/v1/nothing", 404),
        ("POST", "/v1/models", 405), ("GET", "/v1/feedback", 405), ("POST", "/v1/chat/completions/", 404),
    ],
)  # fmt: skip
def test_unknown_paths_and_methods_have_openais_error_body(
    gateway: RunningGateway, method: str, path: str, status: int
) -> None:
    """With status 404 or 405."""
    got = post(gateway.url, b"", path, method=method)
    assert got.status == status
    assert set(got.json["error"]) == {"message", "type", "param", "code"}


def test_an_unknown_route_is_not_found(gateway: RunningGateway) -> None:
    """Status 404, also for the name of a model behind the gateway, and for a segment that is not configured."""
    for model in ("gpt-4", "draft", "small", "homework:maths", "HOMEWORK"):
        got = post(gateway.url, ASK | {"model": model})
        assert (got.status, got.json["error"]["code"]) == (404, "model_not_found")


def test_the_openapi_document_lists_every_endpoint(gateway: RunningGateway) -> None:
    """But the dashboard's, its own and those of other APIs that are missing; and every endpoint in it answers."""
    paths = get_json(f"{gateway.url}/openapi.json")["paths"]
    authentication = Authentication(ApiKeys((), (), b""))
    routes: list[Any] = other_endpoints(gateway.service, authentication).routes
    there = {route.path.replace(":path", "") for route in routes if route.include_in_schema}
    shown = {path for path in there if not path.startswith(("/dashboard", "/openapi.json"))}
    assert set(paths) == shown | posted_endpoints(gateway.service, authentication).keys()
    for path, methods in paths.items():
        for method in methods:
            got = post(gateway.url, b"", path.replace("{decision}", "dec-1-1-0"), method=method.upper())
            assert got.status in (200, 400, 404), path
