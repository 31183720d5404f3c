"""HTTP connections to model servers, on aiohttp's public API."""

import io
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import SimpleNamespace
from typing import Any, Protocol

from bpac import __version__
from bpac.errors import MissingExtra
from bpac.models.via import DIRECTLY, Via

try:
    import aiohttp
    from multidict import CIMultiDict
    from yarl import URL
except ImportError as error:
    raise MissingExtra("aiohttp", "models") from error

# What a request that fails on its way raises.
FAILURES = (aiohttp.ClientError, TimeoutError, OSError)
# What is raised if there is no connection, so that nothing was sent.
UNSENT = aiohttp.ClientConnectorError
# Bytes of a body from which on it is sent in parts, so that it does not hold up the event loop.
LARGE = 2**20
# Headers of every request.
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": f"bpac/{__version__}",
}

Session = aiohttp.ClientSession
Timeout = aiohttp.ClientTimeout


class ResponseBody(Protocol):
    """The body of a response as it arrives."""

    async def read(self, n: int = -1) -> bytes:
        """Up to so many bytes; all that are left by default."""

    async def readany(self) -> bytes:
        """What has arrived and was not read, after waiting for it; empty at the end."""

    def at_eof(self) -> bool:
        """Whether all of it has arrived and was read."""


class HttpResponse(Protocol):
    """The response of a server, of which the headers have arrived."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; their names are found in any case."""

    @property
    def content(self) -> ResponseBody:
        """The body."""


class Endpoint(Protocol):
    """A URL that request bodies are posted to."""

    def post(
        self, body: bytes, timeout: Timeout, headers: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Send a body. The response is there within an ``async with`` block, which releases its connection.

        Parameters
        ----------
        body: the body.
        timeout: how long it may take in all, to connect, and between two bytes; ``TimeoutError`` if it takes longer.
        headers: sent with this body only (default: none).
        """


def total_timeout(seconds: float) -> Timeout:
    """A limit on the time from the request to the last byte of the response."""
    return Timeout(total=seconds)


def idle_timeout(seconds: float) -> Timeout:
    """A limit on the time to connect, and on the time between two bytes of the response."""
    return Timeout(total=None, sock_connect=seconds, sock_read=seconds)


def new_session() -> Session:
    """A pool of connections for one event loop."""
    # Without a limit, because time spent waiting for a free connection would count against the server's timeout.
    # Without cookies, because one caller's cookie would be sent with the next caller's request.
    return Session(
        connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar(), trace_configs=[_marks_reused()]
    )


class SessionEndpoint:
    """An endpoint on ``ClientSession.post``.

    Parameters
    ----------
    session: the pool of connections.
    url: the URL.
    headers: sent with every body, and no others but those that HTTP requires.
    way: how the server is reached (default: directly).
    """

    def __init__(self, session: Session, url: str, headers: Mapping[str, str], way: Via = DIRECTLY) -> None:
        check_headers(headers)
        self._tls = True if way.tls is None else way.tls
        self._proxy, login = _proxy(way)
        # Only to the proxy: encrypted requests go through it unread, and others are sent to it.
        tunnel = URL(url).scheme == "https"
        self._proxy_headers = login if tunnel else None
        headers = {**headers, **({} if tunnel else login)}
        self._session = session
        self._headers = CIMultiDict(headers)
        # aiohttp refuses a request with both a header and a URL for the credentials.
        self._url = URL(url).with_user(None) if "Authorization" in self._headers else URL(url)

    def post(
        self, body: bytes, timeout: Timeout, headers: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Send a body, as ``Endpoint.post`` says."""
        check_headers(headers or {})
        every = self._headers.copy()
        every.update(headers or {})
        return self._posted(body, timeout, every)

    @asynccontextmanager
    async def _posted(self, body: bytes, timeout: Timeout, headers: Mapping[str, str]) -> AsyncIterator[HttpResponse]:
        if self._session.closed:
            raise aiohttp.ClientConnectionError("the session is closed")
        while True:
            connection: dict[str, bool] = {}
            try:
                response = await self._session.post(
                    self._url,
                    data=body if len(body) <= LARGE else io.BytesIO(body),
                    headers=headers,
                    skip_auto_headers=HEADERS,
                    timeout=timeout,
                    allow_redirects=False,  # a redirected POST may arrive as a GET, and the key at another server
                    trace_request_ctx=connection,
                    ssl=self._tls,
                    proxy=self._proxy,
                    proxy_headers=self._proxy_headers,
                )
                break
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                # Servers close connections that were idle for a while, perhaps just when a request is on its way. It
                # was not processed then, and is sent again unless the connection was a new one.
                if not connection.get("reused"):
                    raise
            except aiohttp.ClientResponseError as error:
                raise aiohttp.ClientPayloadError("the response is not HTTP") from error
        async with response:
            try:
                if response.status < 200:
                    raise aiohttp.ClientPayloadError("the server switched to another protocol")
                yield response
            except BaseException:
                response.close()
                raise


def _proxy(way: Via) -> tuple[URL | None, dict[str, str]]:
    """The URL of a proxy without its name and password, and the header with these."""
    if way.proxy is None:
        return None, {}
    proxy = URL(way.proxy)
    if not proxy.user:
        return proxy, {}
    login = b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
    return proxy.with_user(None), {"Proxy-Authorization": f"Basic {login}"}


def _marks_reused() -> aiohttp.TraceConfig:
    """Notes in the context of a request that its connection has carried another request before."""

    async def mark(_: Session, context: SimpleNamespace, __: Any) -> None:
        context.trace_request_ctx["reused"] = True

    config = aiohttp.TraceConfig()
    config.on_connection_reuseconn.append(mark)
    return config


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that a server would read as several."""
    if any(mark in text for pair in headers.items() for text in pair for mark in "\r\n\0"):
        raise ValueError("a header has a line break in it")
