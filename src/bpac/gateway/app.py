"""The gateway as an ASGI application: a bare callable for chat completions, Starlette for the rest."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import aclosing
from typing import Any

from bpac.gateway.auth.authentication import Authentication, address_of
from bpac.gateway.auth.keys import ApiKeys, Role
from bpac.gateway.auth.origins import Origins
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.games.segments import Caller
from bpac.gateway.http.bad_request import BadRequest, stopping
from bpac.gateway.http.disconnects import DisconnectWatches, Receive
from bpac.gateway.http.endpoints import pages
from bpac.gateway.http.errors import ErrorResponse, failure_of
from bpac.gateway.service import Service

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

CHAT = "/v1/chat/completions"


class Gateway:
    """The application.

    Parameters
    ----------
    service: what answers.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        config = service.config
        self._authentication = Authentication(ApiKeys(config.api_keys, config.keys, service.store.secret))
        self._origins = Origins(config.host) if config.open else None
        self._pages = pages(service, self._authentication)
        self._watches = DisconnectWatches()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer what one scope brings."""
        if scope["type"] == "lifespan":
            await self._pages(scope, receive, _in_one_line(send))
            return
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        if self._origins is not None:
            try:
                self._origins.check(scope["method"], scope["path"], scope["headers"])
            except BadRequest as error:
                await self._refuse(scope, send, error)
                return
        if scope["path"] != CHAT:
            await self._pages(scope, receive, send)
        elif scope["method"] == "POST":
            with self.service.traces.request(scope["headers"]):
                await self._chat(scope, receive, send)
        else:
            failure = failure_of(BadRequest("chat completions are asked for by POST", 405))
            await _fail(send, failure._replace(headers=failure.headers | {"allow": "POST"}))

    async def _refuse(self, scope: Message, send: Send, error: Exception) -> None:
        self.service.rejections.count_error(error, address_of(scope))
        await _fail(send, failure_of(error))

    async def _chat(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            headers, limits = scope["headers"], self.service.config.limits
            identity = await self._authentication.identity(scope)
            identity.require(Role.CALL)
            data = await read_body(headers, receive, limits.max_body)
            request = ChatRequest.parse(data, limits.max_depth, limits.max_values, identity.owner)
            caller = Caller(identity.segment, headers)
        except Exception as error:  # every error has its reply
            await self._refuse(scope, send, error)
            return
        work = asyncio.current_task()
        watch = self._watches.new(receive, work)
        started = False
        try:
            served = await self.service.answer(request, caller, watch)
            started = True
            await _serve(send, served)
        except asyncio.CancelledError:
            # The caller has left: that is the end of the request, not of the task. Or the gateway stops, and will not
            # wait any longer: whoever has not been answered hears of it.
            if watch.left and work is not None:
                work.uncancel()
            elif started:
                raise
            else:
                await _fail(send, failure_of(stopping()))
        except Exception as error:  # every error has its reply
            if started:
                raise
            await _fail(send, failure_of(error))
        finally:
            self._watches.end(watch)


def _in_one_line(send: Send) -> Send:
    """Say in one line why the gateway cannot start, where that is an error of ours: a damaged store, say."""

    async def sent(message: Message) -> None:
        last = message.get("message", "").rstrip().rpartition("\n")[2]
        await send({**message, "message": last} if last.startswith("bpac.errors.") else message)

    return sent


async def _serve(send: Send, served: ChatResponse) -> None:
    headers = served.headers
    try:
        if served.events is None:
            headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(served.body))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": served.body})
            return
        headers += [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
        async with aclosing(served.events) as events:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for event in events:
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        served.abandon()


async def _fail(send: Send, failure: ErrorResponse) -> None:
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in failure.headers.items()]
    headers.append((b"content-length", b"%d" % len(failure.body)))
    await send({"type": "http.response.start", "status": failure.status, "headers": headers})
    await send({"type": "http.response.body", "body": failure.body})


async def read_body(headers: Iterable[tuple[bytes, bytes]], receive: Receive, most: int) -> bytes:
    """The body of a request, or ``BadRequest`` if it is larger than allowed or breaks off."""
    announced = next((value for name, value in headers if name == b"content-length"), b"0")
    if announced.isdigit() and int(announced[:20]) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest("the request broke off")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most: int) -> BadRequest:
    # Made where it is raised: kept in a variable it would keep alive, by its traceback, all that was read.
    return BadRequest(f"the body is larger than {most} bytes", 413, code="too_large")
