"""Reading the responses of model servers: whole answers and streams, both of bounded length."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress

from bpac.errors import AnswerError
from bpac.models.api import Translation
from bpac.models.connections import FAILURES, ResponseBody
from bpac.models.retrying import Failed
from bpac.wire.completions import Completion, read_completion
from bpac.wire.json import more_values_than
from bpac.wire.sse import SseReader
from bpac.wire.stream import StreamEvent, before_done, read_events

# Seconds that a server may take to close a stream after the event that ends it.
CLOSING = 0.1
# How many events at the end of a stream are searched for a finish reason. Counts of tokens may follow it, and the ends
# of other choices.
LAST_EVENTS = 256


class TooLong(AnswerError):
    """An answer is longer than allowed."""


class TooSlow(AnswerError):
    """A stream goes on for longer than allowed."""


class StreamCutOff(Failed):
    """A stream ended before its answer did."""


def read_answer(
    data: bytes, max_values: int, translation: Translation | None = None, *, logprobs_only: bool = False
) -> Completion:
    """The chat completion in a body; ``TooLong`` or another ``AnswerError`` if it cannot be used.

    Parameters
    ----------
    data: the body.
    max_values: how many JSON values it may have: they take more memory than their text.
    translation: makes chat completions of what the server sends (default: it sends them).
    logprobs_only: whether the log-probability is all that is needed of each token (default: no).
    """
    if more_values_than(data, max_values):
        raise TooLong(f"the answer has more than {max_values} values")
    if translation is not None:
        data = translation.whole(data)
    return read_completion(data, logprobs_only=logprobs_only)


async def stream_events(
    content: ResponseBody,
    max_bytes: int,
    max_values: int,
    deadline: float = math.inf,
    translation: Translation | None = None,
) -> AsyncGenerator[list[StreamEvent], None]:
    """The events of a streamed answer, in lists of those that arrived together.

    It ends with ``TooLong``, ``TooSlow``, ``StreamCutOff`` or another ``AnswerError`` if there is no complete answer.

    Parameters
    ----------
    content: the body of the response.
    max_bytes: how many bytes the stream may have.
    max_values: how many JSON values an event may have.
    deadline: the time of ``time.monotonic`` after which the stream is given up (default: none).
    translation: makes chunks of chat completions of what the server sends (default: it sends them).
    """
    reader, size = SseReader(), 0
    split = before_done if translation is None else translation.stream().feed
    unchecked = min(max_bytes, max_values)  # so few bytes are within both limits
    last_events: deque[StreamEvent] = deque(maxlen=LAST_EVENTS)  # not all: a long stream would be kept while it lasts
    while data := await content.readany():
        if time.monotonic() > deadline:
            raise TooSlow("the stream does not end")
        size += len(data)
        found = reader.feed(data)
        if size > unchecked:
            _check_length(found, size, max_bytes, max_values)
        found, done = split(found)
        if events := read_events(found):
            last_events.extend(events)
            yield events
        if done:
            await _discard_rest(content)
            return
    # Some servers leave out the event that ends a stream. Then an event must have given the finish reason.
    if not any(event.finishes for event in last_events):
        raise StreamCutOff("the stream was cut off")


def _check_length(found: list[bytes], size: int, max_bytes: int, max_values: int) -> None:
    if size > max_bytes:
        raise TooLong(f"the stream is longer than {max_bytes} bytes")
    if any(more_values_than(data, max_values) for data in found):
        raise TooLong(f"an event has more than {max_values} values")


async def _discard_rest(content: ResponseBody) -> None:
    """Read to the end, so that the connection can be used again; a server that keeps the stream open is not awaited."""
    with suppress(*FAILURES):
        async with asyncio.timeout(CLOSING):
            await content.read()


async def read_whole(content: ResponseBody, max_bytes: int) -> bytes:
    """All of a body; ``TooLong`` if it is longer than allowed, also once it is decompressed."""
    data = await content.readany()
    if content.at_eof() and len(data) <= max_bytes:
        return data
    parts, size = [data], len(data)
    while size <= max_bytes and (data := await content.readany()):
        parts.append(data)
        size += len(data)
    if size > max_bytes:
        raise TooLong(f"the answer is longer than {max_bytes} bytes")
    return b"".join(parts)


async def read_start(content: ResponseBody, max_bytes: int) -> bytes:
    """The first bytes of a body, or all of it if it has no more."""
    data = bytearray()
    while len(data) < max_bytes and (more := await content.read(max_bytes - len(data))):
        data += more
    return bytes(data)
