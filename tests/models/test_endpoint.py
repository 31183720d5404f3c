"""Endpoints on real sockets: every way a response can be framed, cut, late or wrong, with both implementations."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import psutil  # type: ignore[import-untyped]
import pytest

from bpac.models import endpoint
from bpac.models.connections import Endpoint, new_session
from bpac.models.direct_endpoint import USED
from bpac.models.endpoint import new_endpoint

LONG = aiohttp.ClientTimeout(total=30.0)
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n42"
CERTIFICATE = Path(__file__).with_name("localhost.pem")


@pytest.fixture(params=[True, False], ids=["direct", "session"], autouse=True)
def direct(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether endpoints use aiohttp's inner names. Each test runs with them, and with the public API only."""
    monkeypatch.setattr(endpoint, "DIRECT", request.param)
    return bool(request.param)


@dataclass(slots=True)
class Server:
    """Answers every request with the same bytes, and records the requests.

    Parameters
    ----------
    response: the bytes of the response.
    closes: whether it closes the connection after them.
    """

    response: bytes
    closes: bool = False
    connections: int = 0
    closed: int = 0
    heads: list[bytes] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head)
                length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: "))
                await reader.readexactly(int(length[16:]))
                writer.write(self.response)
                if self.closes:
                    break
        except asyncio.IncompleteReadError:
            self.closed += 1
        finally:
            writer.close()


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server on a port of its own; all its connections are served to their end when it is closed."""
    connections: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handler(reader, writer)
        writer.transport.abort()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.create_task(serve(reader, writer)))

    async with await asyncio.start_server(begin, "127.0.0.1", 0, ssl=context) as listening:
        yield int(listening.sockets[0].getsockname()[1])
    await asyncio.gather(*connections, return_exceptions=True)
    await asyncio.sleep(0)  # for the connection that was aborted last


@asynccontextmanager
async def responding(response: bytes, *, closes: bool = False, encrypted: bool = False) -> AsyncIterator[Server]:
    """A server that always sends that response, on a port of its own."""
    server, context = Server(response, closes), None
    if encrypted:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    async with serving(server.serve, context) as port:
        server.url = f"http{'s' if encrypted else ''}://localhost:{port}/v1/x?y=1"
        yield server


async def posted(endpoint: Endpoint, timeout: aiohttp.ClientTimeout = LONG) -> tuple[int, bytes]:
    """Status and body of a response."""
    async with endpoint.post(b"{}", timeout) as response:
        return response.status, await response.content.read()


def asking(
    response: bytes, ask: Callable[[Endpoint], Awaitable[object]], *, closes: bool = False, encrypted: bool = False
) -> tuple[object, Server]:
    """The result of ``ask`` with an endpoint of such a server, and the server."""

    async def run() -> tuple[object, Server]:
        async with responding(response, closes=closes, encrypted=encrypted) as server, new_session() as session:
            return await ask(new_endpoint(session, server.url, {"X-Own": "1"})), server

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("response", "closes"),
    [
        (WHOLE, False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n4\r\n1\r\n2\r\n0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\n\r\n42", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + WHOLE, False),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b"
         % (len(gzip.compress(b"42", mtime=0)), gzip.compress(b"42", mtime=0)), False),
    ],
    ids=["length", "chunks", "until the end", "hints first", "compressed"],
)  # fmt: skip
def test_every_framing_of_a_response_is_read(response: bytes, closes: bool) -> None:
    """To its end, and the connection is used again if the server keeps it open."""

    async def twice(endpoint: Endpoint) -> list[tuple[int, bytes]]:
        return [await posted(endpoint), await posted(endpoint)]

    responses, server = asking(response, twice, closes=closes)
    assert responses == [(200, b"42"), (200, b"42")]
    assert server.connections == (2 if closes else 1)


def test_a_request_has_the_headers_it_was_given_and_no_others() -> None:
    """Those of the endpoint and those of this request, with the host and the length."""

    async def ask(endpoint: Endpoint) -> None:
        async with endpoint.post(b"{}", LONG, {"X-This": "2"}) as response:
            await response.content.read()

    _, server = asking(WHOLE, ask)
    first, *lines = server.heads[0].split(b"\r\n")
    assert first == b"POST /v1/x?y=1 HTTP/1.1"
    host = server.url.split("/")[2].encode()
    assert lines == [b"Host: " + host, b"X-Own: 1", b"X-This: 2", b"Content-Length: 2", b"", b""]


def test_an_encrypted_connection_is_checked() -> None:
    """A certificate that is not trusted is refused; one that is trusted is not."""

    async def refused(endpoint: Endpoint) -> None:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await posted(endpoint)

    asking(WHOLE, refused, encrypted=True)

    async def trusting() -> tuple[int, bytes]:
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(CERTIFICATE)))
        async with responding(WHOLE, encrypted=True) as server, aiohttp.ClientSession(connector=connector) as session:
            return await posted(new_endpoint(session, server.url, {}))

    assert asyncio.run(trusting()) == (200, b"42")


@pytest.mark.parametrize(
    ("response", "closes", "error"),
    [
        (b"no HTTP at all\r\n\r\n", False, aiohttp.ClientPayloadError),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", False, aiohttp.ClientPayloadError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n42", True, aiohttp.ClientPayloadError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n42", True, aiohttp.ClientPayloadError),
        (b"", True, aiohttp.ServerDisconnectedError),
    ],
    ids=["nonsense", "another protocol", "cut", "cut in a chunk", "nothing"],
)
def test_what_is_not_a_response_is_an_error(
    response: bytes, closes: bool, error: type[Exception], direct: bool
) -> None:
    """Of the client's, and the next request does not read what is left of it."""

    async def twice(endpoint: Endpoint) -> None:
        for _ in range(2):
            with pytest.raises(error):
                await posted(endpoint)

    _, server = asking(response, twice, closes=closes)
    # The session has read all of a response that switches protocols, and uses the connection again.
    assert server.connections == (1 if not direct and b"101" in response else 2)


@pytest.mark.parametrize(
    "timeout", [aiohttp.ClientTimeout(total=0.2), aiohttp.ClientTimeout(total=None, sock_read=0.2)]
)
@pytest.mark.parametrize("response", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n42"], ids=["silent", "stops"])
def test_a_timeout_closes_the_connection(response: bytes, timeout: aiohttp.ClientTimeout) -> None:
    """Whether the response takes too long in all, or too long without a byte."""

    async def run() -> None:
        async with responding(response) as server, new_session() as session, asyncio.timeout(60.0):
            with pytest.raises(TimeoutError):
                await posted(new_endpoint(session, server.url, {}), timeout)
            while not server.closed:
                await asyncio.sleep(0.01)

    asyncio.run(run())


@pytest.mark.parametrize("response", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n42"], ids=["silent", "stops"])
def test_cancellation_closes_the_connection(response: bytes) -> None:
    """Before the headers of the response and after them."""

    async def run() -> None:
        async with responding(response) as server, new_session() as session, asyncio.timeout(60.0):
            task = asyncio.create_task(posted(new_endpoint(session, server.url, {})))
            while not server.heads:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while not server.closed:
                await asyncio.sleep(0.01)

    asyncio.run(run())


def test_a_response_that_is_not_read_to_its_end_closes_the_connection() -> None:
    """The next request must not read the rest of it."""

    async def twice(endpoint: Endpoint) -> None:
        for _ in range(2):
            async with endpoint.post(b"{}", LONG) as response:
                assert await response.content.readany() == b"4"

    _, server = asking(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n4\r\n", twice)
    assert server.connections == 2


def test_a_closed_session_is_a_connection_error() -> None:
    """Like a server that is not there."""

    async def run() -> None:
        session = new_session()
        posting = new_endpoint(session, "http://localhost:1/", {})
        await session.close()
        with pytest.raises(aiohttp.ClientConnectionError, match="closed"):
            await posted(posting)

    asyncio.run(run())


@pytest.mark.parametrize("value", ["1\r\nX-Other: 2", "1\nX", "1\0"])
def test_a_header_with_a_line_break_is_refused(value: str) -> None:
    """It would be read as two, whether it comes with the endpoint or with a request."""

    async def run() -> None:
        async with new_session() as session:
            with pytest.raises(ValueError, match="header"):
                new_endpoint(session, "http://localhost/", {"X-Own": value})
            with pytest.raises(ValueError, match="line break"):
                new_endpoint(session, "http://localhost/", {}).post(b"", LONG, {"X-This": value})

    asyncio.run(run())


def test_a_request_on_a_connection_that_the_server_closes_is_sent_again(direct: bool) -> None:
    """On another connection, unless the first one was new: then the server may have processed it."""
    asked = []

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n{}"))
        writer.write(WHOLE)
        # The next request is read, but not answered.
        with suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n{}")

    async def run() -> list[tuple[int, bytes]]:
        async with serving(once) as port, new_session() as session:
            one, other = (new_endpoint(session, f"http://127.0.0.1:{port}/", {}) for _ in range(2))
            responses = [await posted(endpoint) for endpoint in (one, one, other, one, other)]
            if direct:
                USED.clear()  # as if the connection were a new one
                with pytest.raises(aiohttp.ClientError):
                    await posted(one)
        return responses

    assert asyncio.run(run()) == [(200, b"42")] * 5
    assert len(asked) == 5


def test_a_second_response_to_a_request_is_not_taken_for_the_next_one(direct: bool) -> None:
    """It arrives while the connection is idle, and the connection is not used again."""
    if not direct:
        pytest.skip("aiohttp's session uses such a connection again")
    count, sent = 0, asyncio.Event()

    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        while await reader.read(10_000):
            count += 1
            response = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % count
            writer.write(response)
            await asyncio.sleep(0.02)
            writer.write(response)
            sent.set()

    async def run() -> list[bytes]:
        bodies = []
        async with serving(twice) as port, new_session() as session:
            posting = new_endpoint(session, f"http://127.0.0.1:{port}/", {})
            for _ in range(4):
                bodies.append((await posted(posting))[1])
                await sent.wait()
                sent.clear()
                await asyncio.sleep(0.1)
        return bodies

    assert asyncio.run(run()) == [b"1", b"2", b"3", b"4"]


def test_a_server_that_does_not_read_does_not_keep_its_connection(direct: bool) -> None:
    """Although most of the request has not been sent."""
    if not direct:
        pytest.skip("aiohttp's session closes a connection after it has sent everything")
    left = asyncio.Event()

    async def unread(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await left.wait()

    async def run() -> None:
        async with serving(unread) as port, new_session() as session:
            posting = new_endpoint(session, f"http://127.0.0.1:{port}/", {})
            with pytest.raises(TimeoutError):
                async with posting.post(b"x" * 20_000_000, aiohttp.ClientTimeout(total=0.2)):
                    pass
            async with asyncio.timeout(60.0):
                while open_to(port):
                    await asyncio.sleep(0.01)
            left.set()

    asyncio.run(run())


def open_to(port: int) -> bool:
    """Whether this process has a connection to a port."""
    found = psutil.Process().net_connections("tcp")
    return any(one.raddr and one.raddr.port == port and one.status == "ESTABLISHED" for one in found)


def test_given_headers_override_those_of_the_url() -> None:
    """There is one Host and one Authorization, whatever the case of their names."""

    async def run() -> list[bytes]:
        async with responding(WHOLE) as server, new_session() as session:
            named = server.url.replace("//", "//name:word@")
            await posted(new_endpoint(session, named, {}))
            await posted(new_endpoint(session, named, {"authorization": "Bearer 1", "host": "other"}))
        return server.heads

    first, second = asyncio.run(run())
    assert b"\r\nAuthorization: Basic bmFtZTp3b3Jk\r\n" in first
    assert second.lower().count(b"host:") == second.lower().count(b"authorization:") == 1
    assert b"host: other\r\nauthorization: bearer 1\r\n" in second.lower()
