"""``POST /v1/embeddings`` and ``POST /v1/completions``: passed through to the model of a route with one model."""

from collections.abc import Awaitable, Callable

from bpac.gateway.auth.authentication import Authentication
from bpac.gateway.auth.keys import Identity
from bpac.gateway.chat.request import parse_object
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.http.answering import AnsweringEndpoint, AnsweringService, Pending
from bpac.gateway.http.asgi import Message
from bpac.gateway.opening import PASSED_THROUGH


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
        limits = self._service.config.limits
        body = parse_object(data, limits.max_depth, limits.max_values)

        def answer(_: Callable[[], bool]) -> Awaitable[ChatResponse]:
            return self._service.dispatcher.pass_through(self._path, body)

        return Pending(answer, body.get("stream") is True)


def pass_through_endpoints(service: AnsweringService, authentication: Authentication) -> dict[str, PassThroughEndpoint]:
    """The endpoints by their path."""
    return {f"/v1{path}": PassThroughEndpoint(path, service, authentication) for path in PASSED_THROUGH}
