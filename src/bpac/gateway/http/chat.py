"""``POST /v1/chat/completions``: read the request, have it answered, send the response."""

import asyncio
from contextlib import aclosing

from bpac.gateway.auth.authentication import Authentication, address_of
from bpac.gateway.auth.keys import Role
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.games.segments import Caller
from bpac.gateway.http.asgi import Message, Receive, Send, send_error
from bpac.gateway.http.bad_request import BadRequest, stopping
from bpac.gateway.http.body import read_body
from bpac.gateway.http.disconnects import DisconnectWatches
from bpac.gateway.http.errors import error_response
from bpac.gateway.http.exchange import Exchange, exchange_of
from bpac.gateway.service import Service

PATH = "/v1/chat/completions"


class ChatEndpoint:
    """The chat endpoint, as an ASGI application of its own: nearly all requests come here, and each layer costs.

    Parameters
    ----------
    service: answers requests.
    authentication: finds out who sends a request.
    """

    def __init__(self, service: Service, authentication: Authentication) -> None:
        self._service = service
        self._authentication = authentication
        self._watches = DisconnectWatches()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] != "POST":
            response = error_response(BadRequest("chat completions need the method POST", 405))
            await send_error(send, response._replace(headers=response.headers | {"allow": "POST"}))
            return
        with self._service.traces.request(scope["headers"]):
            try:
                request, caller = await self._read(scope, receive)
            except Exception as error:  # every error has its response
                self._service.rejections.count_error(error, address_of(scope))
                await send_error(send, error_response(error))
            else:
                await self._answer(request, caller, exchange_of(scope), receive, send)

    async def _read(self, scope: Message, receive: Receive) -> tuple[ChatRequest, Caller]:
        headers, limits = scope["headers"], self._service.config.limits
        identity = await self._authentication.identity(scope)
        identity.require(Role.CALL)
        data = await read_body(headers, receive, limits.max_body)
        request = ChatRequest.parse(data, limits.max_depth, limits.max_values, identity.owner)
        known = exchange_of(scope).known
        return request._replace(known=known), Caller(identity.segment, headers)

    async def _answer(
        self, request: ChatRequest, caller: Caller, exchange: Exchange, receive: Receive, send: Send
    ) -> None:
        work = asyncio.current_task()
        watch = self._watches.new(receive, work)
        started = False
        try:
            response = await self._service.answer(request, caller, lambda: watch.left)
            started = True
            exchange.known[:] = response.headers
            await _send(send, response)
        except asyncio.CancelledError:
            # If the caller has disconnected, the request ends and the task goes on. Otherwise the gateway stops and
            # waits no longer: a caller who has not got a response yet gets an error.
            if watch.left and work is not None:
                work.uncancel()
            elif started:
                raise
            else:
                await send_error(send, error_response(stopping()), exchange.known)
        except Exception as error:  # every error has its response
            if started:
                raise
            await send_error(send, error_response(error), exchange.known)
        finally:
            self._watches.end(watch)


async def _send(send: Send, response: ChatResponse) -> None:
    headers = response.headers
    try:
        if response.events is None:
            headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(response.body))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": response.body})
            return
        headers += [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
        async with aclosing(response.events) as events:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for event in events:
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        response.abandon()
