"""Chat completions as responses of OpenAI's Responses API, whole and as the events of a stream.

1. A response has output items. Reasoning, a message and the tool calls of a chat completion are one item each. What
   follows another kind of item begins a new one, so that a client knows when reasoning and text have ended.
2. Tool calls may be written in turns: their items are open until the answer ends.
3. A whole completion is a stream of one chunk: the response that its events add up to.
4. A response that a server of this API wrote is passed on: chunks then come with their events.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import Any, TypeVar

from bpac.wire.chat_deltas import CallPart, Counts, Delta, DeltaReader, read_counts
from bpac.wire.named_events import event_bytes
from bpac.wire.originals import ORIGINAL
from bpac.wire.responses.original_writing import OriginalResponse
from bpac.wire.responses.output_items import CallItem, Event, MessageItem, OutputItem, ReasoningItem
from bpac.wire.responses.reply_writing import described, error_event, incomplete_reason, usage

T = TypeVar("T", ReasoningItem, MessageItem)


class ResponseWriter:
    """Writes one response.

    Parameters
    ----------
    request: the request that it answers.
    token: letters and digits that make its ids unique.
    created: the time, in seconds since 1970.
    """

    def __init__(self, request: Mapping[str, Any], token: str, created: int) -> None:
        self._token = token
        self._response = described(request, f"resp_{token}", created)
        self._reader = DeltaReader()
        self._items: list[OutputItem] = []
        self._said: ReasoningItem | MessageItem | None = None
        self._calls: dict[int, CallItem] = {}
        self._unnamed: dict[int, list[CallPart]] = {}
        self._finish_reason = ""
        self._counts: Counts | None = None
        self._begun = False
        self._number = 0
        self._original = OriginalResponse(request, dict(self._response))
        self._is_original = False
        self._has_ended = False
        self._done: list[Any] = []  # the items of an original that are complete

    def whole(self, completion: Mapping[str, Any]) -> dict[str, Any]:
        """The response that a whole chat completion is."""
        if ORIGINAL in completion:
            return self._original.response(completion[ORIGINAL])
        for _ in (*self._added(completion), *self._ended()):
            pass
        return self._response

    def add(self, chunk: Mapping[str, Any]) -> bytes:
        """The events of a chunk."""
        return self._bytes(self._added(chunk))

    def end(self) -> bytes:
        """The events at the end of the answer."""
        return self._bytes(self._ended())

    def fail(self, error: Mapping[str, Any]) -> bytes:
        """The events of an answer that fails.

        Parameters
        ----------
        error: the error, as chat completions report it.
        """
        return self._bytes(self._failed(error))

    def _bytes(self, events: Iterator[Event]) -> bytes:
        # Each is written before the next one is made, because the items in them grow.
        return event_bytes(self._numbered(event) for event in events)

    def _numbered(self, event: Event) -> Event:
        self._number += 1
        return {**event, "sequence_number": self._number - 1}

    def _begin(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        if not self._begun:
            self._begun = True
            for name in ("model", "service_tier"):
                if isinstance(given := chunk.get(name), str):
                    self._response[name] = given
            for kind in ("created", "in_progress"):
                yield {"type": f"response.{kind}", "response": dict(self._response)}

    def _added(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        if ORIGINAL in chunk:
            yield from self._passed_on(chunk[ORIGINAL])
        delta = self._reader.read(chunk)
        if self._is_original:
            self._counts = read_counts(chunk) or self._counts
            return
        yield from self._begin(chunk)
        yield from self._add(delta)
        self._finish_reason = delta.finish_reason or self._finish_reason
        self._counts = read_counts(chunk) or self._counts

    def _passed_on(self, original: Any) -> Iterator[Event]:
        self._is_original = self._begun = True
        for event in self._original.events(original):
            if event["type"] == "response.output_item.done":
                self._done.append(event["item"])
            self._has_ended |= event["type"] in ("response.completed", "response.incomplete")
            yield event

    def _add(self, delta: Delta) -> Iterator[Event]:
        if delta.reasoning:
            reasoning = yield from self._last(ReasoningItem, "rs")
            yield from reasoning.add(delta.reasoning)
        for written in delta.reasoning_items:
            if isinstance(content := written.get("encrypted_content"), str):
                reasoning = yield from self._last(ReasoningItem, "rs")
                reasoning.encrypted(content)
                yield from reasoning.close()
        if delta.text or delta.refusal or delta.annotations:
            message = yield from self._last(MessageItem, "msg")
            yield from message.add(delta)
        for part in delta.calls:
            yield from self._call(part)

    def _last(self, kind: type[T], prefix: str) -> Generator[Event, None, T]:
        """The item of a kind that is being written, which ends the ones before except for tool calls."""
        last = self._said
        if not isinstance(last, kind) or not last.open:
            yield from self._end_said()
            self._said = last = kind(f"{prefix}_{self._token}{len(self._items)}", len(self._items))
            self._items.append(last)
            yield from last.opened()
        return last

    def _end_said(self) -> Iterator[Event]:
        if self._said is not None:
            yield from self._said.close()

    def _call(self, part: CallPart) -> Iterator[Event]:
        if (call := self._calls.get(part.number)) is not None:
            yield from call.add(part.arguments)
            return
        self._unnamed.setdefault(part.number, []).append(part)
        if part.name:
            yield from self._open_call(part.number, part)

    def _open_call(self, number: int, named: CallPart) -> Iterator[Event]:
        parts = self._unnamed.pop(number)
        index = len(self._items)
        call_id = next((part.id for part in parts if part.id), f"call_{self._token}{index}")
        call = CallItem(f"{'ctc' if named.custom else 'fc'}_{self._token}{index}", index, named, call_id)
        yield from self._end_said()
        self._calls[number] = call
        self._items.append(call)
        yield from call.opened()
        yield from call.add("".join(part.arguments for part in parts))

    def _ended(self) -> Iterator[Event]:
        if self._has_ended:
            return
        yield from self._begin({})
        for number, parts in sorted(self._unnamed.items()):
            yield from self._open_call(number, parts[0])  # a call of nothing: the caller sees it as it is
        if not self._items:
            empty = yield from self._last(MessageItem, "msg")
            yield from empty.begin("text")
        reason = incomplete_reason(self._finish_reason)
        status = "incomplete" if reason else "completed"
        for item in self._items:
            yield from item.close(status)
        self._response |= {"status": status, "output": [item.item() for item in self._items]}
        self._response["usage"] = usage(self._counts)
        if reason:
            self._response["incomplete_details"] = {"reason": reason}
        yield {"type": f"response.{status}", "response": dict(self._response)}

    def _failed(self, error: Mapping[str, Any]) -> Iterator[Event]:
        yield from self._begin({})
        event = error_event(error)
        yield event
        output = [*self._done, *(item.item() for item in self._items)]
        self._response |= {"status": "failed", "output": output}
        self._response |= {"usage": usage(self._counts), "error": {"code": "server_error", "message": event["message"]}}
        yield {"type": "response.failed", "response": dict(self._response)}
