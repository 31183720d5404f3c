"""A front as an ASGI application: it answers chats itself, and passes everything else on to the owner."""

import asyncio
import logging

import aiohttp
from yarl import URL

from bpac.errors import StoreError
from bpac.gateway.auth.authentication import Authentication, address_of
from bpac.gateway.auth.cors import Cors
from bpac.gateway.auth.failed_logins import FailedLogins
from bpac.gateway.auth.keys import ApiKeys
from bpac.gateway.auth.origins import Origins
from bpac.gateway.http.asgi import Message, Receive, Send, send_error
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.http.body import read_body
from bpac.gateway.http.doors.error_formats import CHAT_ERRORS
from bpac.gateway.http.endpoints.posted_endpoints import posted_endpoints
from bpac.gateway.http.errors import error_response
from bpac.gateway.http.exchange import Exchange
from bpac.gateway.workers.front.owner_errors import CAUSE, REMEDY
from bpac.gateway.workers.front.owner_link import PATIENCE
from bpac.gateway.workers.front.service import FrontService
from bpac.gateway.workers.owner.app import CALLER

log = logging.getLogger("bpac.gateway")

# Headers that are about one connection, and not about what is sent over it.
_OF_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"transfer-encoding", b"te", b"trailer", b"upgrade", b"expect", b"content-length")
)
# Seconds that the owner may take for a page; searches in long journals take some.
LONGEST_PAGE = 120.0
HEALTHY = b'{"status":"ok"}'


class FrontGateway:
    """The application of a front.

    Parameters
    ----------
    service: answers chats.
    owner: the Unix socket on which the owner answers everything else.
    """

    def __init__(self, service: FrontService, owner: str) -> None:
        self.service = service
        self._owner = owner
        self._logins = FailedLogins()
        self._pages: aiohttp.ClientSession | None = None
        service.changed = self._open_endpoints

    def _open_endpoints(self) -> None:
        service, config = self.service, self.service.config
        keys = ApiKeys(config.api_keys, config.keys, service.secret)
        authentication = Authentication(keys, self._logins)
        self._cors = Cors(config.cors_origins)
        self._origins = Origins(config.host, self._cors.allows) if config.open else None
        self._root_path = config.root_path
        self._posted = posted_endpoints(service, authentication)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or start and stop with the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        path = scope["path"]
        if self._root_path and path.startswith(f"{self._root_path}/"):
            path = path[len(self._root_path) :]
        # Health is that of this process; whether the owner is well, /readyz says.
        healthy = path == "/healthz" and scope["method"] == "GET"
        endpoint = self._posted.get(path)
        if not healthy and (endpoint is None or scope["method"] == "OPTIONS"):
            await self._pass_on(scope, receive, send)
        else:
            scope = {**scope, "path": path}
            send = self._cors.answering(scope, Exchange(scope).answering(send))
            if self._origins is not None:
                try:
                    self._origins.check(scope["method"], path, scope["headers"])
                except BadRequest as error:
                    self.service.rejections.count_error(error, address_of(scope))
                    errors = CHAT_ERRORS if endpoint is None else endpoint.errors
                    await send_error(send, errors.response(error))
                    return
            if endpoint is None:
                await _send_json(send, HEALTHY)
            else:
                await endpoint(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.service.start()
        except asyncio.CancelledError:  # the process stops before it has started
            return
        except Exception as error:  # the server reports it and ends
            await send({"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"})
            return
        self._open_endpoints()
        timeout = aiohttp.ClientTimeout(total=LONGEST_PAGE, sock_connect=PATIENCE)
        connector = aiohttp.UnixConnector(self._owner, limit=64)
        self._pages = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._pages.close()
        await self.service.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _pass_on(self, scope: Message, receive: Receive, send: Send) -> None:
        """Have the owner answer."""
        assert self._pages is not None
        query = scope["query_string"].decode("latin-1")
        target = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        headers = [(name, value) for name, value in scope["headers"] if name not in _OF_CONNECTION and name != CALLER]
        headers.append((CALLER, address_of(scope).encode()))
        started = False
        try:
            await self.service.reported()
            body = await read_body(scope["headers"], receive, self.service.config.limits.max_body)
            async with self._pages.request(
                scope["method"],
                _url(target),
                headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers],
                data=body or None,
                allow_redirects=False,
                skip_auto_headers=("user-agent", "accept", "accept-encoding", "content-type"),
            ) as response:
                answered = [(k.lower(), v) for k, v in response.raw_headers if k.lower() not in _HOP]
                await send({"type": "http.response.start", "status": response.status, "headers": answered})
                started = True
                async for part in response.content.iter_any():
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except BadRequest as error:
            await send_error(send, error_response(error))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if started:
                raise
            lost = StoreError(f"the owner does not answer ({error!r})", cause=CAUSE, remedy=REMEDY)
            await send_error(send, error_response(lost))


_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"date"})


def _url(target: str) -> URL:
    # Encoded already: what a caller has sent is passed on as it is.
    return URL(f"http://owner{target}", encoded=True)


async def _send_json(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
