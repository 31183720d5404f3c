"""Requests and responses as clients of the OpenAI API log them, and the files of its batch API.

A record has a request (``request``, ``body`` or ``kwargs``, or the fields of one) and a response (``response``,
``completion`` or ``output``, or the fields of one), of chat completions or of the Responses API. The files of the batch
API have them apart: lines with the same ``custom_id`` belong together.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bpac.importing.call import LoggedCall, Record
from bpac.importing.fields import answer_of, decoded, first_of, messages_of, model_names, text_of

_REQUEST = ("request", "request_body", "kwargs", "body")
_RESPONSE = ("response", "response_body", "completion", "result", "output")
_TRACE = ("custom_id", "trace_id", "traceId", "request_id")


def matches(record: Record) -> bool:
    """Whether a record is a request, a response or both."""
    if "choices" in record or "custom_id" in record or record.get("object") == "response":
        return True
    both = [decoded(first_of(record, *names)) for names in (_REQUEST, _RESPONSE)]
    request, response = (one if isinstance(one, Mapping) else {} for one in both)
    asks = bool({"messages", "input"} & set(request)) or isinstance(decoded(record.get("messages")), list)
    return asks and (bool({"choices", "output", "body"} & set(response)) or bool(both[1]))


def calls(record: Record, place: str) -> Iterator[LoggedCall]:
    """The call of a record; one without an answer and without a problem is a prompt whose answer is elsewhere."""
    request = _part(record, _REQUEST)
    response = _part(record, _RESPONSE)
    asked: Mapping[str, Any] = request if isinstance(request, Mapping) else {}
    replied: Any = response
    problem = text_of(record.get("error")) or ""
    if isinstance(replied, Mapping) and "body" in replied and "choices" not in replied:  # batch API
        status = replied.get("status_code")
        problem = "" if status in (None, 200) else "the request failed"
        replied = decoded(replied["body"])
    if record.get("error") not in (None, "", {}) or (isinstance(replied, Mapping) and replied.get("error")):
        problem = "the request failed"
    call = LoggedCall(
        place,
        _models(record, asked, replied),
        trace=_trace(record, asked),
        messages=messages_of(first_of(asked, "messages", "input", "prompt")),
        id=text_of(replied.get("id")) if isinstance(replied, Mapping) else "",
    )
    if problem:
        call.problem = problem
    elif response is not None:
        call.answer = answer_of(replied)
        if call.answer is None:
            call.problem = "the response has no answer"
    elif not call.messages or not call.trace:
        call.problem = "the request has no response"
    yield call


def _part(record: Record, names: tuple[str, ...]) -> Any:
    """The request or response of a record, which may be the record itself."""
    found = decoded(first_of(record, *names))
    if found is not None and not (names is _RESPONSE and record.get("object") == "response"):
        return found
    itself = {"choices", "output"} if names is _RESPONSE else {"messages", "input"}
    return record if itself & set(record) else None


def _models(record: Record, asked: Mapping[str, Any], replied: Any) -> tuple[str, ...]:
    answered = text_of(replied.get("model")) if isinstance(replied, Mapping) else ""
    name = text_of(first_of(asked, "model")) or text_of(record.get("model")) or answered
    return model_names(name, answered, request=asked)


def _trace(record: Record, asked: Mapping[str, Any]) -> str:
    for fields in (record, decoded(record.get("metadata")), decoded(asked.get("metadata"))):
        if isinstance(fields, Mapping) and (found := text_of(first_of(fields, *_TRACE))):
            return found
    return ""
