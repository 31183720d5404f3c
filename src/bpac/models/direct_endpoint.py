"""Posting to one URL many times on aiohttp's connections, without what its session does for each request.

This uses names that aiohttp does not promise to keep: ``is_supported`` says whether they are as expected. Why it pays
is in docs/decisions/0006-connections-without-a-session.md, and ``python -m benchmarks.endpoint`` prints by how much.
"""

import asyncio
import inspect
import ssl
from collections.abc import Mapping
from types import TracebackType
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, RawResponseMessage
from multidict import CIMultiDict
from yarl import URL

from bpac.models.connections import Session, Timeout, check_headers

# Connections that have carried a request. All endpoints of a session share its connections.
USED: WeakSet[ResponseHandler] = WeakSet()


def is_supported() -> bool:
    """Whether aiohttp's inner classes have the attributes and parameters that are used here."""
    attributes = {
        ResponseHandler: ("read", "set_response_params", "should_close", "start_timeout"),
        Connection: ("close", "protocol", "release", "transport"),
    }
    try:
        inspect.signature(aiohttp.ClientRequest).bind("POST", URL(), headers={}, loop=None, ssl=True)
        inspect.signature(aiohttp.BaseConnector.connect).bind(None, None, [], None)
        inspect.signature(ResponseHandler.set_response_params).bind(None, read_until_eof=True, read_timeout=None)
        inspect.signature(ResponseHandler.read).bind(None)
        inspect.signature(ResponseHandler.start_timeout).bind(None)
    except (AttributeError, TypeError, ValueError):
        return False
    return all(hasattr(kind, name) for kind, names in attributes.items() for name in names)


class DirectResponse:
    """The response of a server, of which the headers have arrived.

    Parameters
    ----------
    message: its status and headers.
    content: its body, as it arrives.
    """

    __slots__ = ("content", "headers", "status")

    def __init__(self, message: RawResponseMessage, content: aiohttp.StreamReader) -> None:
        self.status = message.code
        self.headers = message.headers
        self.content = content


class DirectEndpoint:
    """An endpoint that writes requests to aiohttp's connections itself.

    Connecting, encryption, the pool of connections and the parsing of responses are aiohttp's. Requests to one endpoint
    differ in their bodies only, so the rest of them is made once.

    Parameters
    ----------
    session: the pool of connections.
    url: the URL.
    headers: sent with every body, and no others but those that HTTP requires.
    tls: the certificates that are trusted (default: those of the system).
    """

    def __init__(
        self, session: Session, url: str, headers: Mapping[str, str], tls: ssl.SSLContext | None = None
    ) -> None:
        self.session = session
        # Never sent: it tells the connector where to connect to.
        self.request = aiohttp.ClientRequest(
            "POST", URL(url), headers=headers, loop=asyncio.get_running_loop(), ssl=True if tls is None else tls
        )
        sent = CIMultiDict({"Host": self.request.headers["Host"]})
        if "Authorization" in self.request.headers:  # from a name and a password in the URL
            sent["Authorization"] = self.request.headers["Authorization"]
        sent.update(headers)
        self._head = f"POST {self.request.url.raw_path_qs} HTTP/1.1\r\n".encode("ascii") + _lines(sent)

    def post(self, body: bytes, timeout: Timeout, headers: Mapping[str, str] | None = None) -> "DirectExchange":
        """Send a body, as ``Endpoint.post`` says."""
        head = self._head + _lines(headers) if headers else self._head
        return DirectExchange(self, b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body), timeout)


class DirectExchange:
    """A request and the response to it."""

    __slots__ = ("_connection", "_endpoint", "_sent", "_timeout", "_total")

    def __init__(self, endpoint: DirectEndpoint, sent: bytes, timeout: Timeout) -> None:
        self._endpoint = endpoint
        self._sent = sent
        self._timeout = timeout
        self._total = asyncio.timeout(timeout.total)
        self._connection: Connection | None = None

    async def __aenter__(self) -> DirectResponse:
        await self._total.__aenter__()
        try:
            return await self._respond()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise

    async def _respond(self) -> DirectResponse:
        while True:
            protocol = await self._connect()
            reused = protocol in USED
            # What a server has sent without a request would be taken for the response.
            if not (reused and protocol.should_close):
                USED.add(protocol)
                try:
                    return await self._send(protocol)
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                    # Servers close connections that were idle for a while, perhaps just when a request is on its way.
                    # It was not processed then, and is sent again unless the connection was a new one.
                    if not reused:
                        raise
            self._abort()

    async def _connect(self) -> ResponseHandler:
        connector = self._endpoint.session.connector
        if connector is None:
            raise aiohttp.ClientConnectionError("the session is closed")
        self._connection = await connector.connect(self._endpoint.request, [], self._timeout)
        if self._connection.protocol is None:  # lost while it was passed on
            raise aiohttp.ServerDisconnectedError
        return self._connection.protocol

    async def _send(self, protocol: ResponseHandler) -> DirectResponse:
        protocol.set_response_params(read_until_eof=True, read_timeout=self._timeout.sock_read)
        if protocol.transport is None:
            raise aiohttp.ServerDisconnectedError
        protocol.transport.write(self._sent)
        protocol.start_timeout()
        return await _read_head(protocol)

    def _abort(self) -> None:
        """Close the connection at once: a server that does not read would keep what is left to send waiting."""
        if self._connection is not None:
            if self._connection.transport is not None:
                self._connection.transport.abort()
            self._connection.close()
            self._connection = None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._abort()
        elif self._connection is not None:
            # This closes a connection whose response was not read to its end: the next response could not be found.
            self._connection.release()
        await self._total.__aexit__(kind, error, trace)


async def _read_head(protocol: ResponseHandler) -> DirectResponse:
    while True:
        try:
            message, content = await protocol.read()
        except HttpProcessingError as error:
            raise aiohttp.ClientPayloadError("the response is not HTTP") from error
        if message.code == 101:
            raise aiohttp.ClientPayloadError("the server switched to another protocol")
        if not 100 <= message.code < 200:
            return DirectResponse(message, content)


def _lines(headers: Mapping[str, str]) -> bytes:
    check_headers(headers)
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
