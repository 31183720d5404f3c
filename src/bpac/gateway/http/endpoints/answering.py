"""Endpoints whose requests models answer: read the request, have it answered, send the response."""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bpac.gateway.auth.authentication import Authentication
from bpac.gateway.auth.keys import Identity
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.http.asgi import Message, Receive, Send
from bpac.gateway.http.bad_request import stopping
from bpac.gateway.http.connections.disconnects import DisconnectWatches
from bpac.gateway.http.connections.keep_alive import KeepAlive
from bpac.gateway.http.doors.door import ReplyWriter
from bpac.gateway.http.doors.error_formats import CHAT_ERRORS, ErrorFormat
from bpac.gateway.http.doors.translating import translated
from bpac.gateway.http.endpoints.metered import RequestCharge, metered, refund
from bpac.gateway.http.endpoints.posting import AnsweringService, PostEndpoint
from bpac.gateway.http.exchange import exchange_of
from bpac.gateway.http.sending import send_response


class Pending(NamedTuple):
    """A request that has been read.

    Parameters
    ----------
    answer: answers it; the argument says, when the request is cancelled, whether its caller left.
    stream: whether the answer is a stream.
    hide_usage: whether a stream has counts of tokens that its caller did not ask for.
    writer: writes the answer in another format; none if the caller gets a chat completion.
    """

    answer: Callable[[Callable[[], bool]], Awaitable[ChatResponse]]
    stream: bool
    hide_usage: bool = False
    writer: ReplyWriter | None = None


class AnsweringEndpoint(PostEndpoint):
    """An endpoint whose requests models answer.

    Parameters
    ----------
    service: answers requests.
    authentication: finds out who sends a request.
    errors: how errors look (default: as those of chat completions).
    """

    def __init__(
        self, service: AnsweringService, authentication: Authentication, errors: ErrorFormat = CHAT_ERRORS
    ) -> None:
        super().__init__(service, authentication, errors)
        self._watches = DisconnectWatches()

    @abstractmethod
    def _read(self, data: bytes, identity: Identity, scope: Message) -> Pending:
        """The request in a body, or ``BadRequest``."""

    async def _handle(self, data: bytes, identity: Identity, scope: Message, receive: Receive, send: Send) -> None:
        try:
            pending = self._read(data, identity, scope)
            charge = await self._service.admit(identity, len(data))
        except Exception as error:  # every error has its response
            await self._refuse(error, scope, send)
        else:
            await self._answer(pending, charge, scope, receive, send)

    async def _answer(
        self, pending: Pending, charge: RequestCharge | None, scope: Message, receive: Receive, send: Send
    ) -> None:
        exchange = exchange_of(scope)
        work = asyncio.current_task()
        watch = self._watches.new(receive, work)
        every = self._service.config.stream_keep_alive if pending.stream else 0.0
        kept_alive = KeepAlive(send, every, self.errors)
        started = False
        try:
            try:
                response = await pending.answer(lambda: watch.left)
            finally:
                kept_alive.end()
            exchange.known[:] = response.headers
            if charge is not None:
                response = metered(response, charge, hide_usage=pending.hide_usage)
                charge = None  # an answer that cannot be sent was used all the same
            if pending.writer is not None:
                response = translated(response, pending.writer, lambda error: self._count(error, scope))
            started = True
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
            self._count(error, scope)
            await kept_alive.send_error(error, exchange.known)
        finally:
            self._watches.end(watch)
