"""How errors look at each door: as responses, and as the last event of a stream."""

from collections.abc import Mapping
from typing import Any, Protocol

from bpac.gateway.http.errors import ErrorResponse, error_response
from bpac.gateway.telemetry.request_ids import CURRENT
from bpac.wire.json import from_json, to_json
from bpac.wire.messages.reply_writing import error_body
from bpac.wire.named_events import event_bytes
from bpac.wire.rendering import event
from bpac.wire.responses.reply_writing import error_event


class ErrorFormat(Protocol):
    """The errors of an API.

    Attributes
    ----------
    waiting: what a stream gets while its first event is awaited, so that proxies do not give it up.
    """

    @property
    def waiting(self) -> bytes:
        """What a stream gets while its first event is awaited."""

    def response(self, error: Exception) -> ErrorResponse:
        """An error as the response to a request."""

    def event(self, error: Exception) -> bytes:
        """An error as the last event of a stream that has no other."""


class ChatErrors:
    """Errors of OpenAI's API."""

    waiting = b": waiting\n\n"

    def response(self, error: Exception) -> ErrorResponse:
        """An error as the response to a request."""
        return error_response(error)

    def event(self, error: Exception) -> bytes:
        """An error as the last event of a stream."""
        return event(from_json(error_response(error).body))


class ResponsesErrors(ChatErrors):
    """Errors of the Responses API, which differ from others of OpenAI in streams only."""

    def event(self, error: Exception) -> bytes:
        """An error as the only event of a stream."""
        written = error_event(reported(from_json(error_response(error).body)))
        return event_bytes([{**written, "sequence_number": 0}])


class MessagesErrors:
    """Errors of Anthropic's API."""

    waiting = event_bytes([{"type": "ping"}])

    def response(self, error: Exception) -> ErrorResponse:
        """An error as the response to a request."""
        found = error_response(error)
        body = error_body(found.status, reported(from_json(found.body)), CURRENT.get())
        return found._replace(body=to_json(body))

    def event(self, error: Exception) -> bytes:
        """An error as the last event of a stream."""
        return event_bytes([from_json(self.response(error).body)])


def reported(body: Any) -> Mapping[str, Any]:
    """The error in an error's body, which may be a model server's own.

    >>> reported({"object": "error", "message": "too long"})["message"], reported({"detail": "no"})["message"]
    ('too long', 'no')
    """
    error = body.get("error") if isinstance(body, Mapping) else None
    if isinstance(error, Mapping):
        return error
    said = error or (body.get("message") or body.get("detail") if isinstance(body, Mapping) else None)
    return {"message": said if isinstance(said, str) else to_json(said or body).decode()}


CHAT_ERRORS, RESPONSES_ERRORS, MESSAGES_ERRORS = ChatErrors(), ResponsesErrors(), MessagesErrors()
