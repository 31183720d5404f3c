"""Posting to one address over and over: aiohttp's connections, without what its session does for each request."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from weakref import WeakSet

from bpac.errors import MissingExtra

try:
    import aiohttp
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.http import HttpProcessingError, RawResponseMessage
    from multidict import CIMultiDict
    from yarl import URL
except ImportError as error:
    raise MissingExtra("aiohttp", "models") from error

# Connections that have carried a request: all endpoints of a session may be given them again.
USED: WeakSet[ResponseHandler] = WeakSet()


class HttpResponse:
    """The reply of a server, of which the head has come.

    Parameters
    ----------
    message: its head.
    content: its body, as it comes.
    """

    __slots__ = ("content", "headers", "status")

    def __init__(self, message: RawResponseMessage, content: aiohttp.StreamReader) -> None:
        self.status = message.code
        self.headers = message.headers
        self.content = content


class Endpoint:
    """An address that bodies are posted to.

    Connecting, encryption, the pool of connections and the reading of replies are aiohttp's. One request differs
    from another in its body alone: the rest is made once, here, which halves what a request costs.

    Parameters
    ----------
    session: whose connections are used.
    url: the address.
    headers: sent with every body.
    """

    def __init__(self, session: aiohttp.ClientSession, url: str, headers: Mapping[str, str]) -> None:
        self.session = session
        # Never sent: connectors ask it where to connect to.
        self.request = aiohttp.ClientRequest("POST", URL(url), headers=headers, loop=asyncio.get_running_loop())
        sent = CIMultiDict({"Host": self.request.headers["Host"]})
        if "Authorization" in self.request.headers:  # of an address with a name and a password in it
            sent["Authorization"] = self.request.headers["Authorization"]
        sent.update(headers)
        self._head = f"POST {self.request.url.raw_path_qs} HTTP/1.1\r\n".encode("ascii") + _lines(sent)

    def post(self, body: bytes, timeout: aiohttp.ClientTimeout, headers: Mapping[str, str] | None = None) -> "Exchange":
        """Send a body; the reply is there in an ``async with`` block, and dealt with after it.

        Parameters
        ----------
        body: what is sent.
        timeout: how long it may take in all, to connect, and without a byte; ``TimeoutError`` if it takes longer.
        headers: sent with this body only.
        """
        head = self._head + _lines(headers) if headers else self._head
        return Exchange(self, b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body), timeout)


class Exchange:
    """A body on its way, and the reply to it."""

    __slots__ = ("_connection", "_endpoint", "_sent", "_timeout", "_total")

    def __init__(self, endpoint: Endpoint, sent: bytes, timeout: aiohttp.ClientTimeout) -> None:
        self._endpoint = endpoint
        self._sent = sent
        self._timeout = timeout
        self._total = asyncio.timeout(timeout.total)
        self._connection: aiohttp.connector.Connection | None = None

    async def __aenter__(self) -> HttpResponse:
        await self._total.__aenter__()
        try:
            return await self._begin()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise

    async def _begin(self) -> HttpResponse:
        while True:
            protocol = await self._connected()
            reused = protocol in USED
            # What a server said unasked would be taken for the reply.
            if not (reused and protocol.should_close):
                USED.add(protocol)
                try:
                    return await self._asked(protocol)
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                    # Servers close connections that were idle for a while, and the news may cross with a request. It
                    # was not looked at then: another connection is tried, and once that is a new one, no further.
                    if not reused:
                        raise
            self._drop()

    async def _connected(self) -> ResponseHandler:
        connector = self._endpoint.session.connector
        if connector is None:
            raise aiohttp.ClientConnectionError("the session is closed")
        self._connection = await connector.connect(self._endpoint.request, [], self._timeout)
        if self._connection.protocol is None:  # lost while it was handed over
            raise aiohttp.ServerDisconnectedError
        return self._connection.protocol

    async def _asked(self, protocol: ResponseHandler) -> HttpResponse:
        protocol.set_response_params(read_until_eof=True, read_timeout=self._timeout.sock_read)
        if protocol.transport is None:
            raise aiohttp.ServerDisconnectedError
        protocol.transport.write(self._sent)
        protocol.start_timeout()
        return await _reply(protocol)

    def _drop(self) -> None:
        """Be done with a connection at once: a server that reads no more would keep it open for ever."""
        if self._connection is not None:
            if self._connection.transport is not None:
                self._connection.transport.abort()
            self._connection.close()
            self._connection = None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._drop()
        elif self._connection is not None:
            # One that was not read to its end is closed by this: nobody would know where the next reply begins.
            self._connection.release()
        await self._total.__aexit__(kind, error, trace)


async def _reply(protocol: ResponseHandler) -> HttpResponse:
    while True:
        try:
            message, content = await protocol.read()
        except HttpProcessingError as error:
            raise aiohttp.ClientPayloadError("the reply is not HTTP") from error
        if message.code == 101:
            raise aiohttp.ClientPayloadError("the server changed to a protocol that nobody asked for")
        if not 100 <= message.code < 200:
            return HttpResponse(message, content)


def _lines(headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers) or "\0" in lines:
        raise ValueError("a header with a line break in it would be read as several")
    return lines.encode()
