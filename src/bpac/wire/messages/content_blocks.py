"""The content blocks of a message in the making, each with the events that begin, fill and end it."""

from collections.abc import Iterator
from typing import Any

from bpac.wire.json import from_strict_json

Event = dict[str, Any]

# The field of a tool's input with arguments that are not a JSON object: a message has no other place for them.
UNPARSED = "_unparsed_arguments"


class Block:
    """A content block.

    Parameters
    ----------
    index: its place in the content.
    empty: the block as it begins.
    field: the field that is filled piece by piece.

    Attributes
    ----------
    said: the pieces so far.
    """

    def __init__(self, index: int, empty: dict[str, Any], field: str) -> None:
        self.index = index
        self.said: list[str] = []
        self._block = empty
        self._field = field

    @property
    def text(self) -> str:
        """What is in its field so far."""
        return "".join(self.said)

    def block(self) -> dict[str, Any]:
        """The block as it is now."""
        return {**self._block, self._field: self.text}

    def opened(self) -> Iterator[Event]:
        """The event that begins it."""
        yield {"type": "content_block_start", "index": self.index, "content_block": dict(self._block)}

    def add(self, text: str) -> Iterator[Event]:
        """Add to its field."""
        if text:
            self.said.append(text)
            yield self._delta(f"{self._field}_delta", self._field, text)

    def closed(self) -> Iterator[Event]:
        """The event that ends it."""
        yield {"type": "content_block_stop", "index": self.index}

    def _delta(self, kind: str, field: str, value: str) -> Event:
        return {"type": "content_block_delta", "index": self.index, "delta": {"type": kind, field: value}}


class TextBlock(Block):
    """A text."""

    def __init__(self, index: int) -> None:
        super().__init__(index, {"type": "text", "text": ""}, "text")


class ThinkingBlock(Block):
    """Thinking, with the signature of the server that wrote it; an empty one if the server signs nothing."""

    def __init__(self, index: int) -> None:
        super().__init__(index, {"type": "thinking", "thinking": "", "signature": ""}, "thinking")

    def sign(self, signature: str) -> Iterator[Event]:
        """Add the signature."""
        self._block["signature"] = signature
        yield self._delta("signature_delta", "signature", signature)


class RedactedBlock(Block):
    """Thinking that only the server that wrote it can read."""

    def __init__(self, index: int, data: str) -> None:
        super().__init__(index, {"type": "redacted_thinking", "data": data}, "data")
        self.said.append(data)


class ToolUseBlock(Block):
    """A tool call.

    Parameters
    ----------
    index: its place in the content.
    call_id, name: the id of the call and the name of the tool.
    """

    def __init__(self, index: int, call_id: str, name: str) -> None:
        super().__init__(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}}, "input")
        self._is_complete = False
        self._read_pieces = 0

    def block(self) -> dict[str, Any]:
        """The block as it is now."""
        text = self.text
        given = read_object(text) if text.strip() else {}
        return {**self._block, "input": {UNPARSED: text} if given is None else given}

    def opened(self) -> Iterator[Event]:
        """The events that begin it; the second one shows clients that the input comes in pieces."""
        yield from super().opened()
        yield self._delta("input_json_delta", "partial_json", "")

    def add(self, text: str) -> Iterator[Event]:
        """Add to the JSON text of its input."""
        if text:
            self.said.append(text)
            yield self._delta("input_json_delta", "partial_json", text)

    @property
    def complete(self) -> bool:
        """Whether its input is a whole JSON object, after which nothing more can follow."""
        # Read again only after a piece that may have ended it: long inputs come in many pieces.
        if self._read_pieces != len(self.said) and self.said and self.said[-1].rstrip().endswith("}"):
            self._read_pieces = len(self.said)
            self._is_complete = read_object(self.text) is not None
        return self._is_complete


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a text; none if it is none."""
    try:
        value = from_strict_json(text.encode())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
