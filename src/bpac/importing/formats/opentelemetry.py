"""OpenTelemetry: spans of the conventions for generative AI, as OTLP in JSON or as the console exporter prints them.

Three generations of the conventions are read: messages in the attributes ``gen_ai.input.messages`` and
``gen_ai.output.messages`` (of a span, or of the event ``gen_ai.client.inference.operation.details`` among the logs); in
events of the span, ``gen_ai.user.message`` … ``gen_ai.choice`` or ``gen_ai.content.prompt`` and
``gen_ai.content.completion``; and in numbered attributes, ``gen_ai.prompt.0.content`` and
``gen_ai.completion.0.content``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bpac.importing.call import LoggedCall, Record
from bpac.importing.fields import answer_of, count_of, decoded, first_of, messages_of, model_names, text_of

_SCOPES = {"resourceSpans": ("scopeSpans", "spans"), "resourceLogs": ("scopeLogs", "logRecords")}
_OLD_SCOPES = "instrumentationLibrarySpans"
_NOT_CHATS = ("embeddings", "execute_tool", "invoke_agent", "create_agent", "retrieval", "invoke_workflow")
_TEXTS = ("text", "", None)
_READ_PARTS = (*_TEXTS, "reasoning", "tool_call", "tool_call_response")
NO_CONTENT = (
    "the span has no messages: turn on their capture where the application is instrumented, for example with "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
)


def matches(record: Record) -> bool:
    """Whether a record is an export of spans or logs, or one span."""
    return bool(_SCOPES.keys() & set(record)) or ("attributes" in record and bool({"traceId", "context"} & set(record)))


def calls(record: Record, place: str) -> Iterator[LoggedCall]:
    """The calls of all spans and log records in a record."""
    for span in _spans(record):
        attributes = _attributes(span.get("attributes"))
        yield _call(span, attributes, place)


def _spans(record: Record) -> Iterator[Record]:
    if not _SCOPES.keys() & set(record):
        yield record
    for name, (scopes, items) in _SCOPES.items():
        for resource in record.get(name) or ():
            for scope in resource.get(scopes) or resource.get(_OLD_SCOPES) or ():
                yield from scope.get(items) or ()


def _call(span: Record, attributes: Mapping[str, Any], place: str) -> LoggedCall:
    """The call of a span; with a problem if the span is about something else."""
    asked_for = text_of(attributes.get("gen_ai.request.model"))
    answered = text_of(attributes.get("gen_ai.response.model"))
    kind = text_of(attributes.get("gen_ai.operation.name"))
    if kind in _NOT_CHATS or not (asked_for or answered):
        return LoggedCall(place, problem=f"not a chat ({kind})" if kind else "not a call of a model")
    events = [(_event_name(event), _attributes(event.get("attributes"))) for event in span.get("events") or ()]
    effort = attributes.get("gen_ai.request.reasoning_effort") or attributes.get("gen_ai.request.reasoning.level")
    call = LoggedCall(
        place,
        model_names(asked_for, answered, request={"reasoning_effort": effort}),
        trace=_id(span, "traceId", "trace_id"),
        messages=_prompt(attributes, events),
        source=attributes,
        id=_id(span, "spanId", "span_id"),
    )
    status = span.get("status")
    code = status.get("code", status.get("status_code")) if isinstance(status, Mapping) else None
    if code in (2, "STATUS_CODE_ERROR", "ERROR") or "error.type" in attributes:
        call.problem = "the request failed"
        return call
    answer = answer_of(_output(attributes, events))
    if answer is None:
        call.problem = NO_CONTENT
        return call
    reasons = decoded(attributes.get("gen_ai.response.finish_reasons"))
    if isinstance(reasons, list) and reasons:
        answer = replace(answer, finish_reason=_reason(reasons[0]) or answer.finish_reason)
    tokens = count_of(first_of(attributes, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"))
    call.answer = replace(answer, completion_tokens=tokens or answer.completion_tokens)
    return call


def _id(span: Record, *names: str) -> str:
    context = span.get("context")
    return text_of(first_of(context if isinstance(context, Mapping) else span, *names))


def _event_name(event: Record) -> str:
    return text_of(first_of(event, "name", "eventName"))


def _prompt(attributes: Mapping[str, Any], events: list[tuple[str, dict[str, Any]]]) -> tuple[Mapping[str, Any], ...]:
    system = decoded(attributes.get("gen_ai.system_instructions"))
    before = [{"role": "system", "content": _text_of_parts(system)}] if system else []
    messages = decoded(attributes.get("gen_ai.input.messages"))
    if isinstance(messages, list):
        return (*before, *(_message(one) for one in messages if isinstance(one, Mapping)))
    if numbered := _numbered(attributes, "gen_ai.prompt."):
        return tuple(numbered)
    said: list[Mapping[str, Any]] = []
    for name, fields in events:
        if name in ("gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message", "gen_ai.tool.message"):
            said.append(
                {"role": name.split(".")[1], "content": fields.get("content", fields.get("gen_ai.event.content"))}
            )
        elif name == "gen_ai.content.prompt":
            said += messages_of(fields.get("gen_ai.prompt"))
    return tuple(said)


def _output(attributes: Mapping[str, Any], events: list[tuple[str, dict[str, Any]]]) -> Any:
    messages = decoded(attributes.get("gen_ai.output.messages"))
    if isinstance(messages, list) and messages and isinstance(messages[0], Mapping):
        return _message(messages[0])
    if numbered := _numbered(attributes, "gen_ai.completion."):
        return numbered[0]
    for name, fields in events:
        if name == "gen_ai.choice":
            message = decoded(fields.get("message"))
            reason = {"finish_reason": text_of(fields.get("finish_reason"))}
            return (
                {**message, **reason} if isinstance(message, Mapping) else {"content": fields.get("content"), **reason}
            )
        if name == "gen_ai.content.completion":
            return fields.get("gen_ai.completion")
    return None


def _message(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message with ``parts`` as one with ``content`` and ``tool_calls``."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        return message
    found: dict[str, Any] = {"role": message.get("role"), "content": _text_of_parts(parts)}
    calls = [
        {"id": part.get("id"), "function": {"name": part.get("name"), "arguments": _arguments(part.get("arguments"))}}
        for part in parts
        if isinstance(part, Mapping) and part.get("type") == "tool_call"
    ]
    others = [part for part in parts if isinstance(part, Mapping) and part.get("type") not in _READ_PARTS]
    if others:  # images, for example: prompts that differ in them are different prompts
        found["content"] = [{"type": "text", "text": found["content"]}, *others]
    reason = {"finish_reason": _reason(message["finish_reason"])} if "finish_reason" in message else {}
    return found | ({"tool_calls": calls} if calls else {}) | reason


def _reason(value: Any) -> str:
    """A finish reason by the name that chat completions have for it."""
    reason = text_of(value)
    return "tool_calls" if reason == "tool_call" else reason


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value if value is not None else {})


def _text_of_parts(parts: Any) -> str:
    if isinstance(parts, str):
        return parts
    return "".join(_text_of_part(part) for part in parts or () if isinstance(part, Mapping))


def _text_of_part(part: Mapping[str, Any]) -> str:
    if part.get("type") == "tool_call_response":
        result = first_of(part, "response", "result")
        return result if isinstance(result, str) else json.dumps(result)
    return text_of(part.get("content")) if part.get("type") in _TEXTS else ""


def _numbered(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The messages in attributes such as ``gen_ai.prompt.0.content``, in order."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        number, dot, key = name.removeprefix(prefix).partition(".")
        if name.startswith(prefix) and dot and number.isdigit() and key in ("role", "content", "finish_reason"):
            found.setdefault(int(number), {})[key] = value
    return [found[number] for number in sorted(found)]


def _attributes(listed: Any) -> dict[str, Any]:
    """Attributes by name: OTLP lists them with their types, other exporters have plain objects."""
    if isinstance(listed, Mapping):
        return dict(listed)
    return {
        str(one.get("key")): _value(one["value"])
        for one in listed or ()
        if isinstance(one, Mapping) and isinstance(one.get("value"), Mapping)
    }


def _value(typed: Mapping[str, Any]) -> Any:
    if isinstance(values := typed.get("arrayValue"), Mapping):
        return [_value(one) for one in values.get("values") or ()]
    if isinstance(values := typed.get("kvlistValue"), Mapping):
        return _attributes(values.get("values"))
    return next((value for value in typed.values() if value is not None), None)
