"""Posting on aiohttp's connections: every way a reply can be framed, cut, late or wrong, on a real socket."""

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

from bpac.models.connections import new_session
from bpac.models.endpoint import USED, Endpoint

PATIENT = aiohttp.ClientTimeout(total=30.0)
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n42"
CERTIFICATE = Path(__file__).with_name("localhost.pem")


@dataclass(slots=True)
class Server:
    """Says one thing, whatever is asked, and remembers what that was.

    Parameters
    ----------
    said: the bytes of the reply.
    closes: whether it closes the connection after them.
    """

    said: bytes
    closes: bool = False
    connections: int = 0
    closed: int = 0
    heads: list[bytes] = field(default_factory=list)
    url: str = ""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head)
                length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: "))
                await reader.readexactly(int(length[16:]))
                writer.write(self.said)
                if self.closes:
                    break
        except asyncio.IncompleteReadError:
            self.closed += 1
        finally:
            writer.close()


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server on a port of its own; whatever it was told is done when it ends."""
    talks: list[asyncio.Task[None]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handler(reader, writer)
        writer.transport.abort()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.append(asyncio.create_task(talk(reader, writer)))

    async with await asyncio.start_server(begin, "127.0.0.1", 0, ssl=context) as listening:
        yield int(listening.sockets[0].getsockname()[1])
    await asyncio.gather(*talks, return_exceptions=True)
    await asyncio.sleep(0)  # for what was aborted last


@asynccontextmanager
async def talking(said: bytes, *, closes: bool = False, encrypted: bool = False) -> AsyncIterator[Server]:
    """A server on a port of its own."""
    server, context = Server(said, closes), None
    if encrypted:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    async with serving(server.talk, context) as port:
        server.url = f"http{'s' if encrypted else ''}://localhost:{port}/v1/x?y=1"
        yield server


async def posted(endpoint: Endpoint, timeout: aiohttp.ClientTimeout = PATIENT) -> tuple[int, bytes]:
    """Status and body of a reply."""
    async with endpoint.post(b"{}", timeout) as reply:
        return reply.status, await reply.content.read()


def asking(
    said: bytes, ask: Callable[[Endpoint], Awaitable[object]], *, closes: bool = False, encrypted: bool = False
) -> tuple[object, Server]:
    """What comes of asking such a server."""

    async def run() -> tuple[object, Server]:
        async with talking(said, closes=closes, encrypted=encrypted) as server, new_session() as session:
            return await ask(Endpoint(session, server.url, {"X-Own": "1"})), server

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "closes"),
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
def test_ways_to_frame_a_reply(said: bytes, closes: bool) -> None:
    """Each is read to its end, and the connection used again if the server keeps it."""

    async def twice(endpoint: Endpoint) -> list[tuple[int, bytes]]:
        return [await posted(endpoint), await posted(endpoint)]

    replies, server = asking(said, twice, closes=closes)
    assert replies == [(200, b"42"), (200, b"42")]
    assert server.connections == (2 if closes else 1)


def test_what_is_sent() -> None:
    """The address, the headers of the endpoint and those of this request."""

    async def ask(endpoint: Endpoint) -> None:
        async with endpoint.post(b"{}", PATIENT, {"X-This": "2"}) as reply:
            await reply.content.read()

    _, server = asking(WHOLE, ask)
    first, *lines = server.heads[0].split(b"\r\n")
    assert first == b"POST /v1/x?y=1 HTTP/1.1"
    host = server.url.split("/")[2].encode()
    assert lines == [b"Host: " + host, b"X-Own: 1", b"X-This: 2", b"Content-Length: 2", b"", b""]


def test_an_encrypted_connection_is_checked() -> None:
    """A certificate that nobody vouches for is refused; one that is trusted is not."""

    async def refused(endpoint: Endpoint) -> None:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await posted(endpoint)

    asking(WHOLE, refused, encrypted=True)

    async def trusting() -> tuple[int, bytes]:
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(CERTIFICATE)))
        async with talking(WHOLE, encrypted=True) as server, aiohttp.ClientSession(connector=connector) as session:
            return await posted(Endpoint(session, server.url, {}))

    assert asyncio.run(trusting()) == (200, b"42")


@pytest.mark.parametrize(
    ("said", "closes", "error"),
    [
        (b"no HTTP at all\r\n\r\n", False, aiohttp.ClientPayloadError),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", False, aiohttp.ClientPayloadError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n42", True, aiohttp.ClientPayloadError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n42", True, aiohttp.ClientPayloadError),
        (b"", True, aiohttp.ServerDisconnectedError),
    ],
    ids=["nonsense", "another protocol", "cut", "cut in a chunk", "nothing"],
)
def test_what_is_no_reply(said: bytes, closes: bool, error: type[Exception]) -> None:
    """Each is an error of the client's, and the next request does not meet what is left of it."""

    async def twice(endpoint: Endpoint) -> None:
        for _ in range(2):
            with pytest.raises(error):
                await posted(endpoint)

    _, server = asking(said, twice, closes=closes)
    assert server.connections == 2


@pytest.mark.parametrize(
    "timeout", [aiohttp.ClientTimeout(total=0.2), aiohttp.ClientTimeout(total=None, sock_read=0.2)]
)
@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n42"], ids=["silent", "stops"])
def test_a_server_that_takes_too_long(said: bytes, timeout: aiohttp.ClientTimeout) -> None:
    """Too long in all, or without a byte: the connection is closed."""

    async def run() -> None:
        async with talking(said) as server, new_session() as session, asyncio.timeout(10.0):
            with pytest.raises(TimeoutError):
                await posted(Endpoint(session, server.url, {}), timeout)
            while not server.closed:
                await asyncio.sleep(0.01)

    asyncio.run(run())


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n42"], ids=["silent", "stops"])
def test_who_is_cancelled_leaves_no_connection(said: bytes) -> None:
    """Neither before the head of the reply nor after."""

    async def run() -> None:
        async with talking(said) as server, new_session() as session, asyncio.timeout(10.0):
            task = asyncio.create_task(posted(Endpoint(session, server.url, {})))
            while not server.heads:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while not server.closed:
                await asyncio.sleep(0.01)

    asyncio.run(run())


def test_a_reply_that_is_not_read_is_not_left_to_the_next() -> None:
    """Its connection is closed."""

    async def twice(endpoint: Endpoint) -> None:
        for _ in range(2):
            async with endpoint.post(b"{}", PATIENT) as reply:
                assert await reply.content.readany() == b"4"

    _, server = asking(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n4\r\n", twice)
    assert server.connections == 2


def test_a_closed_session_is_said_to_be_closed() -> None:
    """And nothing else breaks."""

    async def run() -> None:
        session = new_session()
        endpoint = Endpoint(session, "http://localhost:1/", {})
        await session.close()
        with pytest.raises(aiohttp.ClientConnectionError, match="closed"):
            await posted(endpoint)

    asyncio.run(run())


@pytest.mark.parametrize("value", ["1\r\nX-Other: 2", "1\nX", "1\0"])
def test_a_header_stays_one_header(value: str) -> None:
    """What would be read as two is refused, at the beginning or with a request."""

    async def run() -> None:
        async with new_session() as session:
            with pytest.raises(ValueError, match="header"):
                Endpoint(session, "http://localhost/", {"X-Own": value})
            with pytest.raises(ValueError, match="line break"):
                Endpoint(session, "http://localhost/", {}).post(b"", PATIENT, {"X-This": value})

    asyncio.run(run())


def test_a_connection_that_was_closed_while_idle_costs_nothing() -> None:
    """The news crosses with the request: it is sent once more, on another connection."""
    asked = []

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n{}"))
        writer.write(WHOLE)
        # The next request is read, but not looked at.
        with suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n{}")

    async def run() -> list[tuple[int, bytes]]:
        async with serving(once) as port, new_session() as session:
            one, other = (Endpoint(session, f"http://127.0.0.1:{port}/", {}) for _ in range(2))
            replies = [await posted(endpoint) for endpoint in (one, one, other, one, other)]
            USED.clear()  # as if the connection were a new one: that is another matter
            with pytest.raises(aiohttp.ClientError):
                await posted(one)
        return replies

    assert asyncio.run(run()) == [(200, b"42")] * 5
    assert len(asked) == 5


def test_what_a_server_says_unasked_is_nobodys_reply() -> None:
    """Two replies to one request: the second must not be taken for the next one's."""
    count = 0

    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        while await reader.read(10_000):
            count += 1
            said = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % count
            writer.write(said)
            await asyncio.sleep(0.02)
            writer.write(said)

    async def run() -> list[bytes]:
        bodies = []
        async with serving(twice) as port, new_session() as session:
            endpoint = Endpoint(session, f"http://127.0.0.1:{port}/", {})
            for _ in range(4):
                bodies.append((await posted(endpoint))[1])
                await asyncio.sleep(0.1)
        return bodies

    assert asyncio.run(run()) == [b"1", b"2", b"3", b"4"]


def test_a_server_that_reads_nothing_is_left() -> None:
    """Though most of the request has not been sent, and never will be."""
    left = asyncio.Event()

    async def deaf(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await left.wait()

    async def run() -> None:
        async with serving(deaf) as port, new_session() as session:
            endpoint = Endpoint(session, f"http://127.0.0.1:{port}/", {})
            with pytest.raises(TimeoutError):
                async with endpoint.post(b"x" * 20_000_000, aiohttp.ClientTimeout(total=0.2)):
                    pass
            async with asyncio.timeout(10.0):
                while open_to(port):
                    await asyncio.sleep(0.01)
            left.set()

    asyncio.run(run())


def open_to(port: int) -> bool:
    """Whether this process has a connection to a port."""
    found = psutil.Process().net_connections("tcp")
    return any(one.raddr and one.raddr.port == port and one.status == "ESTABLISHED" for one in found)


def test_headers_are_the_same_in_any_case_and_names_stand_in_addresses() -> None:
    """One Host, one Authorization, and those that were asked for win."""

    async def run() -> list[bytes]:
        async with talking(WHOLE) as server, new_session() as session:
            named = server.url.replace("//", "//name:word@")
            await posted(Endpoint(session, named, {}))
            await posted(Endpoint(session, named, {"authorization": "Bearer 1", "host": "other"}))
        return server.heads

    first, second = asyncio.run(run())
    assert b"\r\nAuthorization: Basic bmFtZTp3b3Jk\r\n" in first
    assert second.lower().count(b"host:") == second.lower().count(b"authorization:") == 1
    assert b"host: other\r\nauthorization: bearer 1\r\n" in second.lower()
