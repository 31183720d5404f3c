"""A scripted server: real HTTP on the loopback interface, with the standard library only."""

import json
import selectors
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from bpac.errors import InputError
from bpac.testing.replies import Reply, Request, Script


class ScriptedServer:
    """An OpenAI-compatible server for tests, which runs on the loopback interface inside the ``with`` block.

    Requests to ``/responses`` get their replies in the format of OpenAI's Responses API, those to ``/messages`` in that
    of Anthropic's Messages API, and all others as chat completions.

    It answers ``POST`` requests as the script says and ``GET`` requests with a list of one model. An exception in the
    script is sent as status 500, and raised again at the end of the ``with`` block so that the test fails.

    Parameters
    ----------
    script: a function that returns the reply to a request, or one reply for all requests.

    Attributes
    ----------
    script: the script; it can be replaced while the server runs.
    requests: the received requests, in order of arrival.
    accepted: number of accepted connections.
    hang_ups: number of clients that closed their connection before they had the reply.

    >>> import urllib.request
    >>> with ScriptedServer(Reply("42")) as server:
    ...     ask = urllib.request.Request(f"{server.base_url}/chat/completions", b'{"messages": []}')
    ...     with urllib.request.urlopen(ask) as response:
    ...         json.load(response)["choices"][0]["message"]["content"]
    '42'
    """

    def __init__(self, script: Script | Reply) -> None:
        self.script: Script = (lambda _: script) if isinstance(script, Reply) else script
        self.requests: list[Request] = []
        self.accepted = 0
        self.hang_ups = 0
        self._errors: list[Exception] = []
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._http: _ScriptedHttpServer | None = None

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI clients, including ``/v1``; the port is different each time."""
        if self._http is None:
            raise InputError("the server was not started: use  with ScriptedServer(…) as server: …")
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"scripted": self})
        self._http = _ScriptedHttpServer(("127.0.0.1", 0), handler)
        # With this short polling interval the server stops immediately at the end of a test.
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), name="scripted-server")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._http is not None
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        with self._lock:
            for connection in self._connections:
                # This wakes up threads that wait for another request on an open connection.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._http.server_close()
        if self._errors and error is None:
            raise self._errors[0]


class _ScriptedHttpServer(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    scripted: ScriptedServer
    protocol_version = "HTTP/1.1"
    # Headers and body are written separately: with Nagle's algorithm each reply would be delayed by about 40 ms.
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        with self.scripted._lock:
            self.scripted.accepted += 1
            self.scripted._connections.add(self.connection)
            if self.scripted._closing.is_set():
                self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        with self.scripted._lock:
            self.scripted._connections.discard(self.connection)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.scripted.hang_ups += not self.scripted._closing.is_set()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is the base class's
        """Write no log."""

    def do_GET(self) -> None:
        """List the models."""
        self._send(200, {}, _json({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))

    def do_POST(self) -> None:
        """Reply as the script says."""
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = json.loads(data)
        except ValueError as error:
            self._send(400, {}, _json({"error": {"message": f"the request body is not JSON: {error}"}}))
            return
        with self.scripted._lock:
            request = Request(len(self.scripted.requests) + 1, body, headers, time.monotonic(), self.path)
            self.scripted.requests.append(request)
        try:
            reply = self.scripted.script(request)
            if not isinstance(reply, Reply):
                raise TypeError(f"the script must return a Reply, got {reply!r}")
        except Exception as error:  # the script is code of the test
            self.scripted._errors.append(error)
            reply = Reply(f"the script failed: {error!r}", status=500)
        self._wait(reply.delay)
        if request.body.get("stream") and reply.status < 300 and reply.raw is None:
            self._stream(request, reply)
        else:
            body = _json(reply.body(request)) if reply.raw is None else reply.raw
            self._send(reply.status, reply.headers, body, cut=reply.cut is not None)

    def _send(self, status: int, headers: Mapping[str, str], body: bytes, cut: bool = False) -> None:
        self._start(status, {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers})
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut

    def _stream(self, request: Request, reply: Reply) -> None:
        self._start(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **reply.headers})
        for sent, chunk in enumerate(reply.chunks(request)):
            if sent == reply.cut:
                self.close_connection = True
                return
            self._wait(reply.pause)
            named = b"" if request.api == "chat" else b"event: %b\n" % chunk["type"].encode()
            self._write_chunk(named + b"data: " + _json(chunk) + b"\n\n")
        if request.api == "chat":
            self._write_chunk(b"data: [DONE]\n\n")
        self._write_chunk(b"")

    def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _write_chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _wait(self, seconds: float) -> None:
        """Wait, but stop if the client disconnects or the server is closed."""
        end = time.monotonic() + seconds
        # Not select.select, which is limited to file descriptors below 1024.
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            while (left := end - time.monotonic()) > 0.0:
                ready = selector.select(min(left, 0.02))
                if self.scripted._closing.is_set() or (ready and not self.connection.recv(1, socket.MSG_PEEK)):
                    raise ConnectionAbortedError("the client disconnected, or the server was closed")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
