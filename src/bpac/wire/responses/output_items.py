"""The output items of a response in the making, each with the events that announce, fill and end it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from bpac.wire.chat_deltas import CallPart, Delta

Event = dict[str, Any]


class OutputItem(ABC):
    """An item of a response.

    Parameters
    ----------
    item_id: its id.
    index: its place in the output.

    Attributes
    ----------
    open: whether more of it may come.
    """

    def __init__(self, item_id: str, index: int) -> None:
        self.id = item_id
        self.index = index
        self.open = True
        self._status = "in_progress"

    @abstractmethod
    def item(self) -> dict[str, Any]:
        """The item as it is now."""

    @abstractmethod
    def ended(self) -> Iterator[Event]:
        """The events that end its contents."""

    def opened(self) -> Iterator[Event]:
        """The event that announces it."""
        yield {"type": "response.output_item.added", "output_index": self.index, "item": self.item()}

    def close(self, status: str = "completed") -> Iterator[Event]:
        """The events that end it, once."""
        if self.open:
            self.open, self._status = False, status
            yield from self.ended()
            yield {"type": "response.output_item.done", "output_index": self.index, "item": self.item()}

    def _event(self, kind: str, **more: Any) -> Event:
        return {"type": f"response.{kind}", "item_id": self.id, "output_index": self.index, **more}


class ReasoningItem(OutputItem):
    """Reasoning that the model shows: the summary of an item that is called so."""

    def __init__(self, item_id: str, index: int) -> None:
        super().__init__(item_id, index)
        self._texts: list[str] = []
        self._encrypted: str | None = None

    def item(self) -> dict[str, Any]:
        """The item as it is now."""
        item = {"id": self.id, "type": "reasoning", "summary": [self._part()] if self._texts else []}
        return item | ({} if self._encrypted is None else {"encrypted_content": self._encrypted})

    def add(self, text: str) -> Iterator[Event]:
        """Add reasoning."""
        if not self._texts:
            yield self._event("reasoning_summary_part.added", summary_index=0, part=self._part())
        self._texts.append(text)
        yield self._event("reasoning_summary_text.delta", summary_index=0, delta=text)

    def encrypted(self, content: str) -> None:
        """Add what only the server that wrote it can read."""
        self._encrypted = content

    def ended(self) -> Iterator[Event]:
        """The events that end its contents."""
        if self._texts:
            yield self._event("reasoning_summary_text.done", summary_index=0, text="".join(self._texts))
            yield self._event("reasoning_summary_part.done", summary_index=0, part=self._part())

    def _part(self) -> dict[str, Any]:
        return {"type": "summary_text", "text": "".join(self._texts)}


class _Part:
    """A part of a message.

    Parameters
    ----------
    field: ``text`` or ``refusal``, which holds what is said.
    """

    def __init__(self, field: str) -> None:
        self.field = field
        self.said: list[str] = []
        self.annotations: list[Mapping[str, Any]] = []
        self.logprobs: list[Mapping[str, Any]] = []

    def part(self) -> dict[str, Any]:
        """The part as it is now."""
        said = "".join(self.said)
        if self.field == "refusal":
            return {"type": "refusal", "refusal": said}
        return {"type": "output_text", "text": said, "annotations": self.annotations, "logprobs": self.logprobs}


class MessageItem(OutputItem):
    """What the model says: texts, and texts in which it refuses to answer."""

    def __init__(self, item_id: str, index: int) -> None:
        super().__init__(item_id, index)
        self._parts: list[_Part] = []

    def item(self) -> dict[str, Any]:
        """The item as it is now."""
        parts = [part.part() for part in self._parts]
        return {"id": self.id, "type": "message", "role": "assistant", "status": self._status, "content": parts}

    def add(self, delta: Delta) -> Iterator[Event]:
        """Add a text, with its log-probabilities and citations."""
        if delta.text or delta.annotations:
            yield from self.begin("text")
            part, logprobs = self._parts[-1], list(delta.logprobs)
            part.said.append(delta.text)
            part.logprobs += logprobs
            yield self._in_part("output_text.delta", delta=delta.text, logprobs=logprobs)
            for annotation in delta.annotations:
                part.annotations.append(annotation)
                number = len(part.annotations) - 1
                yield self._in_part("output_text.annotation.added", annotation_index=number, annotation=annotation)
        if delta.refusal:
            yield from self.begin("refusal")
            self._parts[-1].said.append(delta.refusal)
            yield self._in_part("refusal.delta", delta=delta.refusal)

    def begin(self, field: str) -> Iterator[Event]:
        """Begin a text or a refusal, unless that is what is being written."""
        if not self._parts or self._parts[-1].field != field:
            yield from self.ended()
            self._parts.append(_Part(field))
            yield self._in_part("content_part.added", part=self._parts[-1].part())

    def ended(self) -> Iterator[Event]:
        """The events that end its contents."""
        if self._parts:
            part = self._parts[-1].part()
            said = {name: value for name, value in part.items() if name in ("text", "refusal", "logprobs")}
            yield self._in_part("output_text.done" if "text" in said else "refusal.done", **said)
            yield self._in_part("content_part.done", part=part)

    def _in_part(self, kind: str, **more: Any) -> Event:
        return self._event(kind, content_index=len(self._parts) - 1, **more)


class CallItem(OutputItem):
    """A call of a function or of a custom tool.

    Parameters
    ----------
    item_id, index: as of any item.
    part: the part of the call that has its name.
    call_id: the id of the call.
    """

    def __init__(self, item_id: str, index: int, part: CallPart, call_id: str) -> None:
        super().__init__(item_id, index)
        self._named = {"call_id": call_id, "name": part.name}
        self._type, self._field = ("custom_tool_call", "input") if part.custom else ("function_call", "arguments")
        self._kind = "custom_tool_call_input" if part.custom else "function_call_arguments"
        self._said: list[str] = []

    def item(self) -> dict[str, Any]:
        """The item as it is now."""
        return {
            "id": self.id,
            "type": self._type,
            "status": self._status,
            **self._named,
            self._field: "".join(self._said),
        }

    def add(self, text: str) -> Iterator[Event]:
        """Add to its arguments."""
        if text:
            self._said.append(text)
            yield self._event(f"{self._kind}.delta", delta=text)

    def ended(self) -> Iterator[Event]:
        """The events that end its contents."""
        yield self._event(f"{self._kind}.done", **{self._field: "".join(self._said)})
