"""The fields of a response that are known before the answer, and those that follow from its end."""

from collections.abc import Mapping
from typing import Any

from bpac.answer import CALLED, FINISHED
from bpac.wire.chat_deltas import Counts

# What a response repeats of its request, and what it says where the request says nothing.
REPEATED: Mapping[str, Any] = {
    "instructions": None, "max_output_tokens": None, "max_tool_calls": None, "metadata": {},
    "parallel_tool_calls": True, "prompt_cache_key": None, "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None, "service_tier": "default", "temperature": None, "text": {"format": {"type": "text"}},
    "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": None, "truncation": "disabled", "user": None,
}  # fmt: skip
_FILTERED = ("content_filter", "refusal")


def described(request: Mapping[str, Any], response_id: str, created: int) -> dict[str, Any]:
    """A response that has just begun.

    Parameters
    ----------
    request: the request that it answers.
    response_id: its id.
    created: the time, in seconds since 1970.
    """
    repeated = {name: default if (given := request.get(name)) is None else given for name, default in REPEATED.items()}
    return {
        "id": response_id, "object": "response", "created_at": created, "status": "in_progress", "background": False,
        "error": None, "incomplete_details": None, "model": request.get("model"), "output": [],
        "previous_response_id": None, "store": False, "usage": None, **repeated,
    }  # fmt: skip


def incomplete_reason(finish_reason: str) -> str:
    """Why an answer is incomplete; empty if it is complete.

    Any reason that is not known to be an end, such as ``error``, means that the answer was cut off.

    >>> incomplete_reason("length"), incomplete_reason("stop")
    ('max_output_tokens', '')
    """
    reason = finish_reason.lower()
    if not reason or reason in FINISHED or reason in CALLED:
        return ""
    return "content_filter" if reason in _FILTERED else "max_output_tokens"


def usage(counts: Counts | None) -> dict[str, Any] | None:
    """Counts of tokens as a response has them; none if the model's server did not count."""
    if counts is None:
        return None
    return {
        "input_tokens": counts.prompt,
        "input_tokens_details": {"cached_tokens": counts.cached, "cache_write_tokens": counts.written},
        "output_tokens": counts.completion,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.prompt + counts.completion,
    }


def error_event(error: Mapping[str, Any]) -> dict[str, Any]:
    """The event of an error: its fields, as the documentation has them, and the error itself, which clients raise.

    Parameters
    ----------
    error: the error, as chat completions report it.
    """
    code, message, param = error.get("code"), error.get("message"), error.get("param")
    fields = {"code": None if code is None else str(code), "message": str(message), "param": param}
    return {"type": "error", **fields, "error": dict(error)}
