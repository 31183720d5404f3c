"""Requests that are too large are refused with OpenAI's error body and in bounded memory."""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bpac.testing import Reply, ScriptedServer
from tests.gateway.raw import CHAT, post
from tests.gateway.running import ASK, pair
from tests.gateway.serving import Process

MEGABYTE = 2**20
SIZE = 50 * MEGABYTE
PART = b"x" * 65536


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A gateway with the default limits, in a process whose memory can be measured."""
    with ScriptedServer(pair(Reply("41"), Reply("42"))) as models:
        process = Process(tmp_path_factory.mktemp("large"), models.base_url)
        process.start()
        assert post(process.url, ASK).status == 200
        yield process
        process.process.kill()
        process.process.wait(60.0)
        process.close()


def peak(process: Process) -> int:
    """The largest memory of the process so far, in bytes."""
    lines = Path(f"/proc/{process.process.pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def refusal(url: str, *, chunked: bool) -> tuple[bytes, Any]:
    """The response to a large body, which is sent on whatever the server answers meanwhile."""
    host, port = url.removeprefix("http://").split(":")
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % SIZE
    with socket.create_connection((host, int(port)), timeout=60) as caller:
        caller.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode())
        caller.sendall(length + b"\r\n\r\n")
        framed = b"%x\r\n%b\r\n" % (len(PART), PART) if chunked else PART
        with suppress(ConnectionError):  # it may hang up after its response
            for _ in range(SIZE // len(PART)):
                caller.sendall(framed)
            if chunked:
                caller.sendall(b"0\r\n\r\n")
        reply = b""
        with suppress(ConnectionError):
            while b"\r\n\r\n" not in reply or not reply.endswith(b"}"):
                data = caller.recv(65536)
                if not data:
                    break
                reply += data
    head, _, body = reply.partition(b"\r\n\r\n")
    return head.splitlines()[0], json.loads(body)


def test_a_header_of_129_megabytes_is_refused(gateway: Process) -> None:
    """Hardly anything of it is kept, however often it is sent."""
    before = peak(gateway)
    host, port = gateway.url.removeprefix("http://").split(":")
    for _ in range(3):
        with socket.create_connection((host, int(port)), timeout=60) as caller, suppress(ConnectionError):
            caller.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nX: ".encode())
            for _ in range(129 * MEGABYTE // len(PART)):
                caller.sendall(PART)
            caller.sendall(b"\r\n\r\n")
            assert caller.recv(65536).startswith(b"HTTP/1.1 431 ")
    assert peak(gateway) - before < 5 * MEGABYTE
    assert post(gateway.url, ASK).status == 200


@pytest.mark.parametrize(
    ("chunked", "most"),
    [(False, 5 * MEGABYTE), (True, 45 * MEGABYTE)],
    ids=["announced", "chunked"],
)
def test_a_body_of_fifty_megabytes_is_refused(gateway: Process, chunked: bool, most: int) -> None:
    """It is not read if its length is announced; otherwise no more than the limit is kept, and not for long."""
    before = peak(gateway)
    for _ in range(5):
        status, body = refusal(gateway.url, chunked=chunked)
        assert b"413" in status
        assert body["error"]["code"] == "too_large"
        assert set(body["error"]) == {"message", "type", "param", "code"}
    assert peak(gateway) - before < most
    assert post(gateway.url, ASK).status == 200
