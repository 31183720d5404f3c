"""Streamed answers: from events to the same answer as in one response."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.answer import MOST_TOKENS, Answer, Token
from bpac.errors import AnswerError
from bpac.testing import Reply, Request
from bpac.wire.json import to_json
from bpac.wire.rendering import without_logprobs
from bpac.wire.stream import StreamEvent, Transcript, read_events, without_usage

CALLS = (
    {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
    {"id": "2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
)
ASKED = Request(1, {"logprobs": True, "top_logprobs": 2, "stream_options": {"include_usage": True}})

replies = st.builds(
    Reply,
    text=st.text(min_size=1, max_size=30),  # without a token there is no event that could list none
    reasoning=st.sampled_from(["", "hm, well"]),
    tool_calls=st.sampled_from([(), CALLS[:1], CALLS]),
    finish_reason=st.sampled_from(["stop", "length"]),
    logprobs=st.booleans(),
)


def event_of(body: Any) -> StreamEvent:
    """The event with that body."""
    return StreamEvent.read(json.dumps(body).encode())


def delta_event(**delta: Any) -> StreamEvent:
    """An event that adds this to the message."""
    return event_of({"choices": [{"delta": delta}]})


def gathered(*events: StreamEvent) -> Answer:
    """The answer that the events add up to."""
    transcript = Transcript()
    transcript.add(list(events))
    return transcript.answer()


def as_values(answer: Answer) -> Answer:
    """The answer with plain tokens: those of the decoder have the same attributes, but are not equal to them."""
    tokens = answer.tokens
    plain = None if tokens is None else tuple(Token(t.text, t.logprob, t.top, t.top_texts) for t in tokens)
    fields = ("text", "reasoning", "completion_tokens", "prompt_tokens", "finish_reason", "tool_calls")
    return Answer(tokens=plain, **{name: getattr(answer, name) for name in fields})


# A field that JSON does not allow, so that an event with it is not read by the strict decoder.
LENIENT = b', "ignored": NaN}'


@given(replies)
def test_a_streamed_answer_is_the_same_as_a_whole_one(reply: Reply) -> None:
    """Text, reasoning, tokens, tool calls and counts, whether events are decoded strictly or leniently."""
    expected = Answer.from_openai(json.loads(json.dumps(reply.body(ASKED))))
    data = [json.dumps(body).encode() for body in reply.chunks(ASKED)]
    for texts in (data, [text.removesuffix(b"}") + LENIENT for text in data]):
        assert as_values(gathered(*read_events(texts))) == expected
        assert as_values(gathered(*map(StreamEvent.read, texts))) == expected


@pytest.mark.parametrize("lenient", [False, True])
def test_which_events_finish_the_answer_and_which_only_count(lenient: bool) -> None:
    """The first say why the model stopped, the second bring nothing but counts of tokens."""
    bodies = list(Reply("one two", finish_reason="length").chunks(ASKED))
    data = [json.dumps(body).encode() for body in bodies]
    events = read_events([text.removesuffix(b"}") + LENIENT for text in data] if lenient else data)
    assert [event.only_usage for event in events] == [not body["choices"] for body in bodies]
    reasons = [[choice["finish_reason"] for choice in body["choices"]] for body in bodies]
    assert [event.finishes for event in events] == [reason == ["length"] for reason in reasons]
    assert without_usage(events) == events[:-1]


@pytest.mark.parametrize(
    "data",
    ["", "nonsense", "[]", "[1]", "7", "null", '{"choices": 1}', '{"choices": [1]}', '{"choices": [{"delta": 7}]}',
     "[" * 9999],
)  # fmt: skip
def test_what_is_no_chunk_is_an_error(data: str) -> None:
    """Alone or among others."""
    with pytest.raises(AnswerError, match=r"not a chunk|not JSON"):
        StreamEvent.read(data.encode())
    with pytest.raises(AnswerError):
        read_events([b'{"choices": []}', data.encode()])


@pytest.mark.parametrize("data", ['{"error": {"message": "no memory"}}', '{"choices": [], "error": "no memory"}'])
def test_an_error_within_a_stream_is_an_error(data: str) -> None:
    """Servers report as an event what goes wrong after the start, and its message is shown."""
    with pytest.raises(AnswerError, match="no memory"):
        StreamEvent.read(data.encode())
    with pytest.raises(AnswerError, match="no memory"):
        read_events([b'{"choices": []}', data.encode()])


@pytest.mark.parametrize(
    ("data", "answer", "finishes"),
    [
        ('{"choices": [{"delta": null, "finish_reason": "length"}]}', Answer("", finish_reason="length"), True),
        ('{"choices": [{"finish_reason": "stop"}]}', Answer(""), True),
        ('{"id": 1}', Answer(""), False),
        ('{"choices": null, "usage": {}}', Answer(""), False),
        ('{"choices": [{"index": null, "delta": {"content": "4"}}]}', Answer("4"), False),
        ('{"choices": [], "error": null}', Answer(""), False),
        ('{"choices": [{"delta": {"content": "4"}, "logprobs": {"content": [{"token": 4, "logprob": "-1"}]}}]}',
         Answer("4", tokens=(Token("4", -1.0),), completion_tokens=1), False),
    ],
)  # fmt: skip
def test_odd_events_are_read_all_the_same(data: str, answer: Answer, finishes: bool) -> None:
    """What some servers leave out, write as null or write as another kind."""
    event, plain = StreamEvent.read(data.encode()), b'{"choices": []}'
    assert gathered(event) == answer
    assert event.finishes is finishes
    assert [e.data for e in read_events([plain, data.encode()])] == [plain, data.encode()]
    assert gathered(*read_events([plain, data.encode()])) == answer


ODD = {
    "not a number": '{"choices": [{"delta": {"content": "4"}, "logprobs": null}], "x": [NaN, -Infinity]}',
    "too large": '{"choices": [{"delta": {"content": "4"}, "logprobs": null}], "x": 1e999}',
    "a long number": f'{{"choices": [{{"delta": null, "logprobs": {{}}}}], "x": {2**99}}}',
    "lone surrogate": '{"choices": [{"delta": {"content": "\\ud83d"}, "logprobs": {"content": null}}]}',
    "lone surrogate unread": '{"choices": [{"delta": {}, "logprobs": null}], "x": {"\\ude00": "\\ude00"}}',
    "lone surrogate and more": f'{{"choices": [{{"delta": {{"x": [NaN, "\\ud83d", {2**99}]}}, "logprobs": null}}]}}',
    "odd counts": '{"choices": [], "usage": {"completion_tokens": -1, "logprobs": "\\ud83d"}}',
    "no choices": '{"id": "x", "logprobs": 1}',
    "choices that are null": '{"choices": null, "logprobs": {}}',
    "nested": '{"choices": [{"delta": {}, "logprobs": null}], "x": %s}' % ("[" * 400 + "]" * 400),
}
TEXTS = {"not a number": "4", "too large": "4", "lone surrogate": "\ufffd"}


def _finite(text: str) -> Any:
    """The value of a JSON text, with null for what is no number."""
    read = json.loads(text, parse_constant=lambda _: None)
    return read | {"x": None} if read.get("x") == math.inf else read


@pytest.mark.parametrize("name", ODD)
def test_what_only_python_takes_for_json_is_read_and_passed_on_as_json(name: str) -> None:
    """It can be decoded, and written as JSON that every reader accepts, with or without log-probabilities."""
    text = ODD[name]
    for event in (StreamEvent.read(text.encode()), *read_events([b'{"choices": []}', text.encode()])[1:]):
        assert event.finishes is False
        assert event.only_usage == (name == "odd counts")
        if name not in ("not a number", "lone surrogate and more"):  # NaN is not equal to itself
            assert event.body() == json.loads(text)
        assert json.loads(to_json(event.body()), parse_constant=pytest.fail) == _finite(text)
        cut = _finite(text)
        for choice in cut.get("choices") or ():
            choice["logprobs"] = None
        assert _finite(without_logprobs(event.data).decode()) == cut
        assert gathered(event) == Answer(TEXTS.get(name, ""))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"choices": [{"delta": {"content": "\xff"}}]}', "\ufffd"),
        (b'{"choices": [{"delta": {}}], "x": "\xff"}', ""),
        (b'{"choices": [{"delta": {"tool_calls": []}}], "x": "\xff"}', ""),
        (b'{"choices": [], "error": null, "x": "\xff"}', ""),
        (b'{"choices": [{"delta": {"x": "\xff"}, "logprobs": null}]}', ""),
        (b'{"choices": [{"delta": {}, "\xff": 1}]}', ""),
    ],
)
def test_bytes_that_are_not_utf8_are_replaced(data: bytes, text: str) -> None:
    """Where they are read; where they are not, they do not cost the answer."""
    event = StreamEvent.read(data)
    replaced = data.decode("utf-8", errors="replace")
    assert event.body() == json.loads(replaced)
    assert json.loads(without_logprobs(event.data).decode("utf-8", errors="replace")) == json.loads(replaced)
    assert gathered(event).text == text


def test_halves_of_a_character_in_two_events_are_joined() -> None:
    """Servers that count in UTF-16 split some characters; a half that stays alone is replaced."""
    first, second = (
        StreamEvent.read(b'{"choices": [{"delta": {"content": "\\u%b"}}]}' % c) for c in (b"d83d", b"de00")
    )
    assert gathered(first, second).text == "😀"
    assert gathered(second, first).text == "\ufffd\ufffd"


@pytest.mark.parametrize(
    "count", ["-1", f"{MOST_TOKENS + 1}", f"{2**64}", f"-{2**64}", "1e30", "1e999", "NaN", "12.5", "true", '"7"', "[]"]
)
def test_impossible_counts_are_ignored(count: str) -> None:
    """The listed tokens are counted instead."""
    chunk = b'{"choices": [{"delta": {"content": "4"}, "logprobs": {"content": [{"token": "4", "logprob": -1.0}]}}]}'
    usage = b'{"choices": [], "usage": {"completion_tokens": 0, "prompt_tokens": 0}}'.replace(b"0", count.encode())
    answer = gathered(*read_events([chunk, chunk, usage]))
    assert (answer.text, answer.completion_tokens, answer.prompt_tokens) == ("44", 2, None)


def test_counts_may_be_written_with_a_decimal_point() -> None:
    """If they are whole."""
    answer = gathered(StreamEvent.read(b'{"choices": [], "usage": {"completion_tokens": 12.0, "prompt_tokens": 7}}'))
    assert (answer.completion_tokens, answer.prompt_tokens) == (12, 7)


@pytest.mark.parametrize(
    "texts",
    [
        [b'{"choices": []}, {"choices": []}', b'{"choices": []}'],
        [b'{"choices": []', b'"x": 1}, {"choices": []}'],
        # Each starts and ends as a chunk does, and there are as many as there seem to be.
        [b'{"choices": [{"delta": {}}', b'{"delta": {}}]}', b'{"choices": []}, {"choices": []}'],
        [b'{"choices": [], "x": "}', b'{", "y": {}}', b'{"choices": []},{"choices": []}'],
    ],
)
def test_texts_that_are_chunks_only_when_joined_are_refused(texts: list[bytes]) -> None:
    """Each event must be a chunk by itself."""
    with pytest.raises(AnswerError):
        read_events(texts)


NO_INDICES: list[Any] = ["1", "", True, False, 0.5, math.inf, math.nan, [], {}]


@pytest.mark.parametrize(
    "delta",
    [
        {"content": 1}, {"content": ["4"]}, {"reasoning": 1}, {"tool_calls": [1]}, {"tool_calls": 1},
        {"tool_calls": [{"function": {"name": 1}}]}, {"tool_calls": [{"function": [1]}]},
        *({"tool_calls": [{"index": index}]} for index in NO_INDICES),
    ],
)  # fmt: skip
def test_a_delta_of_the_wrong_kind_is_an_error_of_the_answer(delta: dict[str, Any]) -> None:
    """Its event can still be passed on, and further ones added, but no answer comes of them."""
    transcript = Transcript()
    transcript.add([delta_event(**delta)])
    transcript.add([delta_event(content="42")])
    with pytest.raises(AnswerError, match="not chunks of a chat completion"):
        transcript.answer()


@pytest.mark.parametrize("logprobs", [7, [7], {"content": 7}, {"content": [7]}, {"content": [{"logprob": -1.0}]}])
def test_log_probabilities_of_the_wrong_kind_are_an_error_of_the_answer(logprobs: Any) -> None:
    """Like everything else that cannot be read."""
    transcript = Transcript()
    transcript.add([event_of({"choices": [{"delta": {"content": "4"}, "logprobs": logprobs}]})])
    with pytest.raises(AnswerError, match="logprobs"):
        transcript.answer()


def test_tool_calls_come_in_the_order_of_their_indices() -> None:
    """Their parts are joined; a missing index is the first."""
    parts: list[tuple[float | None, str]] = [(1, "b"), (0.0, "a"), (None, "a"), (1, "b")]
    calls = [[{"index": index, "id": name, "function": {"name": name}}] for index, name in parts]
    answer = gathered(*(delta_event(tool_calls=call) for call in calls))
    assert answer.tool_calls == (
        {"function": {"name": "aa", "arguments": ""}, "id": "a"},
        {"function": {"name": "bb", "arguments": ""}, "id": "b"},
    )


def test_only_the_first_choice_is_read() -> None:
    """Events of further choices are left out; events without a choice bring the counts."""
    events = [
        event_of({"id": "x", "usage": None, "choices": [{"index": 1, "delta": {"content": "no"}}]}),
        event_of({"choices": [{"index": 0, "delta": {"content": "yes"}, "logprobs": {"content": []}}]}),
        event_of({"choices": [], "usage": {"completion_tokens": 5}}),
    ]
    assert gathered(*events) == Answer("yes", tokens=(), completion_tokens=5)
    assert [event.text for event in events] == ["", "yes", ""]


def test_there_is_an_answer_of_what_has_arrived_so_far() -> None:
    """At any time, so that a draft can be scored early; what was returned does not change later."""
    transcript = Transcript()
    assert transcript.answer() == Answer("")
    answers = []
    for body in Reply("one two").chunks(ASKED):
        transcript.add([event_of(body)])
        answers.append(as_values(transcript.answer()))
    assert [answer.text for answer in answers] == ["", "one", "one two", "one two", "one two"]
    logprob = math.log(0.9)
    tokens = tuple(Token(word, logprob, (logprob,), (word,)) for word in ("one", " two"))
    assert [answer.tokens for answer in answers] == [None, tokens[:1], tokens, tokens, tokens]
    assert answers[-1].finish_reason == "stop"


def test_events_are_added_in_place() -> None:
    """What has arrived is not copied with every event, which would take time in the square of their number."""
    transcript = Transcript()
    token = {"token": "4", "logprob": -0.1}
    event = event_of({"choices": [{"delta": {"content": "4"}, "logprobs": {"content": [token]}}]})
    transcript.add([event])
    tokens = transcript.tokens
    answer = transcript.answer()
    for _ in range(99):
        transcript.add([event])
    assert transcript.tokens is tokens
    assert (len(answer.tokens or ()), len(transcript.answer().tokens or ())) == (1, 100)
