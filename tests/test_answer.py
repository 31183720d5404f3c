"""Reading answers from the responses of servers."""

import math
from typing import Any

import pytest

from bpac.answer import MOST_TOKENS, Answer, Token, split_reasoning
from bpac.errors import AnswerError


def completion(message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    """A chat completion with a message."""
    return {"choices": [{"message": message, **choice}]}


def test_every_field_of_a_completion_is_read() -> None:
    """Text, reasoning, tokens, token counts, finish reason and tool calls are read."""
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    listed = [{"token": "B", "logprob": -0.5, "top_logprobs": [{"token": "B", "logprob": -0.5}, {"logprob": -1.5}]}]
    body = completion(
        {"content": "B", "reasoning_content": "hm", "tool_calls": [call]},
        finish_reason="tool_calls",
        logprobs={"content": listed},
    ) | {"usage": {"completion_tokens": 3, "prompt_tokens": 9}}
    assert Answer.from_openai(body) == Answer(
        text="B",
        reasoning="hm",
        tokens=(Token("B", -0.5, (-0.5, -1.5), ("B", "")),),
        completion_tokens=3,
        prompt_tokens=9,
        finish_reason="tool_calls",
        tool_calls=(call,),
    )


@pytest.mark.parametrize(
    ("content", "reasoning", "text"),
    [
        ("42", "", "42"),
        ("<think>hm</think>\n\n42", "hm", "42"),
        ("hm</think>42", "hm", "42"),
        ("<think>hm", "hm", ""),
        ("<think></think>42", "", "42"),
        ("a <think>b", "", "a <think>b"),
        ("", "", ""),
    ],
)
def test_reasoning_in_the_text_is_split_off(content: str, reasoning: str, text: str) -> None:
    """Reasoning is split off even if its opening or closing tag is missing."""
    assert split_reasoning(content) == (reasoning, text)


def test_content_parts_are_joined() -> None:
    """Some servers send the content as a list of parts; null means no content."""
    assert Answer.from_openai(completion({"content": [{"type": "text", "text": "4"}, {"text": "2"}]})).text == "42"
    assert Answer.from_openai(completion({"content": None})).text == ""


def test_a_null_log_probability_is_nan() -> None:
    """A token with null has NaN, which no score accepts; one of the most likely tokens with null has probability 0."""
    listed = [{"token": "a", "logprob": None, "top_logprobs": [{"token": "b", "logprob": None}]}]
    tokens = Answer.from_openai(completion({"content": "a"}, logprobs={"content": listed})).tokens
    assert tokens is not None
    assert math.isnan(tokens[0].logprob)
    assert tokens[0].top == (-math.inf,)


@pytest.mark.parametrize("logprobs", [None, {}, {"content": None}, {"tokens": ["a"], "token_logprobs": [-1.0]}])
def test_missing_log_probabilities_are_none(logprobs: object) -> None:
    """Without log-probabilities the tokens are unknown, not an empty list."""
    assert Answer.from_openai(completion({"content": "a"}, logprobs=logprobs)).tokens is None


@pytest.mark.parametrize(
    "body",
    [
        None, 42, "text", [], {}, {"choices": []}, {"choices": None}, {"choices": [{}]}, {"choices": [None]},
        {"error": {"message": "no"}}, completion({"content": 42}), completion({"content": [42]}),
        completion({"content": "a", "tool_calls": [42]}), completion({"content": "a"}, finish_reason=1),
        completion({"content": "a"}, logprobs={"content": [{"token": "a", "logprob": "high"}]}),
        completion({"content": "a"}, logprobs={"content": [{"logprob": -1.0}]}),
        completion({"content": "a"}, logprobs={"content": [{"token": "a", "logprob": 10**400}]}),
    ],
)  # fmt: skip
def test_an_invalid_completion_is_an_answer_error(body: object) -> None:
    """Whatever a server sends, the result is an answer or an ``AnswerError``."""
    with pytest.raises(AnswerError, match="not a chat completion"):
        Answer.from_openai(body)


@pytest.mark.parametrize(
    "count",
    [-1, -0.5, 12.5, MOST_TOKENS + 1, 2**64, -(2**64), 1e30, math.inf, -math.inf, math.nan, True, False, "7", "many",
     "", None, [7], {}],
)  # fmt: skip
def test_an_invalid_token_count_is_ignored(count: object) -> None:
    """The listed tokens are counted instead, and the answer is still read."""
    usage = {"usage": {"completion_tokens": count, "prompt_tokens": count}}
    answer = Answer.from_openai(completion({"content": "a"}) | usage)
    assert (answer.text, answer.completion_tokens, answer.prompt_tokens) == ("a", 0, None)
    listed = completion({"content": "a"}, logprobs={"content": 2 * [{"token": "a", "logprob": -1.0}]}) | usage
    assert Answer.from_openai(listed).completion_tokens == 2


@pytest.mark.parametrize(("count", "read"), [(0, 0), (12, 12), (12.0, 12), (MOST_TOKENS, MOST_TOKENS), (1e9, 10**9)])
def test_a_token_count_is_read_as_an_integer(count: float, read: int) -> None:
    """A count may be written as an integer or as a float with an integer value."""
    usage = {"completion_tokens": count, "prompt_tokens": count}
    answer = Answer.from_openai(completion({"content": "a"}) | {"usage": usage})
    assert (answer.completion_tokens, answer.prompt_tokens) == (read, read)
    assert type(answer.completion_tokens) is type(answer.prompt_tokens) is int


@pytest.mark.parametrize("usage", [None, {}, [], [1], 7, "none", True])
def test_a_missing_or_invalid_usage_is_ignored(usage: object) -> None:
    """The answer is read without token counts."""
    assert Answer.from_openai(completion({"content": "a"}) | {"usage": usage}) == Answer("a")


def test_surrogate_pairs_are_joined_and_lone_surrogates_replaced() -> None:
    """A lone surrogate could neither be written to the journal nor sent to a judge."""
    listed = [{"token": "\ud83d", "logprob": -1.0, "top_logprobs": [{"token": "\ude00", "logprob": -1.0}]}]
    body = completion({"content": "\ud83d\ude00 é \ud83d", "reasoning": "\ude00"}, logprobs={"content": listed})
    answer = Answer.from_openai(body)
    assert (answer.text, answer.reasoning) == ("😀 é \ufffd", "\ufffd")
    assert answer.tokens == (Token("\ufffd", -1.0, (-1.0,), ("\ufffd",)),)


@pytest.mark.parametrize(
    ("reason", "called", "finished"),
    [("stop", False, True), ("STOP", False, True), ("end_turn", False, True), ("length", False, False),
     ("tool_calls", True, True),
     ("tool_calls", False, False), ("content_filter", False, False), ("abort", False, False), ("length", True, False)],
)  # fmt: skip
def test_only_known_finish_reasons_mean_that_an_answer_is_complete(reason: str, called: bool, finished: bool) -> None:
    """An answer with any other finish reason counts as cut off and cannot be compared."""
    calls = ({"function": {"name": "f"}},) if called else ()
    assert Answer("4", finish_reason=reason, tool_calls=calls).finished is finished
