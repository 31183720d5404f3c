"""Responses of a server of this API, passed on to callers who have asked in it.

What a response repeats of its request is what the caller has asked: the model's settings are nobody else's business.
Log-probabilities that only the gateway has asked for are left out.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bpac.errors import AnswerError
from bpac.wire.responses.reply_writing import REPEATED
from bpac.wire.responses.request_reading import LOGPROBS
from bpac.wire.translating import WRONG_KIND

Event = dict[str, Any]

_TYPE = re.compile(r"[a-z_.]+")
# Fields that say what was kept, or how it was asked for, beside those that are repeated.
_OURS = frozenset({*REPEATED, "background", "conversation", "previous_response_id", "prompt", "store"}) - {
    "service_tier"
}
# What items are before the first of their parts is there, and the events that bring the parts of calls.
_EMPTY: Mapping[Any, Mapping[str, Any]] = {
    "message": {"content": []}, "reasoning": {"summary": []}, "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}  # fmt: skip
_CALLS = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}
_TEXTS = {"output_text": ("output_text", "text"), "refusal": ("refusal", "refusal")}


class OriginalResponse:
    """Passes one response on.

    Parameters
    ----------
    request: the caller's request.
    described: the response as it was before the answer, with what it repeats of the request.
    """

    def __init__(self, request: Mapping[str, Any], described: Mapping[str, Any]) -> None:
        top = request.get("top_logprobs") or 0
        self._shows_logprobs = bool(top) or LOGPROBS in (request.get("include") or ())
        self._top = top
        self._described = described

    def response(self, original: Any) -> dict[str, Any]:
        """A whole response; ``AnswerError`` if it is none."""
        try:
            return self._whole(original)
        except WRONG_KIND as error:
            raise AnswerError("not the original of a response") from error

    def events(self, original: Any) -> list[Event]:
        """The events of a chunk, or those of a whole response; ``AnswerError`` if there are none."""
        try:
            if "reply" in original:
                return [*_exploded(self._whole(original))]
            return [self._event(event) for event in original["events"] if _TYPE.fullmatch(event["type"])]
        except WRONG_KIND as error:
            raise AnswerError("not the original of a response") from error

    def _whole(self, original: Mapping[str, Any]) -> dict[str, Any]:
        return self._response({"status": "completed", **original["reply"]})

    def _response(self, reply: Mapping[str, Any]) -> dict[str, Any]:
        ours = {name: self._described.get(name) for name in _OURS if name in self._described}
        own = {name: value for name, value in reply.items() if name not in _OURS}
        return {**self._described, **own, "output": [self._item(item) for item in reply["output"]], **ours}

    def _event(self, event: Event) -> Event:
        changed = {**event}
        if isinstance(response := event.get("response"), Mapping):
            changed["response"] = self._response(response)
        if isinstance(item := event.get("item"), Mapping):
            changed["item"] = self._item(item)
        if isinstance(part := event.get("part"), Mapping):
            changed["part"] = self._part(part)
        return self._part(changed)

    def _item(self, item: Mapping[str, Any]) -> dict[str, Any]:
        if item.get("type") != "message":
            return dict(item)
        return {**item, "content": [self._part(part) for part in item["content"]]}

    def _part(self, part: Mapping[str, Any]) -> dict[str, Any]:
        """A part of a message, or an event, with the log-probabilities that the caller has asked for."""
        if not isinstance(listed := part.get("logprobs"), list):
            return dict(part)
        if not self._shows_logprobs:
            return {**part, "logprobs": []}
        return {
            **part,
            "logprobs": [{**one, "top_logprobs": (one.get("top_logprobs") or [])[: self._top]} for one in listed],
        }


def _exploded(response: Mapping[str, Any]) -> Iterator[Event]:
    """A whole response as events."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    for kind in ("created", "in_progress"):
        yield {"type": f"response.{kind}", "response": begun}
    for index, item in enumerate(response["output"]):
        empty = {**item, **_EMPTY.get(item["type"], {})} | ({"status": "in_progress"} if "status" in item else {})
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        for event in _item_events(item):
            yield {"item_id": item.get("id") or "", "output_index": index, **event}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _item_events(item: Mapping[str, Any]) -> Iterator[Event]:
    if (call := _CALLS.get(item["type"])) is not None:
        kind, field = call
        yield {"type": f"response.{kind}.delta", "delta": item[field]}
        yield {"type": f"response.{kind}.done", field: item[field], "name": item["name"]}
    if item["type"] == "reasoning":
        for index, part in enumerate(item.get("summary") or ()):
            at, name = {"summary_index": index}, "response.reasoning_summary"
            yield {"type": f"{name}_part.added", **at, "part": {**part, "text": ""}}
            yield {"type": f"{name}_text.delta", **at, "delta": part["text"]}
            yield {"type": f"{name}_text.done", **at, "text": part["text"]}
            yield {"type": f"{name}_part.done", **at, "part": part}
    if item["type"] == "message":
        for index, part in enumerate(item["content"]):
            yield from ({"content_index": index, **event} for event in _part_events(part))


def _part_events(part: Mapping[str, Any]) -> Iterator[Event]:
    name, field = _TEXTS.get(part["type"], ("", ""))
    if name:
        tokens = {"logprobs": part.get("logprobs") or []} if name == "output_text" else {}
        listed: Event = {"annotations": [], "logprobs": []} if tokens else {}
        yield {"type": "response.content_part.added", "part": {**part, field: "", **listed}}
        yield {"type": f"response.{name}.delta", "delta": part[field], **tokens}
        for number, one in enumerate(part.get("annotations") or ()):
            yield {"type": "response.output_text.annotation.added", "annotation_index": number, "annotation": one}
        yield {"type": f"response.{name}.done", field: part[field], **tokens}
    else:
        yield {"type": "response.content_part.added", "part": part}
    yield {"type": "response.content_part.done", "part": part}
