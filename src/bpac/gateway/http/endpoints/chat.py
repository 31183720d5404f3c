"""``POST /v1/chat/completions``, ``/v1/responses`` and ``/v1/messages``: answer a chat, whole or as a stream."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from bpac.gateway.auth.authentication import Authentication
from bpac.gateway.auth.keys import Identity, Role
from bpac.gateway.chat.force import Force
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.games.segment_names import Caller
from bpac.gateway.http.asgi import Message
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.http.doors.door import Door
from bpac.gateway.http.endpoints.answering import AnsweringEndpoint, Pending
from bpac.gateway.http.endpoints.posting import AnsweringService, read_as
from bpac.gateway.http.exchange import exchange_of
from bpac.wire.originals import ORIGINAL

PATH = "/v1/chat/completions"


class ChatEndpoint(AnsweringEndpoint):
    """An endpoint for chats.

    Parameters
    ----------
    door: the API in which callers ask.
    service: answers requests.
    authentication: finds out who sends a request.
    """

    def __init__(self, door: Door, service: AnsweringService, authentication: Authentication) -> None:
        super().__init__(service, authentication, door.errors)
        self._door = door

    def _read(self, data: bytes, identity: Identity, scope: Message) -> Pending:
        headers = scope["headers"]
        asked = read_as(partial(self._door.read, headers=headers), self._parsed(data))
        self._check_models(asked.chat)
        request = ChatRequest.read(asked.chat, identity.owner)
        request = request._replace(known=exchange_of(scope).known)
        # A stream reports its tokens only if it is asked to.
        metered = identity.limits is not None and identity.limits.counts_tokens
        hide_usage = metered and request.stream and not request.include_usage
        if hide_usage:
            request = request._replace(include_usage=True)
        force = Force.read(headers, operator=Role.OPERATOR in identity.roles)
        caller = Caller(identity.segment, headers)

        def answer(caller_left: Callable[[], bool]) -> Awaitable[ChatResponse]:
            return self._service.dispatcher.answer(request, caller, caller_left, force)

        return Pending(answer, request.stream, hide_usage, asked.writer)

    def _check_models(self, chat: Mapping[str, Any]) -> None:
        """Refuse what only a model with the API of this door can be asked, if the expert of the route has another."""
        original = chat.get(ORIGINAL) or {}
        only = original.get("only_here")
        if only and self._service.config.expert_api(chat["model"]) not in ("", original["api"]):
            raise BadRequest(only["message"], 400, only["param"], only["code"])
