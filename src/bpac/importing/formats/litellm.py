"""LiteLLM's spend logs: rows of the table ``LiteLLM_SpendLogs``, from its API or its database, or what a logging
callback writes.

Prompts and answers are there only if the proxy stores them (``store_prompts_in_spend_logs: true``); newer versions have
the messages in ``proxy_server_request``. Objects may be JSON in a text, as a database exports them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from bpac.importing.call import LoggedCall, Record
from bpac.importing.fields import answer_of, count_of, decoded, first_of, messages_of, model_names, text_of

# Calls that answer a prompt; others are embeddings, images, speech.
_CHATS = ("completion", "responses", "anthropic_messages", "generate_content", "text_completion")
NOT_STORED = "prompts are not stored: set store_prompts_in_spend_logs: true in general_settings of LiteLLM"


def matches(record: Record) -> bool:
    """Whether a record is a row of the spend logs."""
    return "call_type" in record and bool({"request_id", "startTime", "litellm_call_id", "response"} & set(record))


def calls(record: Record, place: str) -> Iterator[LoggedCall]:
    """The call of a row."""
    request = decoded(record.get("proxy_server_request"))
    asked = request if isinstance(request, Mapping) else {}
    body = decoded(asked.get("body"))
    asked = body if isinstance(body, Mapping) else asked
    metadata = decoded(record.get("metadata"))
    call = LoggedCall(
        place,
        # Not the model in the request: after a fallback, another one has answered.
        model_names(
            text_of(first_of(record, "model")),
            text_of(first_of(record, "model_group", "model_id")),
            request=asked,
        ),
        trace=text_of(first_of(record, "trace_id", "session_id"))
        or text_of(first_of(metadata, "trace_id", "session_id") if isinstance(metadata, Mapping) else None)
        or text_of(record.get("request_id")),
        messages=messages_of(record.get("messages")) or messages_of(first_of(asked, "messages", "input", "prompt")),
        id=text_of(first_of(record, "request_id", "litellm_call_id")),
    )
    kind = text_of(record.get("call_type"))
    if not any(chat in kind for chat in _CHATS):
        call.problem = f"not a chat ({kind or 'no call_type'})"
    elif text_of(record.get("status")).lower() in ("failure", "failed", "error"):
        call.problem = "the request failed"
    else:
        call.answer = answer_of(record.get("response"))
        if call.answer is None:
            stored = first_of({"response": decoded(record.get("response"))}, "response")
            call.problem = NOT_STORED if stored is None else "the response has no answer"
        elif not call.answer.completion_tokens:
            call.answer = replace(call.answer, completion_tokens=count_of(record.get("completion_tokens")) or 0)
    yield call
