"""``POST /v1/messages/count_tokens``: estimates the tokens of a prompt, without asking a model."""

from bpac.gateway.auth.authentication import Authentication
from bpac.gateway.auth.keys import Identity
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.http.asgi import Message, Receive, Send
from bpac.gateway.http.doors.error_formats import MESSAGES_ERRORS
from bpac.gateway.http.endpoints.posting import AnsweringService, PostEndpoint, read_as
from bpac.gateway.http.sending import send_response
from bpac.wire.json import to_json
from bpac.wire.messages.request_reading import read_prompt
from bpac.wire.token_estimate import estimated_tokens

# Says that a count is an estimate.
ESTIMATED = (b"x-bpac-estimated", b"input_tokens")


class CountTokensEndpoint(PostEndpoint):
    """The endpoint. Budgets are not charged: no model is asked."""

    def __init__(self, service: AnsweringService, authentication: Authentication) -> None:
        super().__init__(service, authentication, MESSAGES_ERRORS)

    async def _handle(self, data: bytes, identity: Identity, scope: Message, receive: Receive, send: Send) -> None:
        try:
            chat = read_as(read_prompt, self._parsed(data))
            self._service.dispatcher.check_route(chat["model"])
        except Exception as error:  # every error has its response
            await self._refuse(error, scope, send)
            return
        body = to_json({"input_tokens": estimated_tokens(chat)})
        await send_response(send, ChatResponse([ESTIMATED], body))
