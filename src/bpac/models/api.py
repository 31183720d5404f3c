"""The API of a model server: where requests are posted, with which headers, and how they are translated.

Inside, all requests and answers are chat completions. A server of another API gets a translated request, and its
response is translated before anything reads it: scores and meters see chat completions only. If the caller has asked in
the same API, what chat completions cannot say is passed on beside them, in both directions (``wire/originals.py``).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from bpac.wire.messages.event_reading import MessageEvents
from bpac.wire.messages.reply_reading import read_error as read_message_error
from bpac.wire.messages.reply_reading import read_reply as read_message
from bpac.wire.messages.request_writing import write_request as write_message_request
from bpac.wire.original_events import OriginalEvents
from bpac.wire.originals import check_no_original, for_api, original_of, with_reply
from bpac.wire.responses.event_reading import ResponseEvents
from bpac.wire.responses.reply_reading import read_reply as read_response
from bpac.wire.responses.request_writing import write_request as write_response_request
from bpac.wire.signers import marked
from bpac.wire.stream import before_done
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
    api: the name of the API.
    write: makes a request of the API of a chat request, or raises ``NotExpressible``.
    read: makes a chat completion of a whole response, at a time in seconds since 1970, or raises ``AnswerError``.
    read_events: translates the events of one stream, which began at a time in seconds since 1970.
    read_error: makes an error body of OpenAI's format of that of the server.
    signer: the model, as marks in signatures name it (default: none, if signatures are not marked).
    originals: whether replies are kept beside their translations (default: no).
    """

    api: ApiName
    write: Callable[[Mapping[str, Any]], dict[str, Any]]
    read: Callable[[bytes, int], bytes]
    read_events: Callable[[int], EventReader]
    read_error: Callable[[bytes], bytes]
    signer: str = ""
    originals: bool = False

    def for_request(self, chat: Mapping[str, Any]) -> "Translation":
        """How the response to a request is translated."""
        return self if original_of(chat, self.api) is None else replace(self, originals=True)

    def whole(self, data: bytes) -> bytes:
        """The chat completion that a response is."""
        data = marked(data, self.signer)
        completion = self.read(data, int(time.time()))
        return with_reply(completion, data) if self.originals else completion

    def stream(self) -> EventReader:
        """Translates the events of a stream that begins now."""
        return OriginalEvents(self.read_events(int(time.time())), self.signer, self.originals)


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


class _ChatEvents:
    """The chunks of a stream as they are."""

    def __init__(self, created: int) -> None:
        pass

    def feed(self, events: list[bytes]) -> tuple[list[bytes], bool]:
        """The chunks before the event that ends the stream, and whether that one is there."""
        return before_done([check_no_original(data) for data in events])


# How chat completions are read for a caller of another API: they may hold nothing that only translations do.
CHAT_AT_OTHER_DOORS = Translation(
    "chat", lambda chat: dict(for_api(chat, "chat")), lambda data, _: check_no_original(data), _ChatEvents,
    lambda data: data,
)  # fmt: skip


def model_api(name: ApiName, default_max_tokens: int = DEFAULT_MAX_TOKENS, signer: str = "") -> ModelApi:
    """The API with that name.

    Parameters
    ----------
    name: ``chat``, ``responses`` (OpenAI) or ``messages`` (Anthropic).
    default_max_tokens: the limit on generated tokens for requests without one, where the API demands one
        (default: 16,384).
    signer: marks signatures of the model's thinking, by which it gets back its own (default: they are not marked).
    """
    if name == "chat":
        return CHAT
    if name == "responses":
        write = partial(write_response_request, signer=signer)
        translation = Translation(name, write, read_response, ResponseEvents, lambda data: data, signer)
        return ModelApi("/responses", translation)
    write = partial(write_message_request, default_max_tokens=default_max_tokens, signer=signer)
    translation = Translation(name, write, read_message, MessageEvents, read_message_error, signer)
    return ModelApi("/messages", translation, "x-api-key", {"anthropic-version": MESSAGES_VERSION})
