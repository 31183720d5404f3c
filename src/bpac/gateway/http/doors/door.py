"""A door: an API in which callers ask, and in which they are answered.

The gateway works with chat completions. A door reads requests of its API as requests for a chat completion, and writes
the replies as its API has them. Everything between, such as decisions, budgets and the journal, is the same for all.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from bpac.errors import RequestError
from bpac.gateway.http.doors.error_formats import CHAT_ERRORS, ErrorFormat
from bpac.wire.originals import ORIGINAL

Headers = Iterable[tuple[bytes, bytes]]


class ReplyWriter(Protocol):
    """Writes the reply to one request in the format of an API.

    ``AnswerError`` if a model's answer is not a chat completion.
    """

    def whole(self, completion: Mapping[str, Any]) -> dict[str, Any]:
        """The reply that a whole chat completion is."""

    def add(self, chunk: Mapping[str, Any]) -> bytes:
        """The events of a chunk."""

    def end(self) -> bytes:
        """The events at the end of the answer."""

    def fail(self, error: Mapping[str, Any]) -> bytes:
        """The events of an answer that fails."""


class Asked(NamedTuple):
    """A request that was read.

    Parameters
    ----------
    chat: the request for a chat completion.
    writer: writes the reply; none if the reply is a chat completion.
    """

    chat: Mapping[str, Any]
    writer: ReplyWriter | None = None


class Door(Protocol):
    """An API in which callers may ask."""

    @property
    def errors(self) -> ErrorFormat:
        """How errors look."""

    def read(self, body: dict[str, Any], headers: Headers) -> Asked:
        """The request in a body; ``RequestError`` if it cannot be read, or cannot be expressed as a chat."""


class ChatDoor:
    """OpenAI's chat completions."""

    errors: ErrorFormat = CHAT_ERRORS

    def read(self, body: dict[str, Any], headers: Headers) -> Asked:
        """The request as it is."""
        if ORIGINAL in body:
            raise RequestError(f"{ORIGINAL} cannot be used: it is a name of the gateway's own; leave it out", ORIGINAL)
        return Asked(body)
