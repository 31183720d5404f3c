"""The API of a model server: where requests are posted, with which headers, and how they are translated.

Inside, all requests and answers are chat completions. A server of another API gets a translated request, and its
response is translated before anything reads it: scores, meters and callers see chat completions only.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from bpac.wire.messages.event_reading import MessageEvents
from bpac.wire.messages.reply_reading import read_error as read_message_error
from bpac.wire.messages.reply_reading import read_reply as read_message
from bpac.wire.messages.request_writing import write_request as write_message_request
from bpac.wire.responses.event_reading import ResponseEvents
from bpac.wire.responses.reply_reading import read_reply as read_response
from bpac.wire.responses.request_writing import write_request as write_response_request
from bpac.wire.translating import EventReader

ApiName = Literal["chat", "responses", "messages"]

# The limit on generated tokens for requests without one, where the API demands one.
DEFAULT_MAX_TOKENS = 16_384
# The version of the Messages API whose format is written and read here.
MESSAGES_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True)
class Translation:
    """How requests and responses are translated.

    Parameters
    ----------
    write: makes a request of the API of a chat request, or raises ``NotExpressible``.
    read: makes a chat completion of a whole response, at a time in seconds since 1970, or raises ``AnswerError``.
    read_events: translates the events of one stream, which began at a time in seconds since 1970.
    read_error: makes an error body of OpenAI's format of that of the server.
    """

    write: Callable[[Mapping[str, Any]], dict[str, Any]]
    read: Callable[[bytes, int], bytes]
    read_events: Callable[[int], EventReader]
    read_error: Callable[[bytes], bytes]

    def whole(self, data: bytes) -> bytes:
        """The chat completion that a response is."""
        return self.read(data, int(time.time()))

    def stream(self) -> EventReader:
        """Translates the events of a stream that begins now."""
        return self.read_events(int(time.time()))


@dataclass(frozen=True, slots=True)
class ModelApi:
    """The API of a model server.

    Parameters
    ----------
    path: where requests are posted, below the address of the server.
    translation: how requests and responses are translated; none if they are chat completions.
    key_header: the header with the API key (default: ``Authorization``, with ``Bearer`` before the key).
    headers: further headers of every request.
    """

    path: str
    translation: Translation | None = None
    key_header: str = ""
    headers: Mapping[str, str] | None = None

    def headers_with(self, key: str | None) -> dict[str, str]:
        """The headers of every request.

        Parameters
        ----------
        key: the API key; none if the server needs none.
        """
        found = dict(self.headers or {})
        if key:
            found |= {self.key_header: key} if self.key_header else {"Authorization": f"Bearer {key}"}
        return found


CHAT = ModelApi("/chat/completions")
_RESPONSES = ModelApi(
    "/responses", Translation(write_response_request, read_response, ResponseEvents, lambda data: data)
)


def model_api(name: ApiName, default_max_tokens: int = DEFAULT_MAX_TOKENS) -> ModelApi:
    """The API with that name.

    Parameters
    ----------
    name: ``chat``, ``responses`` (OpenAI) or ``messages`` (Anthropic).
    default_max_tokens: the limit on generated tokens for requests without one, where the API demands one
        (default: 16,384).
    """
    if name == "chat":
        return CHAT
    if name == "responses":
        return _RESPONSES
    write = partial(write_message_request, default_max_tokens=default_max_tokens)
    translation = Translation(write, read_message, MessageEvents, read_message_error)
    return ModelApi("/messages", translation, "x-api-key", {"anthropic-version": MESSAGES_VERSION})
