"""The fields of a message that are known before the answer, and those that follow from its end; and errors."""

from collections.abc import Mapping
from typing import Any

from bpac.answer import CALLED, FINISHED
from bpac.wire.chat_deltas import Counts

# Any other reason that is not known to be an end, such as ``error``, means that the answer was cut off.
_STOP_REASONS = {
    "content_filter": "refusal", "refusal": "refusal", "pause_turn": "pause_turn",
    "model_context_window_exceeded": "model_context_window_exceeded",
}  # fmt: skip
# The type of an error by its HTTP status.
_ERRORS = {
    401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error",
    529: "overloaded_error",
}  # fmt: skip
_TYPES = frozenset({*_ERRORS.values(), "invalid_request_error", "api_error"})


def described(request: Mapping[str, Any], message_id: str) -> dict[str, Any]:
    """A message that has just begun.

    Parameters
    ----------
    request: the request that it answers.
    message_id: its id.
    """
    return {
        "id": message_id, "type": "message", "role": "assistant", "model": request.get("model"), "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage(None),
    }  # fmt: skip


def usage(counts: Counts | None) -> dict[str, Any]:
    """Counts of tokens as a message has them: 0 where the model's server did not count."""
    read = counts or Counts(0, 0, 0, 0, 0)
    found: dict[str, Any] = {
        "input_tokens": read.prompt - read.cached - read.written,
        "cache_creation_input_tokens": read.written,
        "cache_read_input_tokens": read.cached,
        "output_tokens": read.completion,
    }
    return found | ({"output_tokens_details": {"thinking_tokens": read.reasoning}} if read.reasoning else {})


def stop_fields(
    finish_reason: str, stopped_by: str, request: Mapping[str, Any], *, called: bool, refusal: str
) -> dict[str, Any]:
    """Why the model stopped.

    Parameters
    ----------
    finish_reason: the reason, as chat completions have it; empty if the server gave none.
    stopped_by: the sequence at which it stopped, where the server says that.
    request: the request, with the sequences at which the model was to stop.
    called: whether it called tools.
    refusal: the text in which it refused to answer; empty if it did not.

    >>> stop_fields("length", "", {}, called=False, refusal="")
    {'stop_reason': 'max_tokens', 'stop_sequence': None}
    """
    given = finish_reason.lower()
    ended = not given or given in FINISHED or given in CALLED
    reason = None if ended else _STOP_REASONS.get(given, "max_tokens")
    if refusal or reason == "refusal":
        details = {"type": "refusal", "category": None, "explanation": refusal or None}
        return {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details}
    if reason is not None:
        return {"stop_reason": reason, "stop_sequence": None}
    if called:  # some servers say "stop" after calls, too
        return {"stop_reason": "tool_use", "stop_sequence": None}
    asked = request.get("stop_sequences")
    if stopped_by and isinstance(asked, list) and stopped_by in asked and finish_reason not in CALLED:
        return {"stop_reason": "stop_sequence", "stop_sequence": stopped_by}
    return {"stop_reason": "end_turn", "stop_sequence": None}


def error_body(status: int, error: Mapping[str, Any], request_id: str) -> dict[str, Any]:
    """The body of an error.

    Parameters
    ----------
    status: the HTTP status; 0 in a stream, where the error itself says what it is.
    error: the error, as chat completions report it.
    request_id: the id of the request.
    """
    given = error.get("type")
    default = "api_error" if status >= 500 or not status else "invalid_request_error"
    kind = _ERRORS.get(status, default)
    if not status and given in _TYPES:
        kind = given
    fields = {"type": kind, "message": str(error.get("message") or "no message")}
    fields |= {name: error[name] for name in ("param", "code") if error.get(name) is not None}
    return {"type": "error", "error": fields, "request_id": request_id}
