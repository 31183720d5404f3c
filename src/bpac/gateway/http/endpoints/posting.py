"""Endpoints for requests with a body: who sends it is found out, the body is read, and every error has its response.

They are plain ASGI applications: nearly all requests come here, and each layer costs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from bpac.errors import RequestError
from bpac.gateway.auth.authentication import Authentication, address_of
from bpac.gateway.auth.keys import Identity, Role
from bpac.gateway.chat.request import parse_object
from bpac.gateway.config.file import Config
from bpac.gateway.dispatcher import Dispatcher
from bpac.gateway.http.asgi import Message, Receive, Send, send_error
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.http.body import read_body
from bpac.gateway.http.doors.error_formats import CHAT_ERRORS, ErrorFormat
from bpac.gateway.http.endpoints.metered import RequestCharge
from bpac.gateway.telemetry.failures.rejections import Rejections
from bpac.gateway.telemetry.tracing.traces import Traces

T = TypeVar("T")


class AnsweringService(Protocol):
    """What these endpoints need of the gateway behind them."""

    traces: Traces
    rejections: Rejections
    dispatcher: Dispatcher

    @property
    def config(self) -> Config:
        """The configuration of new requests."""

    async def admit(self, identity: Identity, size: int) -> RequestCharge | None:
        """Count a request against the limits of its key, or raise ``BadRequest`` if one is reached."""


class PostEndpoint(ABC):
    """An endpoint for requests with a body, for callers with the role ``call``.

    Parameters
    ----------
    service: the gateway.
    authentication: finds out who sends a request.
    errors: how errors look (default: as those of chat completions).
    """

    def __init__(
        self, service: AnsweringService, authentication: Authentication, errors: ErrorFormat = CHAT_ERRORS
    ) -> None:
        self.errors = errors
        self._service = service
        self._authentication = authentication

    @abstractmethod
    async def _handle(self, data: bytes, identity: Identity, scope: Message, receive: Receive, send: Send) -> None:
        """Answer the request in a body; an error before the response has begun is sent as the response."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] != "POST":
            response = self.errors.response(BadRequest("this endpoint needs the method POST", 405))
            await send_error(send, response._replace(headers=response.headers | {"allow": "POST"}))
            return
        with self._service.traces.request(scope["headers"]):
            try:
                identity = await self._authentication.identity(scope)
                identity.require(Role.CALL)
                data = await read_body(scope["headers"], receive, self._service.config.limits.max_body)
            except Exception as error:  # every error has its response
                await self._refuse(error, scope, send)
            else:
                await self._handle(data, identity, scope, receive, send)

    async def _refuse(self, error: Exception, scope: Message, send: Send) -> None:
        self._count(error, scope)
        await send_error(send, self.errors.response(error))

    def _count(self, error: Exception, scope: Message) -> None:
        self._service.rejections.count_error(error, address_of(scope))

    def _parsed(self, data: bytes) -> dict[str, Any]:
        limits = self._service.config.limits
        return parse_object(data, limits.max_depth, limits.max_values)


def read_as(read: Callable[[dict[str, Any]], T], body: dict[str, Any]) -> T:
    """What a function reads in a body; its ``RequestError`` becomes what the caller gets."""
    try:
        return read(body)
    except RequestError as error:
        raise BadRequest(str(error), 400, error.param, error.code) from None
