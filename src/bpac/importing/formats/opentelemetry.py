"""OpenTelemetry: spans and logs of the conventions for generative AI, in OTLP's JSON or as console exporters print it.

The messages of a call are in its span, in one event among the logs (``gen_ai.client.inference.operation.details``), or
in several (``gen_ai.user.message`` … ``gen_ai.choice``), which have the ids of the span and may be in another file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bpac.importing.call import LoggedCall, Record
from bpac.importing.fields import answer_of, count_of, decoded, first_of, model_names, text_of
from bpac.importing.formats.opentelemetry_messages import CHOICE, SAID, Event, output_of, prompt_of, reason_of

_SCOPES = {"resourceSpans": ("scopeSpans", "spans"), "resourceLogs": ("scopeLogs", "logRecords")}
_OLD_SCOPES = "instrumentationLibrarySpans"
_NOT_CHATS = ("embeddings", "execute_tool", "invoke_agent", "create_agent", "retrieval", "invoke_workflow")
NO_CONTENT = (
    "the span has no messages: turn on their capture where the application is instrumented, for example with "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT; if they are in logs of their own, give that file, too"
)
NO_SPAN = "messages without their span, which names the model: give the file of spans, too"


def matches(record: Record) -> bool:
    """Whether a record is an export of spans or logs, one span, or one entry of a log."""
    names = set(record)
    one = bool({"traceId", "context"} & names) or {"trace_id", "body"} <= names
    return bool(_SCOPES.keys() & names) or ("attributes" in names and one)


@dataclass(slots=True)
class SpanReader:
    """Reads the calls of spans, whose messages may be in other records.

    Parameters
    ----------
    spans: spans without an answer, with their attributes and places, by their ids.
    events: messages by the ids of their span, and where the first was read.
    """

    spans: dict[tuple[str, str], tuple[Record, Mapping[str, Any], str]] = field(default_factory=dict)
    events: dict[tuple[str, str], tuple[list[Event], str]] = field(default_factory=dict)

    def calls(self, record: Record, place: str) -> Iterator[LoggedCall]:
        """The calls in a record that are complete."""
        for span in _spans(record):
            attributes, key = _attributes(span.get("attributes")), _ids(span)
            name = text_of(first_of(attributes, "event.name") or first_of(span, "eventName", "event_name"))
            if name in (*SAID, CHOICE):
                self.events.setdefault(key, ([], place))[0].append((name, attributes | _body(span)))
                continue
            call = _call(span, attributes, _own_events(span), place)
            if call.problem == NO_CONTENT and all(key):
                self.spans[key] = span, attributes, place
            else:
                self.spans.pop(key, None)  # the answer was in an event of the span
                yield call

    def rest(self) -> Iterator[LoggedCall]:
        """The calls whose spans and messages were in different records, after all records have been read."""
        for key, (span, attributes, place) in self.spans.items():
            events, _ = self.events.pop(key, ([], ""))
            yield _call(span, attributes, [*_own_events(span), *events], place)
        for _, place in self.events.values():
            yield LoggedCall(place, problem=NO_SPAN)


def _spans(record: Record) -> Iterator[Record]:
    if not _SCOPES.keys() & set(record):
        yield record
    for name, (scopes, items) in _SCOPES.items():
        for resource in record.get(name) or ():
            for scope in resource.get(scopes) or resource.get(_OLD_SCOPES) or ():
                yield from scope.get(items) or ()


def _call(span: Record, attributes: Mapping[str, Any], events: list[Event], place: str) -> LoggedCall:
    """The call of a span; with a problem if the span is about something else."""
    asked_for = text_of(attributes.get("gen_ai.request.model"))
    answered = text_of(attributes.get("gen_ai.response.model"))
    kind = text_of(attributes.get("gen_ai.operation.name"))
    if kind in _NOT_CHATS or not (asked_for or answered):
        return LoggedCall(place, problem=f"not a chat ({kind})" if kind else "not a call of a model")
    effort = attributes.get("gen_ai.request.reasoning_effort") or attributes.get("gen_ai.request.reasoning.level")
    trace, name = _ids(span)
    call = LoggedCall(
        place,
        model_names(asked_for, answered, request={"reasoning_effort": effort}),
        trace=trace,
        messages=prompt_of(attributes, events),
        source=attributes,
        id=name,
    )
    status = span.get("status")
    code = status.get("code", status.get("status_code")) if isinstance(status, Mapping) else None
    if code in (2, "STATUS_CODE_ERROR", "ERROR") or "error.type" in attributes:
        call.problem = "the request failed"
        return call
    answer = answer_of(output_of(attributes, events))
    if answer is None:
        call.problem = NO_CONTENT
        return call
    reasons = decoded(attributes.get("gen_ai.response.finish_reasons"))
    if isinstance(reasons, list) and reasons:
        answer = replace(answer, finish_reason=reason_of(reasons[0]) or answer.finish_reason)
    tokens = count_of(first_of(attributes, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"))
    call.answer = replace(answer, completion_tokens=tokens or answer.completion_tokens)
    return call


def _ids(span: Record) -> tuple[str, str]:
    """The ids of its trace and of itself, or of the span that an entry of a log belongs to."""
    context = span.get("context")
    fields = context if isinstance(context, Mapping) else span
    names = (("traceId", "trace_id"), ("spanId", "span_id"))
    trace, name = (text_of(first_of(fields, *each)).removeprefix("0x") for each in names)
    return trace, name


def _own_events(span: Record) -> list[Event]:
    return [
        (text_of(first_of(event, "name", "eventName")), _attributes(event.get("attributes")))
        for event in span.get("events") or ()
    ]


def _body(entry: Record) -> dict[str, Any]:
    """What an entry of a log says, if it has fields; OTLP has them with their types."""
    body = entry.get("body")
    if not isinstance(body, Mapping):
        return {}
    fields = _value(body) if "kvlistValue" in body else body
    return dict(fields) if isinstance(fields, Mapping) else {}


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
