"""Callers who send too much, too many or too slowly, before anybody knows who they are."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from bpac.testing import Reply
from tests.gateway.configured import wait_for
from tests.gateway.raw import CHAT, Got, post
from tests.gateway.running import ASK, Running, RunningGateway, pair

MODELS = pair(Reply("41"), Reply("42"))
START = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are looked at often, so that no test waits a second for it."""
    monkeypatch.setattr("bpac.gateway.http.connections.LOOK_EVERY", 0.02)


def connect(gateway: RunningGateway) -> socket.socket:
    """A connection."""
    return socket.create_connection(("127.0.0.1", gateway.port), timeout=20)


def read(caller: socket.socket) -> bytes:
    """All that comes until the gateway hangs up."""
    got = b""
    with suppress(ConnectionError):
        while data := caller.recv(65536):
            got += data
    return got


def parsed(reply: bytes) -> Got:
    """A reply that was read byte by byte."""
    head, _, body = reply.partition(b"\r\n\r\n")
    status, *lines = head.decode().splitlines()
    return Got(int(status.split()[1]), dict(line.lower().split(": ", 1) for line in lines), body)


def refused(gateway: RunningGateway, *parts: bytes) -> Any:
    """Send parts until the gateway hangs up; its status and the code of its error."""
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


def test_heads_that_are_too_large() -> None:
    """One header, the address or many headers: status 431, and the next caller is served."""
    with Running(MODELS) as (gateway, _):
        large = b"x" * 65536
        attacks = {
            "one header": (START + b"X: ", *endless(large)),
            "in small parts": (START + b"X: ", *endless(b"x" * 1000, 2**18)),
            "the address": (b"GET /", *endless(large)),
            "in one piece": (START + b"X: " + b"x" * 70_000 + b"\r\n\r\n",),
        }
        for attack in attacks.values():
            assert refused(gateway, *attack) == (431, "head_too_large")
        for count in (101, 5000):
            headers = b"".join(b"X-%d: 1\r\n" % number for number in range(count))
            assert refused(gateway, START + headers + b"\r\n") == (431, "too_many_headers")
        assert gateway.service.refusals.counts == {"head_too_large": 4, "too_many_headers": 2}
        assert post(gateway.url, ASK).status == 200
        page = post(gateway.url, b"", "/metrics", method="GET").body.decode()
        assert 'bpac_http_refused_total{reason="head_too_large"} 4' in page


def test_an_attack_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Its first refusal is told at once, the others together and not before a minute has passed."""
    with Running(MODELS) as (gateway, _):
        for _ in range(20):
            assert refused(gateway, b"no HTTP\r\n") == (400, "invalid_http")
        assert gateway.service.refusals.counts == {"invalid_http": 20}
    told = [vars(record) for record in caplog.records if record.message == "request refused"]
    assert [(line["reason"], line["address"], line["since_last_line"]) for line in told] == [
        ("invalid_http", "127.0.0.1", 1)
    ]


def test_what_comes_after_the_head_is_limited_too() -> None:
    """Trailers and sizes of chunks are kept by the parser until they are complete, and so could grow for ever."""
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
        assert sum(gateway.service.refusals.counts.values()) == 3
        assert post(gateway.url, ASK).status == 200


def test_bodies_are_no_heads() -> None:
    """Large ones pass whatever the limit on heads, in one piece with theirs or in many."""
    with Running(MODELS, gateway={"max_head": 1024}) as (gateway, _):
        data = json.dumps(ASK | {"metadata": {"long": "x" * 300_000}}).encode()
        assert post(gateway.url, data).status == 200
        framed = b"".join(b"1\r\n%c\r\n" % byte for byte in data[:100_000])
        rest = b"%x\r\n%b\r\n0\r\n\r\n" % (len(data) - 100_000, data[100_000:])
        with connect(gateway) as caller:
            caller.sendall(START + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + framed + rest)
            assert parsed(read(caller)).status == 200
        assert gateway.service.refusals.counts == {}


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
def test_callers_who_take_their_time(sent: bytes, reason: str, earlier: bool) -> None:
    """Status 408, on a new connection and on one that has been answered before; nothing is left of them."""
    with Running(MODELS, gateway={"head_timeout": 0.1, "body_timeout": 0.1}) as (gateway, _):
        with connect(gateway) as caller:
            if earlier:
                caller.sendall(GET + b"\r\n")
                assert b"200 OK" in caller.recv(65536)
            if sent or not earlier:  # an idle connection that was used is closed without a word
                caller.sendall(sent)
                got = parsed(read(caller))
                assert (got.status, got.json["error"]["code"]) == (408, reason)
                assert gateway.service.refusals.counts == {reason: 1}
        wait_for(lambda: len(gateway.service.connections) == 0)


def test_an_answer_that_takes_longer_than_a_head_may() -> None:
    """Only sending is timed: not the model, nor a stray line break while it writes."""
    options = {"head_timeout": 0.1, "body_timeout": 0.1}
    with Running(pair(Reply("41"), Reply("42", delay=0.5)), gateway=options, policy="always") as (gateway, _):
        data = json.dumps(ASK).encode()
        with connect(gateway) as caller:
            caller.sendall(START + b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data))
            caller.sendall(b"\r\n")
            assert parsed(read(caller)).status == 200
        assert gateway.service.refusals.counts == {}


def test_a_body_that_goes_on_after_its_answer() -> None:
    """The connection ends without a second reply, which would be taken for the answer to another request."""
    with (
        Running(MODELS, gateway={"body_timeout": 0.1, "api_keys": ["one"]}) as (gateway, _),
        connect(gateway) as caller,
    ):
        caller.sendall(START + b"Content-Length: 100\r\n\r\n{")
        got = read(caller)
        assert (got.count(b"HTTP/1.1 "), parsed(got).status) == (1, 401)
        assert gateway.service.refusals.counts == {"invalid_api_key": 1, "body_timeout": 1}


def test_too_many_connections_from_one_address() -> None:
    """Status 503 for those beyond the limit; when one is closed there is room again."""
    with Running(MODELS, gateway={"max_connections_per_address": 3}) as (gateway, _), ExitStack() as opened:
        first, *_ = [opened.enter_context(connect(gateway)) for _ in range(3)]
        wait_for(lambda: len(gateway.service.connections) == 3)
        for number in range(1, 6):
            with connect(gateway) as caller:
                assert parsed(read(caller)).json["error"]["code"] == "connections_per_address"
            assert gateway.service.refusals.counts == {"connections_per_address": number}
        assert len(gateway.service.connections) == 3, "those that were refused take no room"
        first.close()
        wait_for(lambda: len(gateway.service.connections) == 2)
        assert post(gateway.url, ASK).status == 200


def test_too_many_connections_in_all() -> None:
    """Whatever their addresses."""
    with Running(MODELS, gateway={"max_connections": 2}) as (gateway, _), ExitStack() as opened:
        for _ in range(2):
            opened.enter_context(connect(gateway))
        wait_for(lambda: len(gateway.service.connections) == 2)
        with connect(gateway) as caller:
            got = parsed(read(caller))
        assert (got.status, got.json["error"]["code"]) == (503, "connections")


def test_requests_far_ahead_of_their_answers() -> None:
    """A few may wait in line; thousands in one packet end the connection."""
    with Running(pair(Reply("41", delay=0.3), Reply("42"))) as (gateway, _):
        data = json.dumps(ASK).encode()
        chat = START + b"Content-Length: %d\r\n\r\n%b" % (len(data), data)
        with connect(gateway) as caller:
            caller.sendall(chat + (GET + b"\r\n") * 3 + GET + b"Connection: close\r\n\r\n")
            assert read(caller).count(b"HTTP/1.1 200 OK") == 5
        with connect(gateway) as caller:
            caller.sendall(chat + (GET + b"\r\n") * 2000)
            assert read(caller) == b"", "a reply now would be taken for that of the first request"
        assert gateway.service.refusals.counts == {"pipeline": 1}
        assert post(gateway.url, ASK).status == 200


def test_a_caller_who_does_not_read() -> None:
    """An answer that stays unread is given up, and its connection with it."""
    message = {"role": "assistant", "content": "x" * 20_000_000}
    long = Reply(raw=json.dumps({"choices": [{"index": 0, "message": message}]}).encode())
    with Running(pair(long, long), gateway={"send_timeout": 0.1}) as (gateway, _):
        data = json.dumps(ASK).encode()
        with connect(gateway) as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            caller.sendall(START + b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
            wait_for(lambda: gateway.service.refusals.counts == {"send_timeout": 1})
        wait_for(lambda: len(gateway.service.connections) == 0)


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 100, b"SSH-2.0-x\r\n"])
def test_what_is_not_http(sent: bytes) -> None:
    """Status 400 with the error's body, counted."""
    with Running(MODELS) as (gateway, _):
        assert refused(gateway, sent) == (400, "invalid_http")
        assert gateway.service.refusals.counts == {"invalid_http": 1}


def test_another_protocol_is_not_changed_to() -> None:
    """Who offers one is answered in HTTP, and the connection ends there."""
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
def test_bodies_of_many_values(body: bytes) -> None:
    """Status 413, without making any of them; a text with as many commas is fine."""
    with Running(MODELS) as (gateway, _):
        got = post(gateway.url, body)
        assert (got.status, got.json["error"]["code"]) == (413, "too_many_values")
        assert post(gateway.url, ASK | {"metadata": {"text": '[{,",' * 150_000}}).status == 200
