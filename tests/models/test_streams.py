"""Streams: from bytes to pieces to the same answer as in one."""

import json
import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.answer import Answer, Token
from bpac.errors import AnswerError
from bpac.testing import Reply, Request
from bpac.wire import streams
from bpac.wire.streams import Events, Gathering, Piece, gather

CALLS = (
    {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
    {"id": "2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
)
ASKED = Request(1, {"logprobs": True, "top_logprobs": 2, "stream_options": {"include_usage": True}})

replies = st.builds(
    Reply,
    text=st.text(min_size=1, max_size=30),  # without a token there is no piece that could list none
    reasoning=st.sampled_from(["", "hm, well"]),
    tool_calls=st.sampled_from([(), CALLS[:1], CALLS]),
    finish_reason=st.sampled_from(["stop", "length"]),
    logprobs=st.booleans(),
)


@given(replies)
def test_a_gathered_stream_is_the_whole_answer(reply: Reply) -> None:
    """Text, thoughts, tokens, calls and counts are those of the same reply in one."""
    pieces = [Piece(json.loads(json.dumps(body))) for body in reply.chunks(ASKED)]
    assert gather(pieces) == Answer.from_openai(reply.body(ASKED))


@given(replies, st.lists(st.integers(1, 40), min_size=1, max_size=5), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_events_come_out_whole_however_the_bytes_come(reply: Reply, sizes: list[int], newline: bytes) -> None:
    """Cut anywhere, even within a letter, and with comments between."""
    bodies = [json.dumps(body, ensure_ascii=False) for body in reply.chunks(ASKED)]
    data = b"".join(b"data: " + body.encode() + newline * 2 + b": ping" + newline * 2 for body in bodies)
    events, found, start = Events(), [], 0
    while start < len(data):
        size = sizes[start % len(sizes)]
        found += events.feed(data[start : start + size])
        start += size
    assert found == bodies


def test_other_fields_and_longer_events() -> None:
    """Data over several lines is one event; other fields and a missing space do not matter."""
    data = b"event: message\nid: 7\ndata:{\ndata:}\n\nretry: 9\n\n"
    assert Events().feed(data) == ["{\n}"]


def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are no events are not kept for ever."""
    monkeypatch.setattr(streams, "LONGEST_LINE", 100)
    with pytest.raises(AnswerError, match="line without end"):
        Events().feed(b"x" * 101)
    events = Events()
    for _ in range(10):
        events.feed(b"x" * 10)
    with pytest.raises(AnswerError, match="line without end"):
        events.feed(b"x")


@pytest.mark.parametrize("line", [b"data: x\n", b"data:\n", b"data: x\r"])
def test_an_event_without_end(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that end do not help if their event never does; what is not kept, and what has ended, may go on."""
    monkeypatch.setattr(streams, "LONGEST_LINE", 100)
    events = Events()
    assert [event for _ in range(200) for event in events.feed(b": ping\ndata: x\n\n")] == 200 * ["x"]
    with pytest.raises(AnswerError, match="event without end"):
        [events.feed(line) for _ in range(200)]


def test_every_end_of_a_line() -> None:
    """Any of the three that the standard knows, mixed, and cut between the two bytes of one."""
    assert Events().feed(b"data: a\r\rdata: b\n\r\ndata: c\rdata: d\r\n\r\r\n") == ["a", "b", "c\nd"]
    events = Events()
    found = [events.feed(data) for data in (b"data: a\r", b"\n", b"\r", b"\ndata: b\r", b"", b"\ndata: c\r", b"\r")]
    assert found == [[], [], ["a"], [], [], [], ["b\nc"]]


def _seconds(parts: int) -> float:
    """The least processor time that an event in so many parts takes."""

    def once() -> float:
        events, part = Events(), b"x" * 100
        start = time.process_time()
        events.feed(b"data: ")
        for _ in range(parts):
            events.feed(part)
        assert events.feed(b"\n\n") == ["x" * 100 * parts]
        return time.process_time() - start

    return min(once() for _ in range(3))


def test_an_event_in_many_parts() -> None:
    """It takes time in proportion to its parts, not to their square."""
    assert _seconds(8000) / _seconds(1000) < 24.0  # about 8, and 64 were it the square


@pytest.mark.parametrize(
    "event", ["", "hello", "[1]", "42", "null", '{"choices": 1}', '{"choices": [1]}', '{"choices": [{"delta": 1}]}']
)
def test_what_is_no_piece(event: str) -> None:
    """An ``AnswerError`` says so."""
    with pytest.raises(AnswerError, match="not a piece"):
        Piece.parse(event)


def test_an_error_within_a_stream() -> None:
    """Servers report what goes wrong halfway as an event."""
    with pytest.raises(AnswerError, match="out of memory"):
        Piece.parse('{"error": {"message": "out of memory"}}')


NO_INDICES: list[Any] = ["1", "", True, False, 0.5, math.inf, math.nan, [], {}]


@pytest.mark.parametrize(
    "delta",
    [
        {"content": 1}, {"tool_calls": [1]}, {"tool_calls": 1}, {"tool_calls": [{"function": {"name": 1}}]},
        {"tool_calls": [{"function": [1]}]},
        *({"tool_calls": [{"index": index}]} for index in NO_INDICES),
    ],
)  # fmt: skip
def test_a_piece_that_does_not_fit(delta: dict[str, Any]) -> None:
    """Parts of the wrong kind are an ``AnswerError``."""
    with pytest.raises(AnswerError, match="not a piece"):
        Gathering().add(Piece({"choices": [{"delta": delta}]}))


def test_calls_come_in_the_order_of_their_numbers() -> None:
    """A number that is missing is the first; a piece whose number is none leaves what was gathered usable."""
    gathering = Gathering()
    parts: list[tuple[float | None, str]] = [(1, "b"), (0.0, "a"), (None, "a"), (1, "b")]
    for index, name in parts:
        gathering.add(Piece({"choices": [{"delta": {"tool_calls": [{"index": index, "function": {"name": name}}]}}]}))
    with pytest.raises(AnswerError, match="not a piece"):
        gathering.add(Piece({"choices": [{"delta": {"tool_calls": [{"index": "2", "function": {"name": "c"}}]}}]}))
    assert [call["function"]["name"] for call in gathering.answer().tool_calls] == ["aa", "bb"]


@pytest.mark.parametrize("count", [-1, 2**64, 1e30, math.nan, True, "7", []])
def test_odd_counts(count: object) -> None:
    """They are taken for not said, and the tokens are counted."""
    listed = {"content": [{"token": "4", "logprob": -1.0}]}
    pieces = [
        Piece({"choices": [{"delta": {"content": "4"}, "logprobs": listed}], "usage": None}),
        Piece({"choices": [], "usage": {"completion_tokens": count, "prompt_tokens": count}}),
    ]
    assert gather(pieces) == Answer("4", tokens=(Token("4", -1.0),), completion_tokens=1)


def test_a_letter_in_two_pieces() -> None:
    """Servers that count in UTF-16 cut some letters in halves."""
    events = ['{"choices": [{"delta": {"content": "\\ud83d"}}]}', '{"choices": [{"delta": {"content": "\\ude00"}}]}']
    assert gather(map(Piece.parse, events)).text == "😀"


class Watched(list[Any]):
    """A list that counts how often all of it is read."""

    readings = 0

    def __iter__(self) -> Iterator[Any]:
        self.readings += 1
        return super().__iter__()


def test_pieces_are_added_in_place() -> None:
    """What has come is not copied for every piece that comes; what was handed out does not grow behind one's back."""
    gathering, watched = Gathering(), Watched()
    gathering._logprobs = watched
    token = {"token": "4", "logprob": -0.1}
    for _ in range(100):
        gathering.add(Piece({"choices": [{"delta": {"content": "4"}, "logprobs": {"content": [token]}}]}))
    assert watched.readings == 0
    assert len(watched) == 100
    handed_out = gathering.body()["choices"][0]["logprobs"]["content"]
    gathering.add(Piece({"choices": [{"delta": {}, "logprobs": {"content": [token]}}]}))
    assert len(handed_out) == 100
    assert len(gathering.answer().tokens or ()) == 101


def test_only_the_first_choice_counts() -> None:
    """Pieces of further choices are left out; pieces without a choice bring the counts."""
    pieces = [
        Piece({"id": "x", "usage": None, "choices": [{"index": 1, "delta": {"content": "no"}}]}),
        Piece({"choices": [{"index": 0, "delta": {"content": "yes"}, "logprobs": {"content": []}}]}),
        Piece({"choices": [], "usage": {"completion_tokens": 5}}),
    ]
    assert gather(pieces) == Answer("yes", tokens=(), completion_tokens=5)
    assert [piece.text for piece in pieces] == ["", "yes", ""]


def test_the_answer_so_far() -> None:
    """At any time there is an answer of what has come, so that it can be scored early."""
    gathering = Gathering()
    assert gathering.answer().text == ""
    for body, text in zip(Reply("one two").chunks(ASKED), ["", "one", "one two", "one two"], strict=False):
        gathering.add(Piece(body))
        assert gathering.answer().text == text
    logprob = math.log(0.9)
    assert gathering.answer().tokens == tuple(Token(word, logprob, (logprob,), (word,)) for word in ("one", " two"))
    assert gathering.body()["id"] == "scripted-1"
    assert gathering.finish_reason == "stop"
