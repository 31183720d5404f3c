"""Whole answers are read the same whether they are decoded selectively, leniently, or by the caller."""

import json
import math
from typing import Any

import pytest

from bpac.answer import Answer
from bpac.errors import AnswerError
from bpac.scores import named_score
from bpac.wire.completions import read_completion
from bpac.wire.json import to_json
from bpac.wire.rendering import without_logprobs


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
    "reasoning apart": _body(message={"content": "42", "reasoning_content": "six"}),
    "reasoning within": _body(message={"content": "<think>six</think>\n42"}),
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
def test_every_way_of_decoding_reads_the_same(name: str) -> None:
    """Text, reasoning, tool calls, counts, tokens and scores: decoded selectively, leniently, and by the caller."""
    body = BODIES[name]
    data = json.dumps(body).encode()
    plain = Answer.from_openai(body)
    # JSON does not allow NaN: what has it is not decoded selectively.
    for answer in (read_completion(data).answer, read_completion(data.removesuffix(b"}") + b', "y": NaN}').answer):
        for field in ("text", "reasoning", "completion_tokens", "prompt_tokens", "finish_reason", "tool_calls"):
            assert getattr(answer, field) == getattr(plain, field)
        assert (answer.tokens is None) == (plain.tokens is None)
        for ours, theirs in zip(answer.tokens or (), plain.tokens or (), strict=True):
            assert (ours.text, ours.top, ours.top_texts) == (theirs.text, theirs.top, theirs.top_texts)
            assert ours.logprob == theirs.logprob or (math.isnan(ours.logprob) and math.isnan(theirs.logprob))
        if name == "logprobs":
            for score in ("mean_token_probability", "perplexity", "entropy"):
                assert named_score(score)(answer) == named_score(score)(plain)


def test_scores_of_log_probabilities_need_no_more_of_a_token() -> None:
    """They are the same if only the log-probabilities are decoded."""
    data = json.dumps(BODIES["logprobs"]).encode()
    some, everything = read_completion(data, logprobs_only=True).answer, read_completion(data).answer
    for score in ("mean_token_probability", "perplexity"):
        assert not named_score(score).needs.top_logprobs
        assert named_score(score)(some) == named_score(score)(everything) > 0.0


@pytest.mark.parametrize(
    "count", ["-1", str(10**9 + 1), str(2**64), str(-(2**64)), "1e30", "1e999", "NaN", "12.5", "true", '"7"', "[]"]
)
@pytest.mark.parametrize("logprobs_only", [False, True])
def test_impossible_counts_are_ignored(count: str, logprobs_only: bool) -> None:
    """The listed tokens are counted instead."""
    usage = {"completion_tokens": "odd", "prompt_tokens": "odd"}
    data = json.dumps(_body(logprobs={"content": LISTED}) | {"usage": usage}).replace(': "odd"', f": {count}")
    answer = read_completion(data.encode(), logprobs_only=logprobs_only).answer
    assert (answer.completion_tokens, answer.prompt_tokens) == (2, None)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b"[]", b"null", b'{"choices": []}', b'{"choices": [{}]}', b"\xff", b"[" * 9999,
        b'{"choices": [{"message": {"content": "4"}}, null]}',
        b'{"choices": [{"message": {"content": "4"}}, {"message": "4"}]}',
    ],
)  # fmt: skip
def test_what_is_no_completion_is_an_error(data: bytes) -> None:
    """Also where only a further choice is of the wrong kind."""
    with pytest.raises(AnswerError):
        read_completion(data)


def test_nested_lists_are_an_error_at_any_depth() -> None:
    """One of the decoders may get to their end, and the writing of the error message not."""
    for depth in range(800, 1050):
        with pytest.raises(AnswerError):
            read_completion(b'{"choices": [{"message": {"content": %b%b}}]}' % (b"[" * depth, b"]" * depth))


ODD = {
    "not a number": b'{"choices": [{"message": {"content": "4"}, "logprobs": {"content": []}}], "x": [NaN, -Infinity]}',
    "no log-probability": b"""{"choices": [{"message": {"content": "4"},
        "logprobs": {"content": [{"token": "4", "logprob": NaN, "top_logprobs": [{"logprob": -Infinity}]}]}}]}""",
    "too large": b'{"choices": [{"message": {"content": "4"}, "logprobs": null}], "x": 1e999}',
    "lone surrogate": b'{"choices": [{"message": {"content": "4 \\ud83d"}, "logprobs": {"content": []}}]}',
    "lone surrogate unread": b'{"choices": [{"message": {"content": "4"}, "logprobs": {}}], "\\ude00": "\\ude00"}',
    "a long number": b'{"choices": [{"message": {"content": "\\ud83d"}, "logprobs": {}}], "x": 1%b}' % (b"0" * 99),
    "not UTF-8": b'{"choices": [{"message": {"content": "4 \xff"}, "logprobs": {}}], "x": "\xff"}',
    "not UTF-8 unread": b'{"choices": [{"message": {"content": "4"}, "logprobs": {}}], "\xff": "\xff"}',
    "not UTF-8 within": b'{"choices": [{"message": {"content": "4"}, "logprobs": {}, "\xff": "\xff"}]}',
    "an odd choice": b'{"choices": [{"message": {"content": "4"}}, {"message": null, "logprobs": {}}]}',
}


@pytest.mark.parametrize("name", ODD)
def test_what_only_python_takes_for_json_is_read_and_passed_on_as_json(name: str) -> None:
    """It can be decoded, and written as JSON that every reader accepts, with or without log-probabilities."""
    data = ODD[name]
    completion = read_completion(data)
    expected = json.loads(data.decode("utf-8", errors="replace"), parse_constant=lambda _: None)
    expected |= {"x": None} if name == "too large" else {}
    assert completion.answer.text.encode()
    assert json.loads(to_json(completion.body()), parse_constant=pytest.fail) == expected
    for choice in expected["choices"]:
        if "logprobs" in choice:
            choice["logprobs"] = None
    for cut in (without_logprobs(completion.raw), without_logprobs(data)):
        found = json.loads(cut.decode("utf-8", errors="replace"), parse_constant=lambda _: None)
        found |= {"x": None} if name == "too large" else {}
        assert found == expected


TRICKY = {
    "named in the text": _body(message={"content": '{"logprobs": {"content": []}}'}, logprobs={"content": LISTED}),
    "elsewhere too, before": {"logprobs": {"content": LISTED}} | _body(logprobs={"content": LISTED}),
    "elsewhere too, after": _body(logprobs={"content": LISTED}) | {"logprobs": {"content": LISTED}},
    "two choices": {"choices": 2 * _body(logprobs={"content": LISTED})["choices"]},
    "a token of that name": _body(logprobs={"content": [{"token": '"logprobs": ', "logprob": -1.0}]}),
}


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n", " :\t")])
@pytest.mark.parametrize("name", [*BODIES, *TRICKY])
def test_only_log_probabilities_are_removed(name: str, separators: tuple[str, str]) -> None:
    """All else stays as it was, unknown fields included, however the answer is written."""
    body = (BODIES | TRICKY)[name]
    data = json.dumps(body, separators=separators).encode()
    expected = json.loads(data)
    for choice in expected["choices"]:
        if "logprobs" in choice:
            choice["logprobs"] = None
    assert json.loads(without_logprobs(data)) == expected


def test_log_probabilities_are_found_beside_a_field_of_the_same_name() -> None:
    """Of two fields with one name the one of the choice is emptied, even if only the other is written as usual."""
    data = b'{"logprobs":{},"choices":[{"message":{"content":"4"},"logprobs" :{}}]}'
    assert json.loads(without_logprobs(data)) == json.loads(data.replace(b'"logprobs" :{}', b'"logprobs":null'))
