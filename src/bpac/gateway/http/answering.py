"""Endpoints whose requests models answer: read the request, have it answered, send the response.

They are plain ASGI applications: nearly all requests come here, and each layer costs.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from bpac.gateway.auth.authentication import Authentication, address_of
from bpac.gateway.auth.keys import Identity, Role
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.config.file import Config
from bpac.gateway.dispatcher import Dispatcher
from bpac.gateway.http.asgi import Message, Receive, Send, send_error
from bpac.gateway.http.bad_request import BadRequest, stopping
from bpac.gateway.http.body import read_body
from bpac.gateway.http.disconnects import DisconnectWatches
from bpac.gateway.http.errors import error_response
from bpac.gateway.http.exchange import exchange_of
from bpac.gateway.http.keep_alive import KeepAlive
from bpac.gateway.http.metered import RequestCharge, metered, refund
from bpac.gateway.http.sending import send_response
from bpac.gateway.telemetry.rejections import Rejections
from bpac.gateway.telemetry.traces import Traces


class AnsweringService(Protocol):
    """What these endpoints need of the gateway behind them."""

    traces: Traces
    rejections: Rejections
    dispatcher: Dispatcher

    @property
    def config(self) -> Config:
        """The configuration of new requests."""

    async def admit(self, identity: Identity, size: int) -> RequestCharge | None:
        """Count a request against the budget of its caller, or raise ``BadRequest`` if it is used up."""


class Pending(NamedTuple):
    """A request that has been read.

    Parameters
    ----------
    answer: answers it; the argument says, when the request is cancelled, whether its caller left.
    stream: whether the answer is a stream.
    hide_usage: whether a stream has counts of tokens that its caller did not ask for.
    """

    answer: Callable[[Callable[[], bool]], Awaitable[ChatResponse]]
    stream: bool
    hide_usage: bool = False


class AnsweringEndpoint(ABC):
    """An endpoint whose requests models answer.

    Parameters
    ----------
    service: answers requests.
    authentication: finds out who sends a request.
    """

    def __init__(self, service: AnsweringService, authentication: Authentication) -> None:
        self._service = service
        self._authentication = authentication
        self._watches = DisconnectWatches()

    @abstractmethod
    def _read(self, data: bytes, identity: Identity, scope: Message) -> Pending:
        """The request in a body, or ``BadRequest``."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] != "POST":
            response = error_response(BadRequest("this endpoint needs the method POST", 405))
            await send_error(send, response._replace(headers=response.headers | {"allow": "POST"}))
            return
        with self._service.traces.request(scope["headers"]):
            try:
                identity = await self._authentication.identity(scope)
                identity.require(Role.CALL)
                data = await read_body(scope["headers"], receive, self._service.config.limits.max_body)
                pending = self._read(data, identity, scope)
                charge = await self._service.admit(identity, len(data))
            except Exception as error:  # every error has its response
                self._service.rejections.count_error(error, address_of(scope))
                await send_error(send, error_response(error))
            else:
                await self._answer(pending, charge, scope, receive, send)

    async def _answer(
        self, pending: Pending, charge: RequestCharge | None, scope: Message, receive: Receive, send: Send
    ) -> None:
        exchange = exchange_of(scope)
        work = asyncio.current_task()
        watch = self._watches.new(receive, work)
        kept_alive = KeepAlive(send, self._service.config.stream_keep_alive if pending.stream else 0.0)
        started = False
        try:
            try:
                response = await pending.answer(lambda: watch.left)
            finally:
                kept_alive.end()
            started = True
            exchange.known[:] = response.headers
            if charge is not None:
                response = metered(response, charge, hide_usage=pending.hide_usage)
            await send_response(kept_alive.send, response)
        except asyncio.CancelledError:
            # If the caller has disconnected, the request ends and the task goes on. Otherwise the gateway stops and
            # waits no longer: a caller who has not got a response yet gets an error.
            if watch.left and work is not None:
                work.uncancel()
            elif started:
                raise
            else:
                await kept_alive.send_error(stopping(), exchange.known)
                refund(charge, stopping())
        except Exception as error:  # every error has its response
            if started:
                raise
            refund(charge, error)
            self._service.rejections.count_error(error, address_of(scope))
            await kept_alive.send_error(error, exchange.known)
        finally:
            self._watches.end(watch)
