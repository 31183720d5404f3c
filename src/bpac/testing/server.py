"""A scripted server: real HTTP on this machine, in threads of its own, with nothing to install."""

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

from bpac.testing.replies import Reply, Request, Script


class ScriptedServer:
    """An OpenAI-compatible server on this machine, in threads of its own, that answers as a script says.

    An error in the script is sent as status 500 and raised again where the ``with`` block ends.

    Parameters
    ----------
    script: the reply to each request, or the one reply to all of them.

    What it saw is in ``requests``; ``accepted`` says on how many connections they came, and ``hang_ups`` how many
    callers did not wait for their reply.

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
        self.errors: list[Exception] = []
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self.connections: set[socket.socket] = set()

    @property
    def base_url(self) -> str:
        """Where it is, ``/v1`` included."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"scripted": self})
        self._http = _ScriptedHttpServer(("127.0.0.1", 0), handler)
        # Often asked whether to stop: a test ends when its last line does.
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), name="scripted-server")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        with self.lock:
            for connection in self.connections:
                # Threads that wait for a further request on an open connection wake up.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._http.server_close()
        if self.errors and error is None:
            raise self.errors[0]


class _ScriptedHttpServer(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    scripted: ScriptedServer
    protocol_version = "HTTP/1.1"
    # Headers and body are written one after the other: without this, each reply would wait 40 ms for the other side.
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        with self.scripted.lock:
            self.scripted.accepted += 1
            self.scripted.connections.add(self.connection)
            if self.scripted.closing.is_set():
                self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        with self.scripted.lock:
            self.scripted.connections.discard(self.connection)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.scripted.hang_ups += not self.scripted.closing.is_set()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is the base class's
        """Say nothing."""

    def do_GET(self) -> None:
        """Name the models."""
        self._send(200, {}, _json({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))

    def do_POST(self) -> None:
        """Reply as the script says."""
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.scripted.lock:
            request = Request(len(self.scripted.requests) + 1, json.loads(data), headers, time.monotonic())
            self.scripted.requests.append(request)
        try:
            reply = self.scripted.script(request)
        except Exception as error:  # the script is the tests' code
            self.scripted.errors.append(error)
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
        for sent, piece in enumerate(reply.pieces(request)):
            if sent == reply.cut:
                self.close_connection = True
                return
            self._wait(reply.pause)
            self._chunk(b"data: " + _json(piece) + b"\n\n")
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _wait(self, seconds: float) -> None:
        """Wait, but not for a caller who has hung up, nor when the server closes."""
        end = time.monotonic() + seconds
        # Not select.select, which knows only the first thousand connections of a process.
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            while (left := end - time.monotonic()) > 0.0:
                ready = selector.select(min(left, 0.02))
                if self.scripted.closing.is_set() or (ready and not self.connection.recv(1, socket.MSG_PEEK)):
                    raise ConnectionAbortedError("nobody waits for the rest")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
