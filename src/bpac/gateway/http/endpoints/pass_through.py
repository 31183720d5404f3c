"""``POST /v1/embeddings`` and ``POST /v1/completions``: passed through to the model of a route with one model."""

from collections.abc import Awaitable, Callable

from bpac.gateway.auth.authentication import Authentication
from bpac.gateway.auth.keys import Identity
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.http.asgi import Message
from bpac.gateway.http.endpoints.answering import AnsweringEndpoint, Pending
from bpac.gateway.http.endpoints.posting import AnsweringService


class PassThroughEndpoint(AnsweringEndpoint):
    """One of these endpoints.

    Parameters
    ----------
    path: the endpoint below ``/v1``.
    service: answers requests.
    authentication: finds out who sends a request.
    """

    def __init__(self, path: str, service: AnsweringService, authentication: Authentication) -> None:
        super().__init__(service, authentication)
        self._path = path

    def _read(self, data: bytes, identity: Identity, scope: Message) -> Pending:
        body = self._parsed(data)

        def answer(_: Callable[[], bool]) -> Awaitable[ChatResponse]:
            return self._service.dispatcher.pass_through(self._path, body)

        return Pending(answer, body.get("stream") is True)
