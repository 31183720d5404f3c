"""Langfuse's exports: observations as JSON, JSON lines or CSV, from its pages, its API or its exports to a bucket.

A trace with its observations, as the page of a trace saves it, is read, too.

Names are in camel case (API) or in snake case (exports). Only generations are calls of models.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bpac.importing.call import LoggedCall, Record
from bpac.importing.fields import answer_of, count_of, decoded, first_of, messages_of, model_names, text_of

_TRACE = ("traceId", "trace_id")
_MODEL = ("providedModelName", "provided_model_name", "model", "internalModel")
_OUTPUT_TOKENS = ("output", "completion_tokens", "output_tokens", "completionTokens", "outputUsage")


def matches(record: Record) -> bool:
    """Whether a record is an observation, or a trace with its observations."""
    if isinstance(record.get("observations"), list):
        return True
    observed = {"input", "output"} <= set(record) and bool({*_TRACE} & set(record))
    return observed and bool({"type", *_MODEL, "usageDetails", "usage_details", "parentObservationId"} & set(record))


def calls(record: Record, place: str) -> Iterator[LoggedCall]:
    """The calls of a record: its own, or those of all observations of a trace."""
    observations = record.get("observations")
    if not isinstance(observations, list):
        yield _call(record, place)
        return
    if not any(isinstance(one, Mapping) for one in observations):
        yield LoggedCall(place, problem="the trace is exported without its observations: export observations")
    for one in observations:
        if isinstance(one, Mapping):
            yield _call({"traceId": record.get("id"), **one}, place)


def _call(record: Record, place: str) -> LoggedCall:
    parameters = decoded(first_of(record, "modelParameters", "model_parameters"))
    prompt = decoded(record.get("input"))
    call = LoggedCall(
        place,
        model_names(text_of(first_of(record, *_MODEL)), request=parameters),
        trace=text_of(first_of(record, *_TRACE)),
        messages=messages_of(prompt),
        source=record,
        id=text_of(record.get("id")),
    )
    kind = text_of(record.get("type")).upper()
    if kind not in ("", "GENERATION"):
        call.problem = f"not a generation ({kind.lower()})"
    elif text_of(record.get("level")).upper() == "ERROR":
        call.problem = "the request failed"
    else:
        call.answer = answer_of(record.get("output"))
        if call.answer is None:
            call.problem = "the observation has no output"
        elif not call.answer.completion_tokens:
            call.answer = replace(call.answer, completion_tokens=_tokens(record) or 0)
    return call


def _tokens(record: Record) -> int | None:
    for fields in (decoded(first_of(record, "usageDetails", "usage_details")), decoded(record.get("usage"))):
        if isinstance(fields, Mapping) and (found := _count(fields)) is not None:
            return found
    return _count({"outputUsage": first_of(record, "outputUsage", "completionTokens", "output_usage")})


def _count(fields: Mapping[str, Any]) -> int | None:
    return next((count for name in _OUTPUT_TOKENS if (count := count_of(fields.get(name))) is not None), None)
