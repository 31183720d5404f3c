"""A load generator that takes little time: its time is part of every latency that is measured."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle

import httptools
import uvloop

PATH = "/v1/chat/completions"


@dataclass(slots=True)
class Load:
    """The times of some requests.

    Parameters
    ----------
    seconds: the time that all of them took.
    times: the time of each, to its last byte, in seconds.
    """

    seconds: float = 0.0
    times: list[float] = field(default_factory=list)


class _Client(asyncio.Protocol):
    """One connection that sends the next request as soon as the last one is answered."""

    def __init__(self, request: bytes, left: list[int], load: Load, done: "asyncio.Future[None]") -> None:
        self._request = request
        self._left = left
        self._load = load
        self._done = done
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._waits = self._left[0] > 0
        if not self._waits:
            self._transport.close()
            return
        self._left[0] -= 1
        self._started = time.perf_counter()
        self._transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        ended = time.perf_counter()
        if self._parser.get_status_code() != 200:
            self._fail(f"status {self._parser.get_status_code()}")
            return
        self._load.times.append(ended - self._started)
        # A parser reads one response.
        self._parser = httptools.HttpResponseParser(self)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if self._waits:
            self._fail(f"connection lost: {error}")
        elif not self._done.done():
            self._done.set_result(None)

    def _fail(self, reason: str) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(reason))
        self._transport.close()


def send(port: int, requests: int, at_once: int, *, stream: bool, over: float = 0.0, key: str = "") -> Load:
    """Send requests to a server, and wait for all answers; the parameters are those of ``send_to_all``."""
    return send_to_all([port], requests, at_once, stream=stream, over=over, key=key)


def send_to_all(
    ports: Sequence[int], requests: int, at_once: int, *, stream: bool, over: float = 0.0, key: str = ""
) -> Load:
    """Send requests to several servers, and wait for all answers.

    All have equally many requests in flight, as behind a load balancer that chooses the one with the fewest: a server
    that answers faster gets more of them.

    Parameters
    ----------
    ports: the ports of the servers, on this machine.
    requests: the number of requests in all.
    at_once: the number of requests in flight.
    stream: whether answers are streamed.
    over: seconds over which the first requests are spread, so that not all are answered at the same time (default: 0).
    key: sent as a bearer token (default: none).
    """
    body = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "x" * 200}]})
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    head = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n{authorization}Content-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()

    async def run() -> Load:
        loop = asyncio.get_running_loop()
        load, left, ends = Load(), [requests], []
        started = time.perf_counter()
        for number, port in zip(range(at_once), cycle(ports)):  # in turns
            await asyncio.sleep(max(0.0, started + over * number / at_once - time.perf_counter()))
            done: asyncio.Future[None] = loop.create_future()
            ends.append(done)
            await loop.create_connection(lambda done=done: _Client(request, left, load, done), "127.0.0.1", port)  # type: ignore[misc]
        await asyncio.gather(*ends)
        load.seconds = time.perf_counter() - started
        return load

    return uvloop.run(run())
