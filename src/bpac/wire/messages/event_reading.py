"""Streams of the Messages API as chunks of a chat completion.

Blocks are told apart by their index, so they may be interleaved. Events and blocks of unknown types are ignored, as the
API demands of clients, except that unknown blocks are kept in ``other_blocks``. Tokens are counted by the event at the
end only: the first event has the tokens of the prompt, but a stream that is cut off has generated more than it says.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bpac.answer import excerpt
from bpac.errors import AnswerError
from bpac.wire.json import from_json, to_json
from bpac.wire.messages.reply_reading import finish_reason, read_usage, refusal_of, stopped_by, tool_call
from bpac.wire.translating import WRONG_KIND, ChunkWriter, reported


class MessageEvents:
    """Translates the events of one stream.

    Parameters
    ----------
    created: the time, in seconds since 1970.
    """

    def __init__(self, created: int) -> None:
        self._chunks = ChunkWriter(created)
        self._blocks: dict[Any, dict[str, Any]] = {}
        self._calls: dict[Any, int] = {}  # the number of each tool call, by the index of its block
        self._with_arguments: set[Any] = set()
        self._usage: dict[str, Any] = {}
        self._finished = False

    def feed(self, events: list[bytes]) -> tuple[list[bytes], bool]:
        """The chunks that follow from the data of the next events, and whether the stream has ended."""
        chunks: list[bytes] = []
        for data in events:
            event = from_json(data)
            try:
                kind = event["type"]
                if kind == "message_stop":
                    # Without a reason it is not known that the model came to its end.
                    return chunks if self._finished else [*chunks, self._chunks.finish("length")], True
                if (read := _READERS.get(kind)) is not None:
                    chunks += read(self, event)
            except WRONG_KIND as error:
                raise AnswerError(f"not an event of a message ({type(error).__name__}): {excerpt(event)}") from error
        return chunks, False

    def _start(self, event: Mapping[str, Any]) -> list[bytes]:
        message = event["message"]
        self._chunks.head |= {"id": message.get("id") or "", "model": message.get("model")}
        self._count(message.get("usage"))
        return []

    def _block_start(self, event: Mapping[str, Any]) -> list[bytes]:
        index, block = event["index"], dict(event["content_block"])
        self._blocks[index] = block
        self._with_arguments.discard(index)
        if block["type"] == "text":
            return [self._chunks.delta(content=block["text"])] if block.get("text") else []
        if block["type"] == "tool_use":
            self._calls[index] = number = len(self._calls)
            return [self._chunks.delta(tool_calls=[{"index": number, **tool_call(block, "")}])]
        return []

    def _block_delta(self, event: Mapping[str, Any]) -> list[bytes]:
        index, delta = event["index"], event["delta"]
        kind = delta["type"]
        if kind == "text_delta":
            return [self._chunks.delta(content=delta["text"])]
        if kind == "input_json_delta" and index in self._calls:
            if not delta["partial_json"]:
                return []
            self._with_arguments.add(index)
            return [self._arguments(index, delta["partial_json"])]
        block = self._blocks.get(index)
        if block is None or kind not in ("thinking_delta", "signature_delta"):
            return []
        field = kind.removesuffix("_delta")
        block[field] = block.get(field, "") + delta[field]
        if kind == "signature_delta":
            return []
        return [self._chunks.delta(reasoning_content=delta[field])]

    def _block_stop(self, event: Mapping[str, Any]) -> list[bytes]:
        index = event["index"]
        block = self._blocks.pop(index, {"type": "text"})
        kind = block["type"]
        if kind == "tool_use":
            if index in self._with_arguments:
                return []
            # A call without arguments, or a server that sends them all at once.
            return [self._arguments(index, to_json(block.get("input") or {}).decode())]
        if kind in ("thinking", "redacted_thinking"):
            return [self._chunks.delta(thinking_blocks=[block])]
        return [] if kind == "text" else [self._chunks.delta(other_blocks=[block])]

    def _arguments(self, index: Any, text: str) -> bytes:
        part = {"index": self._calls[index], "function": {"arguments": text}}
        return self._chunks.delta(tool_calls=[part])

    def _end(self, event: Mapping[str, Any]) -> list[bytes]:
        self._count(event.get("usage"))
        stopped = event["delta"]
        if stopped.get("stop_reason") is None:
            return []
        self._finished = True
        # Blocks that a server does not end are complete now.
        rest = [chunk for index in [*self._blocks] for chunk in self._block_stop({"index": index})]
        refusal, usage = refusal_of(stopped), read_usage(self._usage)
        return [
            *rest,
            *([self._chunks.delta(refusal=refusal)] if refusal else []),
            self._chunks.finish(finish_reason(stopped), **stopped_by(stopped)),
            *([self._chunks.usage(usage)] if usage else []),
        ]

    def _count(self, usage: Any) -> None:
        if isinstance(usage, Mapping):
            self._usage |= {name: value for name, value in usage.items() if value is not None}

    def _error(self, event: Mapping[str, Any]) -> list[bytes]:
        raise reported(event.get("error"), self._chunks.started)


_READERS: Mapping[Any, Callable[[MessageEvents, Mapping[str, Any]], list[bytes]]] = {
    "message_start": MessageEvents._start,
    "content_block_start": MessageEvents._block_start,
    "content_block_delta": MessageEvents._block_delta,
    "content_block_stop": MessageEvents._block_stop,
    "message_delta": MessageEvents._end,
    "error": MessageEvents._error,
}
