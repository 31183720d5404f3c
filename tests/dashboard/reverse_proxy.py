"""A reverse proxy that terminates TLS and serves a gateway under a sub-path, on a real socket."""

import asyncio
import shutil
import ssl
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.gateway.configured import wait_for

# What a proxy overwrites, so that callers cannot choose it.
OWN = (b"x-forwarded-", b"connection:")


def certificate(directory: Path) -> Path:
    """A new certificate with its key, in one file, which nobody has signed."""
    openssl = shutil.which("openssl")
    assert openssl, "these tests need openssl: apt-get install -y openssl"
    path = directory / "proxy.pem"
    options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(path), "-out", str(directory / "certificate.pem")]
    subprocess.run([openssl, "req", *options, *names, *files], check=True, capture_output=True)
    with path.open("a") as file:
        file.write((directory / "certificate.pem").read_text())
    return path


class ReverseProxy:
    """A proxy that runs in a ``with`` block.

    Parameters
    ----------
    port: where the gateway listens on this machine.
    pem: the certificate and its key; none for plain HTTP.
    prefix: the sub-path under which the gateway is served.
    strip: whether the prefix is removed before the request is passed on (default: true).
    """

    def __init__(self, port: int, pem: Path | None, prefix: str = "", *, strip: bool = True) -> None:
        self._gateway, self._prefix, self._strip = port, prefix.encode(), strip
        self._context: ssl.SSLContext | None = None
        if pem is not None:
            self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._context.load_cert_chain(pem)
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        wait_for(lambda: bool(self.port))
        scheme = "https" if self._context else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}{self._prefix.decode()}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60.0)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        await self._stop.wait()
        server.close()
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._exchange(reader, writer)
        finally:
            await _close(writer)
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.rstrip().split(b"\r\n")
        method, path, version = first.split(b" ")
        if not path.startswith(self._prefix + b"/"):
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            return
        if self._strip:
            path = path[len(self._prefix) :]
        kept = [line for line in lines if not line.lower().startswith(OWN)]
        protocol = b"https" if self._context else b"http"
        added = [b"Connection: close", b"X-Forwarded-Proto: " + protocol]
        length = next((int(line.split(b":")[1]) for line in kept if line.lower().startswith(b"content-length:")), 0)
        body = await reader.readexactly(length)
        upstream, sending = await asyncio.open_connection("127.0.0.1", self._gateway)
        try:
            sending.write(b"\r\n".join([b" ".join((method, path, version)), *kept, *added, b"", b""]) + body)
            while data := await upstream.read(65536):
                writer.write(data)
                await writer.drain()
        finally:
            await _close(sending)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await asyncio.wait_for(writer.wait_closed(), 5.0)
