"""Answers as servers give them."""

import math
from typing import Any

import pytest

from bpac.answer import Answer, Token, split_reasoning
from bpac.errors import AnswerError


def completion(message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    """A chat completion with that message."""
    return {"choices": [{"message": message, **choice}]}


def test_everything_a_server_says_is_read() -> None:
    """Text, thoughts, tokens, counts, the reason to stop and the calls come out as they went in."""
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
    ("content", "thought", "text"),
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
def test_thoughts_left_in_the_text_are_split_off(content: str, thought: str, text: str) -> None:
    """Also when one of the marks is missing."""
    assert split_reasoning(content) == (thought, text)


def test_an_answer_of_parts_is_joined() -> None:
    """Some servers give the content as a list of parts; null is no content."""
    assert Answer.from_openai(completion({"content": [{"type": "text", "text": "4"}, {"text": "2"}]})).text == "42"
    assert Answer.from_openai(completion({"content": None})).text == ""


def test_null_log_probabilities() -> None:
    """A token listed without one has NaN, which no score takes for a number; a rival without one has probability 0."""
    listed = [{"token": "a", "logprob": None, "top_logprobs": [{"token": "b", "logprob": None}]}]
    tokens = Answer.from_openai(completion({"content": "a"}, logprobs={"content": listed})).tokens
    assert tokens is not None
    assert math.isnan(tokens[0].logprob)
    assert tokens[0].top == (-math.inf,)


@pytest.mark.parametrize("logprobs", [None, {}, {"content": None}, {"tokens": ["a"], "token_logprobs": [-1.0]}])
def test_no_log_probabilities(logprobs: object) -> None:
    """None given is none, not an answer without tokens."""
    assert Answer.from_openai(completion({"content": "a"}, logprobs=logprobs)).tokens is None


@pytest.mark.parametrize(
    "body",
    [
        None, 42, "text", [], {}, {"choices": []}, {"choices": None}, {"choices": [{}]}, {"choices": [None]},
        {"error": {"message": "no"}}, completion({"content": 42}), completion({"content": [42]}),
        completion({"content": "a", "tool_calls": [42]}), completion({"content": "a"}, finish_reason=1),
        completion({"content": "a"}, logprobs={"content": [{"token": "a", "logprob": "high"}]}),
        completion({"content": "a"}, logprobs={"content": [{"logprob": -1.0}]}),
        completion({"content": "a"}) | {"usage": {"completion_tokens": math.inf}},
        completion({"content": "a"}) | {"usage": {"prompt_tokens": "many"}},
    ],
)  # fmt: skip
def test_what_is_no_completion_is_an_error(body: object) -> None:
    """Whatever a server sends, there is an answer or an ``AnswerError``, and nothing else."""
    with pytest.raises(AnswerError, match="not a chat completion"):
        Answer.from_openai(body)
