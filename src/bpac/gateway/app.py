"""The gateway as an ASGI application: a bare callable for chat completions, Starlette for the rest."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import aclosing
from typing import Any

from bpac.gateway.failures import Failure, failure_of
from bpac.gateway.games import Caller
from bpac.gateway.keys import Keys
from bpac.gateway.pages import pages
from bpac.gateway.requests import BadRequest, ChatRequest, stopping
from bpac.gateway.served import Served
from bpac.gateway.service import Service
from bpac.gateway.watching import Receive, Watches

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
        self._keys = Keys(service.config.api_keys)
        self._pages = pages(service, self.key_of)
        self._watches = Watches()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer what one scope brings."""
        if scope["type"] == "http" and scope["path"] == CHAT:
            if scope["method"] == "POST":
                with self.service.traces.request(scope["headers"]):
                    await self._chat(scope, receive, send)
            else:
                failure = failure_of(BadRequest("chat completions are asked for by POST", 405))
                await _fail(send, failure._replace(headers=failure.headers | {"allow": "POST"}))
        else:
            await self._pages(scope, receive, send)

    def key_of(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The key a caller shows, or ``BadRequest`` if it is none of ours."""
        if not self._keys.digests:
            return ""
        shown = next((value for name, value in headers if name == b"authorization"), b"")
        kind, _, key = shown.partition(b" ")
        key = key.strip() if kind.lower() == b"bearer" else b""
        if self._keys.digest(key) is None:
            raise BadRequest("no valid API key: send it as  Authorization: Bearer KEY", 401, code="invalid_api_key")
        return key.decode("utf-8", "replace")

    async def _chat(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            headers = scope["headers"]
            key = self.key_of(headers)
            data = await read_body(headers, receive, self.service.config.max_body)
            request = ChatRequest.parse(data, self.service.config.max_depth)
            caller = Caller(key, headers)
        except Exception as error:  # every error has its reply
            await _fail(send, failure_of(error))
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


async def _serve(send: Send, served: Served) -> None:
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


async def _fail(send: Send, failure: Failure) -> None:
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
