"""``POST /v1/chat/completions``: answers a chat, whole or as a stream."""

from collections.abc import Awaitable, Callable

from bpac.gateway.auth.keys import Identity, Role
from bpac.gateway.chat.force import Force
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.games.segment_names import Caller
from bpac.gateway.http.answering import AnsweringEndpoint, Pending
from bpac.gateway.http.asgi import Message
from bpac.gateway.http.exchange import exchange_of

PATH = "/v1/chat/completions"


class ChatEndpoint(AnsweringEndpoint):
    """The chat endpoint."""

    def _read(self, data: bytes, identity: Identity, scope: Message) -> Pending:
        headers, limits = scope["headers"], self._service.config.limits
        request = ChatRequest.parse(data, limits.max_depth, limits.max_values, identity.owner)
        request = request._replace(known=exchange_of(scope).known)
        # A stream reports its tokens only if it is asked to.
        metered = identity.budget is not None and identity.budget.tokens_per_day is not None
        hide_usage = metered and request.stream and not request.include_usage
        if hide_usage:
            request = request._replace(include_usage=True)
        force = Force.read(headers, operator=Role.OPERATOR in identity.roles)
        caller = Caller(identity.segment, headers)

        def answer(caller_left: Callable[[], bool]) -> Awaitable[ChatResponse]:
            return self._service.dispatcher.answer(request, caller, caller_left, force)

        return Pending(answer, request.stream, hide_usage)
