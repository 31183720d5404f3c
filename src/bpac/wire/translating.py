"""What translations between chat completions and other APIs share: their errors, checks of fields, and chunks."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol

from bpac.answer import token_count
from bpac.errors import AnswerError, BpacError
from bpac.wire.json import to_json

# What reading a value of an unexpected kind raises.
WRONG_KIND = (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)

# Error codes with which servers report, in a response with status 200, that the request itself is at fault.
_OF_REQUEST = frozenset({
    "bio_policy", "context_length_exceeded", "data_residency_mismatch", "empty_image_file", "failed_to_download_image",
    "misalignment_policy_violation", "not_found_error", "request_too_large", "unsupported_image_media_type",
})  # fmt: skip


class NotExpressible(BpacError):
    """A chat request has something that the API of a model cannot express.

    Parameters
    ----------
    message: what it is, and what to do about it.
    field: the field of the chat request.
    """

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field

    def body(self) -> bytes:
        """The error as OpenAI's servers write it."""
        return error_body(str(self), "invalid_request_error", self.field, "not_expressible")


class ReportedError(AnswerError):
    """A server reports an error within a response that began well.

    Parameters
    ----------
    message: what the server says.
    code: the server's name for the error.
    begun: whether a part of the answer came before: then it is a failure, whatever the server blames (default: no).

    Attributes
    ----------
    refused: whether the request is at fault, so that a repetition would fail as well; otherwise the server is.
    """

    def __init__(self, message: str, code: str, begun: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.refused = not begun and (code in _OF_REQUEST or code.startswith(("invalid_", "image_")))

    def body(self) -> bytes:
        """The error as OpenAI's servers write it."""
        return error_body(str(self), self.code, None, self.code)


def reported(error: Any, begun: bool = False) -> ReportedError:
    """The error that an object of a server describes.

    Parameters
    ----------
    error: the object.
    begun: whether a part of the answer came before (default: no).

    >>> reported({"type": "overloaded_error", "message": "Overloaded"}).refused
    False
    """
    values = error if isinstance(error, Mapping) else {}
    code = values.get("code") or values.get("type")
    said = str(values.get("message") or "no message")[:300]
    return ReportedError(said, code if isinstance(code, str) else "unknown", begun)


def error_body(message: str, kind: str, param: str | None, code: str | None) -> bytes:
    """The body of an error response as OpenAI's servers write it."""
    return to_json({"error": {"message": message, "type": kind, "param": param, "code": code}})


def check_fields(body: Mapping[str, Any], neutral: Mapping[str, Any], api: str) -> None:
    """Refuse a request with a field that an API does not have, unless its value is the default.

    Parameters
    ----------
    body: the chat request.
    neutral: the fields, each with the value that asks for nothing.
    api: the name of the API, for the error message.
    """
    for name, default in neutral.items():
        if body.get(name) not in (None, default):
            raise not_expressible(name, api)


def check_stateless(body: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse a request that refers to something that the server has stored.

    All callers share the gateway's key, so that one could read or go on with what belongs to another.
    """
    for name in names:
        if body.get(name) not in (None, False):
            message = f"{name} cannot be used: callers share an account on the server, and so send whole conversations"
            raise NotExpressible(message, name)


def not_expressible(field: str, api: str, instead: str = "") -> NotExpressible:
    """The error for a field that an API does not have.

    Parameters
    ----------
    field: the field of the chat request.
    api: the name of the API.
    instead: what to do (default: leave it out).
    """
    remedy = instead or "leave it out, or add it to drop of this model"
    return NotExpressible(f"{field} cannot be expressed in {api}: {remedy}", field)


def content_parts(content: Any, where: str) -> list[Mapping[str, Any]]:
    """The parts of a message's content; a text is one part.

    Parameters
    ----------
    content: a text, a list of parts, or none.
    where: the place of the message, for error messages.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        return content
    raise NotExpressible(f"{where}.content must be a text or a list of parts", "messages")


def joined_text(content: Any, where: str) -> str:
    """All texts of a message's content, refusals included; parts of other kinds are not."""
    parts = content_parts(content, where)
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)


def chat_usage(prompt: Any, cached: Any, completion: Any, reasoning: Any, **more: int) -> dict[str, Any] | None:
    """Counts of tokens as chat completions have them; none if the server did not count, or counted impossibly.

    Parameters
    ----------
    prompt, cached, completion, reasoning: the counts of the server: of the prompt, of the part of it that came from a
        cache, of all that was generated, and of the thinking in it. The second and the last may be none.
    more: further details of the prompt.

    >>> chat_usage(10, 8, 5, None)["prompt_tokens_details"]
    {'cached_tokens': 8}
    """
    read, generated = token_count(prompt), token_count(completion)
    if read is None or generated is None:
        return None
    usage: dict[str, Any] = {"prompt_tokens": read, "completion_tokens": generated, "total_tokens": read + generated}
    usage["prompt_tokens_details"] = {"cached_tokens": token_count(cached) or 0, **more}
    if (thought := token_count(reasoning)) is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": thought}
    return usage


class ChunkWriter:
    """Writes the chunks of one streamed chat completion.

    Nothing is written before there is something to say: until its first chunk, a stream that fails can be repeated.

    Attributes
    ----------
    head: the fields that all chunks have.
    started: whether there was something to say.
    """

    def __init__(self, created: int) -> None:
        self.head: dict[str, Any] = {"id": "", "object": "chat.completion.chunk", "created": created, "model": ""}
        self.started = False

    def delta(self, logprobs: list[Any] | None = None, **delta: Any) -> bytes:
        """A chunk that adds to the message."""
        choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": None}
        if not self.started:
            self.started = True
            choice["delta"] = {"role": "assistant", **delta}
        if logprobs is not None:
            choice["logprobs"] = {"content": logprobs, "refusal": None}
        return to_json({**self.head, "choices": [choice]})

    def finish(self, reason: str, **more: Any) -> bytes:
        """The chunk with the finish reason, and further fields of the choice."""
        return to_json({**self.head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason, **more}]})

    def usage(self, usage: Mapping[str, Any]) -> bytes:
        """The chunk with the counts of tokens."""
        return to_json({**self.head, "choices": [], "usage": usage})


class EventReader(Protocol):
    """Translates the events of one stream to chunks of a chat completion."""

    def feed(self, events: list[bytes]) -> tuple[list[bytes], bool]:
        """The chunks that follow from the data of the next events, and whether the stream has ended.

        ``AnswerError`` if the events cannot be read, ``ReportedError`` if the server reports an error.
        """


Finish = Literal["stop", "length", "tool_calls", "content_filter"]
