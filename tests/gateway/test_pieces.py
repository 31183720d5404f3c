"""The fast reader of streams and the plain one agree."""

import json
import math
import time
from typing import Any

import pytest

from bpac.answer import MOST_TOKENS
from bpac.errors import AnswerError
from bpac.testing import Reply, Request
from bpac.wire import events as pieces
from bpac.wire import streams
from bpac.wire.completions import to_json, without_logprobs
from bpac.wire.events import Event, SseReader, Transcript, read_events, sent
from bpac.wire.streams import LONGEST_LINE, Events, Piece, gather

CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
ASKED: dict[str, Any] = {"messages": [], "logprobs": True, "stream_options": {"include_usage": True}}


@pytest.mark.parametrize(
    "reply",
    [
        Reply("The answer is 42"), Reply("42", reasoning="six times seven"), Reply("<think>six</think>42"),
        Reply("", tool_calls=(CALL, CALL)), Reply("42", logprobs=False), Reply("42", finish_reason="length"),
    ],
)  # fmt: skip
def test_both_read_the_same(reply: Reply) -> None:
    """Text, thoughts, calls, counts and tokens; and which events finish, or only count."""
    bodies = list(reply.chunks(Request(1, ASKED)))
    events = [Event.read(json.dumps(body).encode()) for body in bodies]
    transcript = Transcript()
    transcript.add(events)
    fast, plain = transcript.answer(), gather(map(Piece, bodies))
    for field in ("text", "reasoning", "completion_tokens", "prompt_tokens", "finish_reason", "tool_calls"):
        assert getattr(fast, field) == getattr(plain, field)
    assert [(t.text, t.logprob) for t in fast.tokens or ()] == [(t.text, t.logprob) for t in plain.tokens or ()]
    assert [event.finishes for event in events] == [Piece(body).finish_reason is not None for body in bodies]
    assert [event.only_counts for event in events] == [not body["choices"] for body in bodies]
    assert read_events([event.data for event in events]) == events


@pytest.mark.parametrize(
    "data", ["", "nonsense", "[]", "7", '{"choices": 1}', '{"choices": [1]}', '{"error": {"message": "no"}}',
             '{"choices": [], "error": "no"}', '{"choices": [{"delta": 7}]}', "[" * 9999]
)  # fmt: skip
def test_what_is_no_piece(data: str) -> None:
    """Each is refused, an error in the middle of a stream too."""
    with pytest.raises(AnswerError):
        Event.read(data.encode())
    with pytest.raises(AnswerError):
        read_events([b'{"choices": []}', data.encode()])


@pytest.mark.parametrize(
    "data",
    [
        '{"choices": [{"delta": null, "finish_reason": "stop"}]}', '{"id": 1}', '{"choices": null, "usage": {}}',
        '{"choices": [{"index": null, "delta": {"content": "4"}}]}', '{"choices": [], "error": null}',
    ],
)  # fmt: skip
def test_odd_but_usable(data: str) -> None:
    """What some servers send is read by the patient reader."""
    transcript = Transcript()
    transcript.add([Event.read(data.encode())])
    assert transcript.answer() == gather([Piece.parse(data)])
    assert Event.read(data.encode()).finishes == (Piece.parse(data).finish_reason is not None)
    plain = b'{"choices": []}'
    assert read_events([plain, data.encode()]) == [Event.read(plain), Event.read(data.encode())]


ODD = {
    "not a number": '{"choices": [{"delta": {"content": "4"}, "logprobs": null}], "x": [NaN, -Infinity]}',
    "too large": '{"choices": [{"delta": {"content": "4"}, "logprobs": null}], "x": 1e999}',
    "a long number": f'{{"choices": [{{"delta": null, "logprobs": {{}}}}], "x": {2**99}}}',
    "half a letter": '{"choices": [{"delta": {"content": "\\ud83d"}, "logprobs": {"content": null}}]}',
    "half a letter unread": '{"choices": [{"delta": {}, "logprobs": null}], "x": {"\\ude00": "\\ude00"}}',
    "half a letter and more": f'{{"choices": [{{"delta": {{"x": [NaN, "\\ud83d", {2**99}]}}, "logprobs": null}}]}}',
    "odd counts": '{"choices": [], "usage": {"completion_tokens": -1, "logprobs": "\\ud83d"}}',
    "no choices": '{"id": "x", "logprobs": 1}',
    "choices that are null": '{"choices": null, "logprobs": {}}',
    "nested": '{"choices": [{"delta": {}, "logprobs": null}], "x": %s}' % ("[" * 400 + "]" * 400),
}


def _finite(text: str) -> Any:
    """What it says in JSON, where what is no number is null."""
    read = json.loads(text, parse_constant=lambda _: None)
    return read | {"x": None} if read.get("x") == math.inf else read


@pytest.mark.parametrize("name", ODD)
def test_what_only_python_takes_for_json(name: str) -> None:
    """What is accepted can be looked at and passed on, in JSON that everybody reads, with or without numbers."""
    text = ODD[name]
    for event in (Event.read(text.encode()), *read_events([b'{"choices": []}', text.encode()])[1:]):
        assert event.finishes is False
        assert event.only_counts == (name == "odd counts")
        if name not in ("not a number", "half a letter and more"):  # which equals nothing
            assert event.body() == Piece.parse(text).body
        assert json.loads(to_json(event.body()), parse_constant=pytest.fail) == _finite(text)
        cut = _finite(text)
        for choice in cut.get("choices") or ():
            choice["logprobs"] = None
        assert _finite(without_logprobs(event.data).decode()) == cut
        transcript = Transcript()
        transcript.add([event])
        assert transcript.answer() == gather([Piece.parse(text)])
        transcript.answer().text.encode()


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices": [{"delta": {"content": "\xff"}}]}', b'{"choices": [{"delta": {}}], "x": "\xff"}',
        b'{"choices": [{"delta": {"tool_calls": []}}], "x": "\xff"}', b'{"choices": [], "error": null, "x": "\xff"}',
        b'{"choices": [{"delta": {"x": "\xff"}, "logprobs": null}]}', b'{"choices": [{"delta": {}, "\xff": 1}]}',
    ],
)  # fmt: skip
def test_broken_letters(data: bytes) -> None:
    """They are replaced where they are read, and cost nobody the answer."""
    event = Event.read(data)
    text = data.decode("utf-8", errors="replace")
    assert event.body() == json.loads(text)
    assert json.loads(without_logprobs(event.data).decode("utf-8", errors="replace")) == json.loads(text)
    transcript = Transcript()
    transcript.add([event])
    assert transcript.answer() == gather([Piece.parse(text)])


@pytest.mark.parametrize(
    "count", ["-1", f"{MOST_TOKENS + 1}", f"{2**64}", f"-{2**64}", "1e30", "1e999", "NaN", "12.5", "true", '"7"', "[]"]
)
def test_odd_counts(count: str) -> None:
    """They are taken for not said, and the tokens are counted."""
    piece = b'{"choices": [{"delta": {"content": "4"}, "logprobs": {"content": [{"token": "4", "logprob": -1.0}]}}]}'
    counts = b'{"choices": [], "usage": {"completion_tokens": 0, "prompt_tokens": 0}}'.replace(b"0", count.encode())
    transcript = Transcript()
    transcript.add(read_events([piece, piece, counts]))
    answer = transcript.answer()
    assert (answer.text, answer.completion_tokens, answer.prompt_tokens) == ("44", 2, None)


def test_whole_counts() -> None:
    """However they are written."""
    transcript = Transcript()
    transcript.add([Event.read(b'{"choices": [], "usage": {"completion_tokens": 12.0, "prompt_tokens": 7}}')])
    assert (transcript.answer().completion_tokens, transcript.answer().prompt_tokens) == (12, 7)


@pytest.mark.parametrize(
    "texts",
    [
        [b'{"choices": []}, {"choices": []}', b'{"choices": []}'],
        [b'{"choices": []', b'"x": 1}, {"choices": []}'],
        # Each begins and ends as a piece does, and there are as many as there seem to be.
        [b'{"choices": [{"delta": {}}', b'{"delta": {}}]}', b'{"choices": []}, {"choices": []}'],
        [b'{"choices": [], "x": "}', b'{", "y": {}}', b'{"choices": []},{"choices": []}'],
    ],
)
def test_texts_that_are_pieces_only_together(texts: list[bytes]) -> None:
    """They must not pass for what they are not one by one."""
    with pytest.raises(AnswerError):
        read_events(texts)


def test_further_choices_are_not_mixed_in() -> None:
    """Of several answers at once the first is read."""
    transcript = Transcript()
    for index, text in ((0, "4"), (1, "x"), (0, "2")):
        transcript.add([Event.read(json.dumps({"choices": [{"index": index, "delta": {"content": text}}]}).encode())])
    assert transcript.answer().text == "42"


PLAIN = 'data: {"a": "é"}\n\ndata: {"b": 2}\n\ndata: [DONE]\n\n'
STREAMS = {
    "plain": PLAIN,
    "comments": ": waits\n\n" + PLAIN + ": still\n\n" + PLAIN,
    "other line ends": PLAIN.replace("\n", "\r\n"),
    "other line ends later": PLAIN + PLAIN.replace("\n", "\r\n"),
    "a third kind of line ends": PLAIN.replace("\n", "\r"),
    "every kind of line ends": PLAIN + PLAIN.replace("\n", "\r") + PLAIN.replace("\n", "\r\n") + PLAIN,
    "line ends of two kinds": PLAIN.replace("\n\n", "\r\n\n"),
    "a line's end within": 'data: {"a":\r1}\n\n' + PLAIN,
    "no space": PLAIN.replace("data: ", "data:"),
    "names and numbers": PLAIN.replace("data:", "event: piece\nid: 7\ndata:"),
    "two lines": 'data: {"a":\ndata: 1}\n\n' + PLAIN,
    "more empty lines": PLAIN.replace("\n\n", "\n\n\n"),
    "no event": "<html>\n\nnothing\n\n",
}


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("name", STREAMS)
def test_events_are_found_however_the_bytes_come(name: str, size: int) -> None:
    """The fast reader finds what the patient one finds, and no later."""
    data = STREAMS[name].encode()
    fast, patient = SseReader(), Events()
    for start in range(0, len(data), size):
        part = data[start : start + size]
        assert fast.feed(part) == [text.encode() for text in patient.feed(part)]


def test_what_never_ends_is_refused() -> None:
    """A line without end is noticed before it fills the memory."""
    reader = SseReader()
    reader.feed(b"data: ")
    with pytest.raises(AnswerError, match="without end"):
        reader.feed(b"x" * LONGEST_LINE)


@pytest.mark.parametrize("size", [1, 10, 1000])
@pytest.mark.parametrize("begun", [b"data: ", b"data: x\n", b"data: x\r", b": ping\n\ndata: x\n"])
def test_events_that_never_end_are_refused(size: int, begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever reader has to notice; those that end may go on."""
    for module in (pieces, streams):
        monkeypatch.setattr(module, "LONGEST_LINE", 100)
    reader = SseReader()
    assert [text for _ in range(200) for text in reader.feed(b"data: 1\n\n")] == 200 * [b"1"]
    reader.feed(begun)
    data = 200 * begun[-8:]
    with pytest.raises(AnswerError, match="without end"):
        [reader.feed(data[start : start + size]) for start in range(0, len(data), size)]


def _seconds(part: bytes, parts: int) -> float:
    """The least processor time that an event in so many parts takes."""

    def once() -> float:
        reader = SseReader()
        start = time.process_time()
        reader.feed(b"data: ")
        for _ in range(parts):
            reader.feed(part)
        assert reader.feed(b"\n\n") == [part.replace(b"\ndata: ", b"\n") * parts]
        return time.process_time() - start

    return min(once() for _ in range(3))


@pytest.mark.parametrize("part", [b"x" * 100, b"\ndata: " + b"x" * 93], ids=["a line", "lines"])
def test_an_event_in_many_parts(part: bytes) -> None:
    """It takes time in proportion to its parts, not to their square."""
    assert _seconds(part, 8000) / _seconds(part, 1000) < 24.0  # about 8, and 64 were it the square


def test_events_of_several_lines_stay_several() -> None:
    """What is passed on can be read as it was."""
    event = Event.read(b'{"choices":\n[]}')
    assert sent([event]) == b'data: {"choices":\ndata: []}\n\n'
    assert Events().feed(sent([event])) == [event.data.decode()]
