"""Streams of the Responses API as chunks of a chat completion.

Items are told apart by their index, so they may be interleaved. Events of unknown types are ignored. The last event has
the whole response: texts, refusals and calls of which a server sent no parts before are taken from there.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bpac.answer import excerpt
from bpac.errors import AnswerError
from bpac.wire.json import from_json
from bpac.wire.responses.reply_reading import (
    finish_reason,
    head,
    read_message,
    read_token,
    read_usage,
    tool_call,
)
from bpac.wire.stream import DONE
from bpac.wire.translating import WRONG_KIND, ChunkWriter, reported

# The events that bring parts of a call's arguments, with the place of the arguments in a chat completion.
_CALLS = {"function_call": ("function", "arguments"), "custom_tool_call": ("custom", "input")}
_SPOKEN = ("content", "refusal", "tool_calls")


class ResponseEvents:
    """Translates the events of one stream.

    Parameters
    ----------
    created: the time, in seconds since 1970, if the response does not have it.
    """

    def __init__(self, created: int) -> None:
        self._created = created
        self._chunks = ChunkWriter(created)
        self._calls: dict[Any, tuple[int, str]] = {}  # the number of each call and its type, by the index of its item
        self._with_arguments: set[Any] = set()
        self._sent: set[str] = set()  # the fields of the message that came in parts
        self._reasoning = ""  # which events bring the reasoning: a server may send it and its summary

    def feed(self, events: list[bytes]) -> tuple[list[bytes], bool]:
        """The chunks that follow from the data of the next events, and whether the stream has ended."""
        chunks: list[bytes] = []
        for data in events:
            if data.strip() == DONE:  # some servers send it, but it does not say how the response ended
                continue
            event = from_json(data)
            try:
                kind = event["type"]
                if (read := _READERS.get(kind)) is not None:
                    chunks += read(self, event)
                if kind in _LAST:
                    return chunks, True
            except WRONG_KIND as error:
                raise AnswerError(f"not an event of a response ({type(error).__name__}): {excerpt(event)}") from error
        return chunks, False

    def _start(self, event: Mapping[str, Any]) -> list[bytes]:
        self._chunks.head |= head(event["response"], self._created)
        return []

    def _delta(self, logprobs: list[Any] | None = None, **delta: Any) -> list[bytes]:
        self._sent |= delta.keys()
        return [self._chunks.delta(logprobs, **delta)]

    def _text(self, event: Mapping[str, Any]) -> list[bytes]:
        tokens = event.get("logprobs")
        return self._delta([read_token(token) for token in tokens] if tokens else None, content=event["delta"])

    def _refusal(self, event: Mapping[str, Any]) -> list[bytes]:
        return self._delta(refusal=event["delta"])

    def _thought(self, event: Mapping[str, Any]) -> list[bytes]:
        self._reasoning = self._reasoning or event["type"]
        return self._delta(reasoning_content=event["delta"]) if event["type"] == self._reasoning else []

    def _summary_part(self, event: Mapping[str, Any]) -> list[bytes]:
        further = event.get("summary_index", 0) > 0 and self._reasoning.startswith("response.reasoning_summary")
        return self._delta(reasoning_content="\n\n") if further else []

    def _item(self, event: Mapping[str, Any]) -> list[bytes]:
        item, index = event["item"], event["output_index"]
        if item["type"] not in _CALLS:
            return []
        self._calls[index] = len(self._calls), item["type"]
        call = tool_call({**item, _CALLS[item["type"]][1]: ""})
        return self._delta(tool_calls=[{"index": self._calls[index][0], **call}])

    def _arguments(self, event: Mapping[str, Any]) -> list[bytes]:
        index = event["output_index"]
        self._with_arguments.add(index)
        return self._argument_part(index, event["delta"])

    def _argument_part(self, index: Any, part: str) -> list[bytes]:
        number, kind = self._calls[index]
        field, text = _CALLS[kind]
        return self._delta(tool_calls=[{"index": number, field: {text: part}}])

    def _item_done(self, event: Mapping[str, Any]) -> list[bytes]:
        item, index = event["item"], event["output_index"]
        kind = item["type"]
        if kind in _CALLS:
            if index in self._with_arguments:
                return []
            opened = [] if index in self._calls else self._item(event)
            return opened + self._argument_part(index, item[_CALLS[kind][1]])
        if kind == "reasoning":
            return self._delta(reasoning_items=[item]) if item.get("encrypted_content") else []
        return [] if kind == "message" else self._delta(other_items=[item])

    def _end(self, event: Mapping[str, Any]) -> list[bytes]:
        response = event["response"]
        if event["type"] == "response.incomplete":
            response = {**response, "status": "incomplete"}
        self._start(event)
        message, logprobs = read_message(response["output"])
        finish = finish_reason(response, has_calls=bool(self._calls) or "tool_calls" in message)
        calls = [{"index": number, **call} for number, call in enumerate(message.pop("tool_calls", ()))]
        message |= {"tool_calls": calls} if calls else {}
        if self._chunks.started:
            missing = {name: message[name] for name in _SPOKEN if name not in self._sent and message.get(name)}
        else:
            missing = {name: value for name, value in message.items() if name != "role"}
        listed = logprobs["content"] if logprobs and "content" in missing else None
        chunks = self._delta(listed, **missing) if missing else []
        usage = read_usage(response.get("usage"))
        return [*chunks, self._chunks.finish(finish), *([self._chunks.usage(usage)] if usage else [])]

    def _failed(self, event: Mapping[str, Any]) -> list[bytes]:
        raise reported(event["response"].get("error"), self._chunks.started)

    def _error(self, event: Mapping[str, Any]) -> list[bytes]:
        nested = event.get("error")
        error = nested if isinstance(nested, Mapping) else {**event, "type": None}
        raise reported(error, self._chunks.started)


_LAST = frozenset({"response.completed", "response.incomplete"})
_READERS: Mapping[Any, Callable[[ResponseEvents, Mapping[str, Any]], list[bytes]]] = {
    "response.created": ResponseEvents._start,
    "response.output_text.delta": ResponseEvents._text,
    "response.refusal.delta": ResponseEvents._refusal,
    "response.reasoning_text.delta": ResponseEvents._thought,
    "response.reasoning_summary_text.delta": ResponseEvents._thought,
    "response.reasoning_summary_part.added": ResponseEvents._summary_part,
    "response.output_item.added": ResponseEvents._item,
    "response.function_call_arguments.delta": ResponseEvents._arguments,
    "response.custom_tool_call_input.delta": ResponseEvents._arguments,
    "response.output_item.done": ResponseEvents._item_done,
    "response.completed": ResponseEvents._end,
    "response.incomplete": ResponseEvents._end,
    "response.failed": ResponseEvents._failed,
    "error": ResponseEvents._error,
}
