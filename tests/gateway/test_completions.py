"""The fast reader of answers and the plain one agree."""

import json
import math
from typing import Any

import pytest

from bpac.answer import Answer
from bpac.errors import AnswerError
from bpac.gateway.completions import read_completion, without_logprobs
from bpac.scores import named_score


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
    "data", [b"", b"{}", b"[]", b"null", b'{"choices": []}', b'{"choices": [{}]}', b"\xff", b"[" * 9999]
)
def test_what_is_no_answer(data: bytes) -> None:
    """Each is refused."""
    with pytest.raises((AnswerError, ValueError)):
        read_completion(data)


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
