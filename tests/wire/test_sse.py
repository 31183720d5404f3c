"""Server-sent events are found in bytes that arrive in parts of any size."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.errors import AnswerError
from bpac.testing import Reply, Request
from bpac.wire import sse
from bpac.wire.rendering import event_stream
from bpac.wire.sse import LONGEST_EVENT, SseReader
from bpac.wire.stream import StreamEvent

PLAIN = 'data: {"a": "é"}\n\ndata: {"b": 2}\n\ndata: [DONE]\n\n'
EVENTS = ['{"a": "é"}', '{"b": 2}', "[DONE]"]
STREAMS = {
    "plain": (PLAIN, EVENTS),
    "comments": (": waits\n\n" + PLAIN + ": still\n\n" + PLAIN, 2 * EVENTS),
    "other line ends": (PLAIN.replace("\n", "\r\n"), EVENTS),
    "other line ends later": (PLAIN + PLAIN.replace("\n", "\r\n"), 2 * EVENTS),
    "a third kind of line ends": (PLAIN.replace("\n", "\r"), EVENTS),
    "every kind of line ends": (
        PLAIN + PLAIN.replace("\n", "\r") + PLAIN.replace("\n", "\r\n") + PLAIN,
        4 * EVENTS,
    ),
    "line ends of two kinds": (PLAIN.replace("\n\n", "\r\n\n"), EVENTS),
    "a line end within data": ('data: {"a":\r1}\n\n' + PLAIN, ['{"a":', *EVENTS]),
    "no space": (PLAIN.replace("data: ", "data:"), EVENTS),
    "names and numbers": (PLAIN.replace("data:", "event: chunk\nid: 7\ndata:"), EVENTS),
    "two lines of data": ('data: {"a":\ndata: 1}\n\n' + PLAIN, ['{"a":\n1}', *EVENTS]),
    "other fields only": ("retry: 9\n\n" + PLAIN, EVENTS),
    "more empty lines": (PLAIN.replace("\n\n", "\n\n\n"), EVENTS),
    "no event": ("<html>\n\nnothing\n\n", []),
}


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("name", STREAMS)
def test_events_are_found_whatever_the_size_of_the_parts(name: str, size: int) -> None:
    """Also where a server writes what few servers write: from there on, the stream is read line by line."""
    text, expected = STREAMS[name]
    data, reader = text.encode(), SseReader()
    found = [event for start in range(0, len(data), size) for event in reader.feed(data[start : start + size])]
    assert [event.decode() for event in found] == expected


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("name", STREAMS)
def test_reading_by_events_and_by_lines_finds_the_same_at_the_same_time(name: str, size: int) -> None:
    """A comment at the start makes the reader read lines; each event comes with the same part all the same."""
    data = STREAMS[name][0].encode()
    by_events, by_lines = SseReader(), SseReader()
    assert by_lines.feed(b": comment\n\n") == []
    for start in range(0, len(data), size):
        part = data[start : start + size]
        assert by_events.feed(part) == by_lines.feed(part)


@given(
    st.text(min_size=1, max_size=30),
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.sampled_from([b"", b": ping"]),
)
def test_events_come_out_whole(text: str, sizes: list[int], newline: bytes, comment: bytes) -> None:
    """Cut anywhere, even within a character, with and without comments between them."""
    asked = Request(1, {"logprobs": True, "stream_options": {"include_usage": True}})
    bodies = [json.dumps(body, ensure_ascii=False).encode() for body in Reply(text).chunks(asked)]
    between = comment + newline * 2 if comment else b""
    data = b"".join(b"data: " + body + newline * 2 + between for body in bodies)
    reader, found, start = SseReader(), [], 0
    while start < len(data):
        size = sizes[start % len(sizes)]
        found += reader.feed(data[start : start + size])
        start += size
    assert found == bodies


def test_a_line_end_may_be_cut_between_its_two_bytes() -> None:
    """The first byte ends the line at once, and the second does not end another one."""
    assert SseReader().feed(b"data: a\r\rdata: b\n\r\ndata: c\rdata: d\r\n\r\r\n") == [b"a", b"b", b"c\nd"]
    reader = SseReader()
    found = [reader.feed(data) for data in (b"data: a\r", b"\n", b"\r", b"\ndata: b\r", b"", b"\ndata: c\r", b"\r")]
    assert found == [[], [], [b"a"], [], [], [], [b"b\nc"]]


@pytest.mark.parametrize("start", [b"", b"data: ", b": ping\n\n", b": ping\n\ndata: "])
def test_a_line_without_end_is_refused(start: bytes) -> None:
    """Before it fills the memory."""
    reader = SseReader()
    reader.feed(start)
    with pytest.raises(AnswerError, match="a line without end"):
        reader.feed(b"x" * (LONGEST_EVENT + 1))


def test_a_line_without_end_is_refused_when_it_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part is short, and their sum counts."""
    monkeypatch.setattr(sse, "LONGEST_EVENT", 100)
    reader = SseReader()
    for _ in range(10):
        reader.feed(b"x" * 10)
    with pytest.raises(AnswerError, match="a line without end"):
        reader.feed(b"x")


@pytest.mark.parametrize("line", [b"data: x\n", b"data:\n", b"data: x\r"])
def test_an_event_without_end_is_refused(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although each of its lines ends. Comments and events that end may go on for as long as they like."""
    monkeypatch.setattr(sse, "LONGEST_EVENT", 100)
    reader = SseReader()
    assert [event for _ in range(200) for event in reader.feed(b": ping\ndata: x\n\n")] == 200 * [b"x"]
    with pytest.raises(AnswerError, match="an event without end"):
        [reader.feed(line) for _ in range(200)]


@pytest.mark.parametrize("size", [1, 10, 1000])
@pytest.mark.parametrize("begun", [b"data: ", b"data: x\n", b"data: x\r", b": ping\n\ndata: x\n"])
def test_what_never_ends_is_refused_however_it_is_read(
    size: int, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By events or by lines, in parts of any size."""
    monkeypatch.setattr(sse, "LONGEST_EVENT", 100)
    reader = SseReader()
    assert [text for _ in range(200) for text in reader.feed(b"data: 1\n\n")] == 200 * [b"1"]
    reader.feed(begun)
    data = 200 * begun[-8:]
    with pytest.raises(AnswerError, match="without end"):
        [reader.feed(data[start : start + size]) for start in range(0, len(data), size)]


def _seconds(start: bytes, part: bytes, parts: int) -> float:
    """The least processor time that an event in so many parts takes."""

    def once() -> float:
        reader = SseReader()
        reader.feed(start)
        started = time.process_time()
        reader.feed(b"data: ")
        for _ in range(parts):
            reader.feed(part)
        assert reader.feed(b"\n\n") == [part.replace(b"\ndata: ", b"\n") * parts]
        return time.process_time() - started

    return min(once() for _ in range(3))


@pytest.mark.parametrize("start", [b"", b": ping\n\n"], ids=["by events", "by lines"])
@pytest.mark.parametrize("part", [b"x" * 100, b"\ndata: " + b"x" * 93], ids=["a line", "lines"])
def test_the_time_for_an_event_is_linear_in_its_parts(start: bytes, part: bytes) -> None:
    """Not in their square."""
    assert _seconds(start, part, 8000) / _seconds(start, part, 1000) < 24.0  # about 8, and 64 were it the square


def test_data_of_several_lines_is_passed_on_as_several_lines() -> None:
    """So that it can be read as it was."""
    event = StreamEvent.read(b'{"choices":\n[]}')
    assert event_stream([event]) == b'data: {"choices":\ndata: []}\n\n'
    assert SseReader().feed(event_stream([event])) == [event.data]
