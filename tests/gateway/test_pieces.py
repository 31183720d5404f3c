"""The fast reader of streams and the plain one agree."""

import json
from typing import Any

import pytest

from bpac.errors import AnswerError
from bpac.gateway.pieces import Event, Reader, Transcript, read_events, sent
from bpac.models.streams import LONGEST_LINE, Events, Piece, gather
from bpac.testing import Reply, Request

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
    bodies = list(reply.pieces(Request(1, ASKED)))
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


def test_texts_that_are_pieces_only_together() -> None:
    """Decoded together, they must not pass for what they are not one by one."""
    with pytest.raises(AnswerError):
        read_events([b'{"choices": []}, {"choices": []}', b'{"choices": []}'])


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
    fast, patient = Reader(), Events()
    for start in range(0, len(data), size):
        part = data[start : start + size]
        assert fast.feed(part) == [text.encode() for text in patient.feed(part)]


def test_what_never_ends_is_refused() -> None:
    """A line without end is noticed before it fills the memory."""
    reader = Reader()
    reader.feed(b"data: ")
    with pytest.raises(AnswerError, match="without end"):
        reader.feed(b"x" * LONGEST_LINE)


def test_events_of_several_lines_stay_several() -> None:
    """What is passed on can be read as it was."""
    event = Event.read(b'{"choices":\n[]}')
    assert sent([event]) == b'data: {"choices":\ndata: []}\n\n'
    assert Events().feed(sent([event])) == [event.data.decode()]
