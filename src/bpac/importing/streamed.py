"""Answers that were logged as they were streamed: as a list of chunks, or as the text of server-sent events."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bpac.answer import Answer
from bpac.wire.json import to_json
from bpac.wire.sse import SseReader
from bpac.wire.stream import Transcript, before_done, read_events

# An answer may begin with the word, too: events have JSON, or their name in a line before.
_EVENTS = re.compile(r"\s*(?:event:[^\n]*\n\s*)?data:\s*[\[{]")


def is_streamed(value: Any) -> bool:
    """Whether a response was logged as a stream of chat completion chunks.

    >>> is_streamed([{"choices": [{"delta": {"content": "4"}}]}]), is_streamed('data: {"choices": []}')
    (True, True)
    >>> is_streamed("4"), is_streamed("data: 4")
    (False, False)
    """
    if isinstance(value, str):
        return _EVENTS.match(value) is not None
    return isinstance(value, list) and bool(value) and all(_is_chunk(one) for one in value)


def streamed_answer(value: Any) -> Answer:
    """The answer that the chunks add up to; ``AnswerError`` if they are none. A stream without an end was cut off.

    >>> streamed_answer([{"choices": [{"delta": {"content": "4"}}]}]).finished
    False
    """
    if isinstance(value, str):
        data, _ = before_done(SseReader().feed(value.lstrip().encode() + b"\n\n"))
    else:
        data = [to_json(chunk) for chunk in value]
    events = read_events(data)
    transcript = Transcript()
    transcript.add(events)
    answer = transcript.answer()
    return answer if any(event.finishes for event in events) else replace(answer, finish_reason="length")


def _is_chunk(value: Any) -> bool:
    choices = value.get("choices") if isinstance(value, Mapping) else None
    return isinstance(choices, list) and all(isinstance(one, Mapping) and "delta" in one for one in choices)
