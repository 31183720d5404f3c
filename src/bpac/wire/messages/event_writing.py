"""Chat completions as messages of Anthropic's Messages API, whole and as the events of a stream.

1. A message has content blocks, which are written one after the other: the next one begins when the last has ended.
2. Tool calls of a chat may be written in turns. The first is passed on as it comes, and ends when its input is a whole
   JSON object and something else has begun. What comes of anything else until then waits.
3. Thinking that is signed is always shown, because its server needs it back as it was. All other thinking is shown to
   callers who ask for thinking: the others expect the text in the first block.
4. A whole completion is a stream of one chunk: the message that its events add up to.
5. A message that a server of this API wrote is passed on as it is: chunks then come with their events.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from bpac.errors import AnswerError
from bpac.wire.chat_deltas import CallPart, Counts, Delta, DeltaReader, read_counts
from bpac.wire.messages import original_writing
from bpac.wire.messages.content_blocks import Block, Event, RedactedBlock, TextBlock, ThinkingBlock, ToolUseBlock
from bpac.wire.messages.reply_writing import described, error_body, stop_fields, usage
from bpac.wire.messages.request_reading import shows_thinking
from bpac.wire.named_events import event_bytes
from bpac.wire.originals import ORIGINAL


class MessageWriter:
    """Writes one message.

    Parameters
    ----------
    request: the request that it answers.
    token: letters and digits that make its ids unique.
    request_id: the id of the request, for errors.
    """

    def __init__(self, request: Mapping[str, Any], token: str, request_id: str) -> None:
        self._request = request
        self._request_id = request_id
        self._token = token
        self._shows_thinking = shows_thinking(request)
        self._message = described(request, f"msg_{token}")
        self._reader = DeltaReader()
        self._blocks: list[Block] = []
        self._open: Block | None = None
        self._calls: dict[int, ToolUseBlock] = {}
        self._waiting: dict[int, list[CallPart]] = {}
        self._held: list[tuple[type[TextBlock | ThinkingBlock], str]] = []
        self._refusal: list[str] = []
        self._stop = Delta()
        self._counts: Counts | None = None
        self._begun = False
        self._is_original = False
        self._has_stopped = False

    def whole(self, completion: Mapping[str, Any]) -> dict[str, Any]:
        """The message that a whole chat completion is."""
        if ORIGINAL in completion:
            return original_writing.message(completion[ORIGINAL], self._message)
        for _ in (*self._added(completion), *self._ended()):
            pass
        return self._message | {"content": [block.block() for block in self._blocks]}

    def add(self, chunk: Mapping[str, Any]) -> bytes:
        """The events of a chunk; ``AnswerError`` if it cannot be a part of a message."""
        return event_bytes(self._added(chunk))

    def end(self) -> bytes:
        """The events at the end of the answer."""
        return event_bytes(self._ended())

    def fail(self, error: Mapping[str, Any]) -> bytes:
        """The event of an answer that fails.

        Parameters
        ----------
        error: the error, as chat completions report it.
        """
        return event_bytes([error_body(0, error, self._request_id)])

    def _begin(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        if not self._begun:
            self._begun = True
            if isinstance(model := chunk.get("model"), str):
                self._message["model"] = model
            yield {"type": "message_start", "message": dict(self._message)}

    def _added(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        if ORIGINAL in chunk:
            yield from self._passed_on(chunk[ORIGINAL])
        delta = self._reader.read(chunk)
        if self._is_original:
            self._stop = delta if delta.finish_reason else self._stop
            self._counts = read_counts(chunk) or self._counts
            return
        yield from self._begin(chunk)
        yield from self._think(delta)
        yield from self._say(TextBlock, delta.text + delta.refusal)
        if delta.refusal:
            self._refusal.append(delta.refusal)
        for part in delta.calls:
            yield from self._call(part)
        if delta.finish_reason or delta.stop_sequence:
            self._stop = delta
        self._counts = read_counts(chunk) or self._counts

    def _passed_on(self, original: Any) -> Iterator[Event]:
        self._is_original = True
        for event in original_writing.events(original, self._message):
            stopped = event.get("delta")
            self._has_stopped |= isinstance(stopped, Mapping) and isinstance(stopped.get("stop_reason"), str)
            yield event

    def _think(self, delta: Delta) -> Iterator[Event]:
        if delta.reasoning and self._shows_thinking and not delta.thinking_blocks:
            yield from self._say(ThinkingBlock, delta.reasoning)
        for block in delta.thinking_blocks:
            # The whole block, of which the thinking may have come before.
            thought, signature, data = block.get("thinking"), block.get("signature"), block.get("data")
            if isinstance(signature, str):
                thinking = yield from self._last(ThinkingBlock)
                if isinstance(thought, str) and not thinking.said:
                    yield from thinking.add(thought)
                yield from thinking.sign(signature)
                yield from self._close()
            elif isinstance(data, str):
                yield from self._begin_block(RedactedBlock(len(self._blocks), data))
                yield from self._close()

    def _say(self, kind: type[TextBlock | ThinkingBlock], said: str) -> Iterator[Event]:
        if not said:
            return
        self._held.append((kind, said))
        if not self._calling:
            yield from self._say_held()

    @property
    def _calling(self) -> bool:
        """Whether a tool call is being written, so that everything else has to wait."""
        return isinstance(self._open, ToolUseBlock) and not self._open.complete

    def _say_held(self) -> Iterator[Event]:
        held, self._held = self._held, []
        for kind, said in held:
            block = yield from self._last(kind)
            yield from block.add(said)

    def _last(self, kind: type[Any]) -> Generator[Event, None, Any]:
        """The block that is being written, which is of that kind."""
        if not isinstance(self._open, kind):
            yield from self._close()
            yield from self._begin_block(kind(len(self._blocks)))
        return self._open

    def _begin_block(self, block: Block) -> Iterator[Event]:
        yield from self._close()
        self._blocks.append(block)
        self._open = block
        yield from block.opened()

    def _close(self) -> Iterator[Event]:
        if self._open is not None:
            yield from self._open.closed()
            self._open = None

    def _call(self, part: CallPart) -> Iterator[Event]:
        call = self._calls.get(part.number)
        if call is not None and call is self._open:
            yield from call.add(part.arguments)
        elif call is not None:
            if part.arguments.strip():
                raise AnswerError("a tool call goes on after its end")
        else:
            parts = self._waiting.setdefault(part.number, [])
            parts.append(part)
            if not self._calling and any(one.name for one in parts):
                yield from self._begin_call(part.number)

    def _begin_call(self, number: int) -> Iterator[Event]:
        parts = self._waiting.pop(number)
        call_id = next((part.id for part in parts if part.id), f"toolu_{self._token}{len(self._blocks)}")
        name = next((part.name for part in parts if part.name), "")
        call = ToolUseBlock(len(self._blocks), call_id, name)
        self._calls[number] = call
        yield from self._begin_block(call)
        yield from call.add("".join(part.arguments for part in parts))

    def _ended(self) -> Iterator[Event]:
        if self._has_stopped:
            yield {"type": "message_stop"}
            return
        if not self._is_original:
            yield from self._begin({})
        for number in sorted(self._waiting):
            yield from self._begin_call(number)
        yield from self._say_held()
        yield from self._close()
        stop = stop_fields(
            self._stop.finish_reason, self._stop.stop_sequence, self._request, called=bool(self._calls),
            refusal="".join(self._refusal),
        )  # fmt: skip
        self._message |= {**stop, "usage": usage(self._counts)}
        yield {"type": "message_delta", "delta": stop, "usage": self._message["usage"]}
        yield {"type": "message_stop"}
