"""Limits on size, number and duration hold before a caller is authenticated."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from bpac.testing import Reply
from tests.gateway.configured import wait_for
from tests.gateway.measured import metric
from tests.gateway.raw import CHAT, Got, post
from tests.gateway.running import ASK, Running, RunningGateway, pair

MODELS = pair(Reply("41"), Reply("42"))
START = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are checked often, so that no test waits a second for it."""
    monkeypatch.setattr("bpac.gateway.http.connections.connections.LOOK_EVERY", 0.02)


def connect(gateway: RunningGateway) -> socket.socket:
    """A connection to a gateway."""
    return socket.create_connection(("127.0.0.1", gateway.port), timeout=60)


def read(caller: socket.socket) -> bytes:
    """All bytes until the gateway closes the connection."""
    got = b""
    with suppress(ConnectionError):
        while data := caller.recv(65536):
            got += data
    return got


def parsed(reply: bytes) -> Got:
    """A response that was read from a socket."""
    head, _, body = reply.partition(b"\r\n\r\n")
    status, *lines = head.decode().splitlines()
    return Got(int(status.split()[1]), dict(line.lower().split(": ", 1) for line in lines), body)


def refused(gateway: RunningGateway, *parts: bytes) -> Any:
    """Send parts until the gateway closes the connection; the status and the code of its error."""
    with connect(gateway) as caller:
        with suppress(ConnectionError):
            for part in parts:
                caller.sendall(part)
        got = parsed(read(caller))
    assert set(got.json["error"]) == {"message", "type", "param", "code"}
    return got.status, got.json["error"]["code"]


def endless(part: bytes, size: int = 2**22) -> Iterator[bytes]:
    """The same again and again."""
    for _ in range(size // len(part)):
        yield part


def test_headers_that_are_too_large_are_rejected() -> None:
    """One header, the path or many headers: status 431, and the next caller is served."""
    with Running(MODELS) as (gateway, _):
        large = b"x" * 65536
        attacks = {
            "one header": (START + b"X: ", *endless(large)),
            "in small parts": (START + b"X: ", *endless(b"x" * 1000, 2**18)),
            "the path": (b"GET /", *endless(large)),
            "in one piece": (START + b"X: " + b"x" * 70_000 + b"\r\n\r\n",),
        }
        for attack in attacks.values():
            assert refused(gateway, *attack) == (431, "head_too_large")
        for count in (101, 5000):
            headers = b"".join(b"X-%d: 1\r\n" % number for number in range(count))
            assert refused(gateway, START + headers + b"\r\n") == (431, "too_many_headers")
        assert gateway.service.rejections.counts == {"head_too_large": 4, "too_many_headers": 2}
        assert post(gateway.url, ASK).status == 200
        assert metric(gateway, "bpac_http_refused_total", reason="head_too_large") == 4


def test_rejections_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """The first is logged at once, the others together and not before a minute has passed."""
    with Running(MODELS) as (gateway, _):
        for _ in range(20):
            assert refused(gateway, b"no HTTP\r\n") == (400, "invalid_http")
        assert gateway.service.rejections.counts == {"invalid_http": 20}
    lines = [vars(record) for record in caplog.records if record.message == "request rejected"]
    assert [(line["reason"], line["address"], line["since_last_line"]) for line in lines] == [
        ("invalid_http", "127.0.0.1", 1)
    ]


def test_trailers_and_chunk_sizes_are_limited() -> None:
    """The parser keeps them until they are complete, so they could grow without bound."""
    with Running(MODELS) as (gateway, _):
        chunked = START + b"Transfer-Encoding: chunked\r\n\r\n"
        part = b"x" * 65536
        for tail in (b"0\r\nX: ", b"1;"):
            with connect(gateway) as caller, suppress(ConnectionError):
                caller.sendall(chunked + tail)
                for data in endless(part):
                    caller.sendall(data)
                read(caller)
        many = b"".join(b"X-%d: 1\r\n" % number for number in range(200))
        with connect(gateway) as caller, suppress(ConnectionError):
            caller.sendall(chunked + b"2\r\n{}\r\n0\r\n" + many)
            read(caller)
        assert sum(gateway.service.rejections.counts.values()) == 3
        assert post(gateway.url, ASK).status == 200


def test_the_limit_on_headers_does_not_limit_bodies() -> None:
    """Large bodies pass, in one packet with their headers or in many chunks."""
    with Running(MODELS, gateway={"max_head": 1024}) as (gateway, _):
        data = json.dumps(ASK | {"metadata": {"long": "x" * 300_000}}).encode()
        assert post(gateway.url, data).status == 200
        framed = b"".join(b"1\r\n%c\r\n" % byte for byte in data[:100_000])
        rest = b"%x\r\n%b\r\n0\r\n\r\n" % (len(data) - 100_000, data[100_000:])
        with connect(gateway) as caller:
            caller.sendall(START + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + framed + rest)
            assert parsed(read(caller)).status == 200
        assert gateway.service.rejections.counts == {}


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "head_timeout"),
        (b"\r\n\r\n", "head_timeout"),
        (b"POST", "head_timeout"),
        (START + b"X: y", "head_timeout"),
        (START + b"Content-Length: 100\r\n\r\n{", "body_timeout"),
        (START + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{", "body_timeout"),
    ],
)
@pytest.mark.parametrize("earlier", [False, True], ids=["first", "second"])
def test_slow_requests_are_rejected(sent: bytes, reason: str, earlier: bool) -> None:
    """Status 408, on a new connection and on one that was used before; the connection is closed."""
    with Running(MODELS, gateway={"head_timeout": 0.1, "body_timeout": 0.1}) as (gateway, _):
        with connect(gateway) as caller:
            if earlier:
                caller.sendall(GET + b"\r\n")
                assert b"200 OK" in caller.recv(65536)
            if sent or not earlier:  # an idle connection that was used is closed without a response
                caller.sendall(sent)
                got = parsed(read(caller))
                assert (got.status, got.json["error"]["code"]) == (408, reason)
                assert gateway.service.rejections.counts == {reason: 1}
        wait_for(lambda: len(gateway.service.connections) == 0)


def test_a_slow_model_is_not_a_slow_caller() -> None:
    """Only the time in which a request arrives is limited, not the time of the model, nor a stray line break then."""
    options = {"head_timeout": 0.1, "body_timeout": 0.1}
    with Running(pair(Reply("41"), Reply("42", delay=0.5)), gateway=options, policy="always") as (gateway, _):
        data = json.dumps(ASK).encode()
        with connect(gateway) as caller:
            caller.sendall(START + b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data))
            caller.sendall(b"\r\n")
            assert parsed(read(caller)).status == 200
        assert gateway.service.rejections.counts == {}


def test_a_body_that_goes_on_after_its_response_closes_the_connection() -> None:
    """Without a second response, which would be taken for the response to another request."""
    with (
        Running(MODELS, gateway={"body_timeout": 0.1, "api_keys": ["one"]}) as (gateway, _),
        connect(gateway) as caller,
    ):
        caller.sendall(START + b"Content-Length: 100\r\n\r\n{")
        got = read(caller)
        assert (got.count(b"HTTP/1.1 "), parsed(got).status) == (1, 401)
        assert gateway.service.rejections.counts == {"invalid_api_key": 1, "body_timeout": 1}


def test_connections_from_one_address_are_limited() -> None:
    """Status 503 for those beyond the limit; when one is closed there is room again."""
    with Running(MODELS, gateway={"max_connections_per_address": 3}) as (gateway, _), ExitStack() as opened:
        first, *_ = [opened.enter_context(connect(gateway)) for _ in range(3)]
        wait_for(lambda: len(gateway.service.connections) == 3)
        for number in range(1, 6):
            with connect(gateway) as caller:
                assert parsed(read(caller)).json["error"]["code"] == "connections_per_address"
            assert gateway.service.rejections.counts == {"connections_per_address": number}
        assert len(gateway.service.connections) == 3, "rejected connections are not counted"
        first.close()
        wait_for(lambda: len(gateway.service.connections) == 2)
        assert post(gateway.url, ASK).status == 200


def test_all_connections_are_limited() -> None:
    """Whatever their addresses: status 503."""
    with Running(MODELS, gateway={"max_connections": 2}) as (gateway, _), ExitStack() as opened:
        for _ in range(2):
            opened.enter_context(connect(gateway))
        wait_for(lambda: len(gateway.service.connections) == 2)
        with connect(gateway) as caller:
            got = parsed(read(caller))
        assert (got.status, got.json["error"]["code"]) == (503, "connections")


def test_pipelined_requests_are_limited() -> None:
    """A few are answered in order; thousands in one packet close the connection."""
    with Running(pair(Reply("41", delay=0.3), Reply("42"))) as (gateway, _):
        data = json.dumps(ASK).encode()
        chat = START + b"Content-Length: %d\r\n\r\n%b" % (len(data), data)
        with connect(gateway) as caller:
            caller.sendall(chat + (GET + b"\r\n") * 3 + GET + b"Connection: close\r\n\r\n")
            assert read(caller).count(b"HTTP/1.1 200 OK") == 5
        with connect(gateway) as caller:
            caller.sendall(chat + (GET + b"\r\n") * 2000)
            assert read(caller) == b"", "a response now would be taken for that of the first request"
        assert gateway.service.rejections.counts == {"pipeline": 1}
        assert post(gateway.url, ASK).status == 200


def test_a_response_that_is_not_read_closes_the_connection() -> None:
    """After send_timeout seconds."""
    message = {"role": "assistant", "content": "x" * 20_000_000}
    long = Reply(raw=json.dumps({"choices": [{"index": 0, "message": message}]}).encode())
    with Running(pair(long, long), gateway={"send_timeout": 0.1}) as (gateway, _):
        data = json.dumps(ASK).encode()
        with connect(gateway) as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            caller.sendall(START + b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
            wait_for(lambda: gateway.service.rejections.counts == {"send_timeout": 1})
        wait_for(lambda: len(gateway.service.connections) == 0)


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 100, b"SSH-2.0-x\r\n"])
def test_a_request_that_is_not_http_is_rejected(sent: bytes) -> None:
    """Status 400 with an error body, and it is counted."""
    with Running(MODELS) as (gateway, _):
        assert refused(gateway, sent) == (400, "invalid_http")
        assert gateway.service.rejections.counts == {"invalid_http": 1}


def test_an_upgrade_to_another_protocol_is_ignored() -> None:
    """The request is answered in HTTP/1.1, and the connection is closed."""
    with Running(MODELS) as (gateway, _), connect(gateway) as caller:
        caller.sendall(GET + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\nPRI * HTTP/2.0\r\n\r\n")
        got = parsed(read(caller))
        assert (got.status, got.headers["connection"]) == (200, "close")


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":[' + b"[]," * 150_000 + b"0]}",
        b'{"a":{' + b'"k":0,' * 150_000 + b'"k":0}}',
        b"[" + b"1," * 150_000 + b"1]",
    ],
    ids=["lists", "fields", "numbers"],
)
def test_bodies_with_too_many_json_values_are_rejected(body: bytes) -> None:
    """Status 413, before they are parsed; a string with as many commas is accepted."""
    with Running(MODELS) as (gateway, _):
        got = post(gateway.url, body)
        assert (got.status, got.json["error"]["code"]) == (413, "too_many_values")
        assert post(gateway.url, ASK | {"metadata": {"text": '[{,",' * 150_000}}).status == 200
