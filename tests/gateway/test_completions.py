"""The fast reader of answers and the plain one agree."""

import json
import math
from typing import Any

import pytest

from bpac.answer import Answer
from bpac.errors import AnswerError
from bpac.scores import named_score
from bpac.wire.completions import from_json, read_completion, to_json, without_logprobs


def _body(**choice: Any) -> dict[str, Any]:
    return {"id": "x", "choices": [{"message": {"content": "42"}, **choice}], "odd": {"a": [1, {"b": None}]}}


LISTED = [
    {"token": "4", "logprob": -0.1, "bytes": [52], "top_logprobs": [{"token": "4", "logprob": -0.1}]},
    {"token": "2", "logprob": 0, "top_logprobs": [{"token": "2", "logprob": 0}, {"token": "3", "logprob": None}]},
]
BODIES = {
    "plain": _body(),
    "logprobs": _body(logprobs={"content": LISTED}) | {"usage": {"completion_tokens": 2, "prompt_tokens": 7}},
    "no list": _body(logprobs={"content": None}),
    "empty list": _body(logprobs={"content": []}),
    "a token without a number": _body(logprobs={"content": [{"token": "4", "logprob": None}]}),
    "thoughts apart": _body(message={"content": "42", "reasoning_content": "six"}),
    "thoughts within": _body(message={"content": "<think>six</think>\n42"}),
    "parts": _body(message={"content": [{"type": "text", "text": "42"}]}),
    "no text": _body(message={"content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}),
    "counts that are none": _body() | {"usage": {"completion_tokens": None}},
    "counts as text": _body() | {"usage": {"completion_tokens": "7"}},
    "counts with a point": _body() | {"usage": {"completion_tokens": 12.0, "prompt_tokens": 7.0}},
    "counts that cannot be": _body(logprobs={"content": LISTED}) | {"usage": {"completion_tokens": -1}},
    "counts beyond all": _body() | {"usage": {"completion_tokens": 2**64, "prompt_tokens": 1e30}},
    "no counts": _body() | {"usage": [7]},
    "cut off": _body(finish_reason="length"),
}


@pytest.mark.parametrize("name", BODIES)
def test_both_read_the_same(name: str) -> None:
    """Text, thoughts, calls, counts, tokens and scores."""
    body = BODIES[name]
    fast, plain = read_completion(json.dumps(body).encode()).answer, Answer.from_openai(body)
    for field in ("text", "reasoning", "completion_tokens", "prompt_tokens", "finish_reason", "tool_calls"):
        assert getattr(fast, field) == getattr(plain, field)
    assert (fast.tokens is None) == (plain.tokens is None)
    for ours, theirs in zip(fast.tokens or (), plain.tokens or (), strict=True):
        assert (ours.text, ours.top, ours.top_texts) == (theirs.text, theirs.top, theirs.top_texts)
        assert ours.logprob == theirs.logprob or math.isnan(theirs.logprob)
    if name == "logprobs":
        for score in ("mean_token_probability", "perplexity", "entropy"):
            assert named_score(score)(fast) == named_score(score)(plain)


def test_numbers_suffice() -> None:
    """Scores that need no more of a token than its log-probability come to the same without its text."""
    data = json.dumps(BODIES["logprobs"]).encode()
    numbers, all_of_it = read_completion(data, numbers_only=True).answer, read_completion(data).answer
    for score in ("mean_token_probability", "perplexity"):
        assert not named_score(score).needs.top_logprobs
        assert named_score(score)(numbers) == named_score(score)(all_of_it) > 0.0


@pytest.mark.parametrize(
    "count", ["-1", str(10**9 + 1), str(2**64), str(-(2**64)), "1e30", "1e999", "NaN", "12.5", "true", '"7"', "[]"]
)
@pytest.mark.parametrize("numbers_only", [False, True])
def test_odd_counts(count: str, numbers_only: bool) -> None:
    """They are taken for not said, and the tokens are counted."""
    usage = {"completion_tokens": "odd", "prompt_tokens": "odd"}
    data = json.dumps(_body(logprobs={"content": LISTED}) | {"usage": usage}).replace(': "odd"', f": {count}")
    answer = read_completion(data.encode(), numbers_only=numbers_only).answer
    assert (answer.completion_tokens, answer.prompt_tokens) == (2, None)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b"[]", b"null", b'{"choices": []}', b'{"choices": [{}]}', b"\xff", b"[" * 9999,
        b'{"choices": [{"message": {"content": "4"}}, null]}',
        b'{"choices": [{"message": {"content": "4"}}, {"message": "4"}]}',
    ],
)  # fmt: skip
def test_what_is_no_answer(data: bytes) -> None:
    """Each is refused."""
    with pytest.raises(AnswerError):
        read_completion(data)


def test_no_answer_at_any_depth() -> None:
    """Lists in lists: one of the readers may get to their end and the writer of the error not."""
    for depth in range(800, 1050):
        with pytest.raises(AnswerError):
            read_completion(b'{"choices": [{"message": {"content": %b%b}}]}' % (b"[" * depth, b"]" * depth))


ODD = {
    "not a number": b'{"choices": [{"message": {"content": "4"}, "logprobs": {"content": []}}], "x": [NaN, -Infinity]}',
    "no log-probability": b"""{"choices": [{"message": {"content": "4"},
        "logprobs": {"content": [{"token": "4", "logprob": NaN, "top_logprobs": [{"logprob": -Infinity}]}]}}]}""",
    "too large": b'{"choices": [{"message": {"content": "4"}, "logprobs": null}], "x": 1e999}',
    "half a letter": b'{"choices": [{"message": {"content": "4 \\ud83d"}, "logprobs": {"content": []}}]}',
    "half a letter unread": b'{"choices": [{"message": {"content": "4"}, "logprobs": {}}], "\\ude00": "\\ude00"}',
    "a long number": b'{"choices": [{"message": {"content": "\\ud83d"}, "logprobs": {}}], "x": 1%b}' % (b"0" * 99),
    "broken letters": b'{"choices": [{"message": {"content": "4 \xff"}, "logprobs": {}}], "x": "\xff"}',
    "broken letters unread": b'{"choices": [{"message": {"content": "4"}, "logprobs": {}}], "\xff": "\xff"}',
    "broken letters within": b'{"choices": [{"message": {"content": "4"}, "logprobs": {}, "\xff": "\xff"}]}',
    "an odd choice": b'{"choices": [{"message": {"content": "4"}}, {"message": null, "logprobs": {}}]}',
}


@pytest.mark.parametrize("name", ODD)
def test_what_only_python_takes_for_json(name: str) -> None:
    """What is read at all can be looked at and written, as JSON that everybody reads."""
    data = ODD[name]
    completion = read_completion(data)
    expected = json.loads(data.decode("utf-8", errors="replace"), parse_constant=lambda _: None)
    expected |= {"x": None} if name == "too large" else {}
    assert completion.answer.text.encode()
    assert json.loads(to_json(completion.body()), parse_constant=pytest.fail) == expected
    for choice in expected["choices"]:
        if "logprobs" in choice:
            choice["logprobs"] = None
    for cut in (completion.without_logprobs(), without_logprobs(completion.raw), without_logprobs(data)):
        found = json.loads(cut.decode("utf-8", errors="replace"), parse_constant=lambda _: None)
        found |= {"x": None} if name == "too large" else {}
        assert found == expected


def test_what_is_written_can_be_read() -> None:
    """By everybody, and it says the same; what cannot be written at all is an ``AnswerError``."""
    for value in (None, "é\ud83d", {"\ude00": [2**64, -(2**99)]}, {"a": "é"}, json.loads("[" * 500 + "]" * 500)):
        assert from_json(to_json(value)) == json.loads(to_json(value)) == value
        to_json(value).decode()
    assert to_json([math.nan, "\ud83d", -math.inf]) == b'[null,"\\ud83d",null]'
    nested: list[Any] = []
    for _ in range(9999):
        nested = [nested]
    with pytest.raises(AnswerError):
        to_json(nested)


TRICKY = {
    "said in the text": _body(message={"content": '{"logprobs": {"content": []}}'}, logprobs={"content": LISTED}),
    "elsewhere too, before": {"logprobs": {"content": LISTED}} | _body(logprobs={"content": LISTED}),
    "elsewhere too, after": _body(logprobs={"content": LISTED}) | {"logprobs": {"content": LISTED}},
    "two choices": {"choices": 2 * _body(logprobs={"content": LISTED})["choices"]},
    "a token that is called so": _body(logprobs={"content": [{"token": '"logprobs": ', "logprob": -1.0}]}),
}


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n", " :\t")])
@pytest.mark.parametrize("name", [*BODIES, *TRICKY])
def test_only_log_probabilities_are_taken_out(name: str, separators: tuple[str, str]) -> None:
    """All else arrives as it was, unknown fields included; however the answer is written and read."""
    body = (BODIES | TRICKY)[name]
    data = json.dumps(body, separators=separators).encode()
    expected = json.loads(data)
    for choice in expected["choices"]:
        if "logprobs" in choice:
            choice["logprobs"] = None
    assert json.loads(without_logprobs(data)) == expected
    assert json.loads(read_completion(data).without_logprobs()) == expected
