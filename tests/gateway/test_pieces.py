"""The fast reader of streams and the plain one agree."""

import json
from typing import Any

import pytest

from bpac.errors import AnswerError
from bpac.gateway.pieces import Event, Transcript
from bpac.models.streams import Piece, gather
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
    events = [Event.read(json.dumps(body)) for body in bodies]
    transcript = Transcript()
    for event in events:
        transcript.add(event)
    fast, plain = transcript.answer(), gather(map(Piece, bodies))
    for field in ("text", "reasoning", "completion_tokens", "prompt_tokens", "finish_reason", "tool_calls"):
        assert getattr(fast, field) == getattr(plain, field)
    assert [(t.text, t.logprob) for t in fast.tokens or ()] == [(t.text, t.logprob) for t in plain.tokens or ()]
    assert [event.finishes for event in events] == [Piece(body).finish_reason is not None for body in bodies]
    assert [event.only_counts for event in events] == [not body["choices"] for body in bodies]


@pytest.mark.parametrize(
    "data", ["", "nonsense", "[]", "7", '{"choices": 1}', '{"choices": [1]}', '{"error": {"message": "no"}}',
             '{"choices": [], "error": "no"}', '{"choices": [{"delta": 7}]}', "[" * 9999]
)  # fmt: skip
def test_what_is_no_piece(data: str) -> None:
    """Each is refused, an error in the middle of a stream too."""
    with pytest.raises(AnswerError):
        Event.read(data)


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
    transcript.add(Event.read(data))
    assert transcript.answer() == gather([Piece.parse(data)])
    assert Event.read(data).finishes == (Piece.parse(data).finish_reason is not None)


def test_further_choices_are_not_mixed_in() -> None:
    """Of several answers at once the first is read."""
    transcript = Transcript()
    for index, text in ((0, "4"), (1, "x"), (0, "2")):
        transcript.add(Event.read(json.dumps({"choices": [{"index": index, "delta": {"content": text}}]})))
    assert transcript.answer().text == "42"
