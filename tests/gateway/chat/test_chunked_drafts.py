"""Drafts that were buffered and are sent in chunks have what a stream of the model would have had."""

import json
from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from bpac.answer import Token
from bpac.testing import Reply, Request
from bpac.wire.rendering import chunks
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, pair

EXPERT = Reply("42")
CALL: Any = {"id": "call-1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
# Tool calls have tokens with log-probabilities, too.
TOKENS = (Token("<call>", -0.1, (-0.1, -3.0), ("<call>", "x")), Token("{…}", -0.2, (-0.2, -4.0), ("{…}", "y")))


def kept(body: dict[str, Any], ask: dict[str, Any], **route: Any) -> Any:
    """What a caller gets of that draft: its choice, or those of all the chunks if it is streamed."""
    draft = Reply(raw=json.dumps(body).encode())
    with Running(pair(draft, EXPERT), policy="never", **route) as (gateway, _):
        got = post(gateway.url, ASK | ask)
        assert (got.status, got.headers["x-bpac-answered-by"]) == (200, "draft")
        if not ask.get("stream"):
            return got.json["choices"][0]
        events = got.body.removesuffix(b"\n\n").split(b"\n\n")
        assert events.pop() == b"data: [DONE]"
        return [json.loads(event.removeprefix(b"data: "))["choices"][0] for event in events]


def completion(tokens: tuple[Token, ...] = TOKENS, **message: Any) -> dict[str, Any]:
    """A draft as its server sends it to those who ask for log-probabilities."""
    asked = Request(1, {"model": "draft", "messages": [], "logprobs": True, "top_logprobs": 5})
    body = Reply(tokens=tokens).body(asked)
    body["choices"][0]["message"].update(message)
    return body


def texts(choice: Any) -> list[str]:
    """The tokens whose log-probabilities are shown."""
    return [token["token"] for token in choice["logprobs"]["content"]]


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"content": None, "tool_calls": [CALL]}, {"tool_calls": [{"index": 0, **CALL}]}),
        ({"content": "", "tool_calls": [CALL]}, {"tool_calls": [{"index": 0, **CALL}]}),
        ({"content": "I add.", "tool_calls": [CALL]}, {"content": "I add."}),
    ],
)
def test_log_probabilities_are_in_one_chunk(message: dict[str, Any], place: dict[str, Any]) -> None:
    """With the first words; with the tool calls, if there are no words."""
    choices = kept(completion(**message), {"stream": True, "logprobs": True, "top_logprobs": 1})
    (found,) = (choice for choice in choices if choice.get("logprobs"))
    assert found["delta"] == place
    assert texts(found) == [token.text for token in TOKENS]
    assert [len(token["top_logprobs"]) for token in found["logprobs"]["content"]] == [1, 1]


def test_log_probabilities_of_an_empty_answer_are_in_the_last_chunk() -> None:
    """There is neither a word nor a tool call that they could come with."""
    written = [json.loads(chunk.removeprefix(b"data: ")) for chunk in chunks(completion(content=None), False)]
    assert [bool(chunk["choices"][0].get("logprobs")) for chunk in written] == [False, True]
    assert written[-1]["choices"][0]["delta"] == {}


def test_log_probabilities_are_left_out_unless_the_caller_asked_for_them() -> None:
    """Although the score has asked for them."""
    choices = kept(completion(content=None, tool_calls=[CALL]), {"stream": True})
    assert not any(choice.get("logprobs") for choice in choices)


def test_fields_of_the_server_are_in_the_last_chunk() -> None:
    """As vLLM sends them."""
    body = completion()
    body["choices"][0] |= {"stop_reason": 128009, "matched_stop": {"at": [1]}, "finish_reason": "eos"}
    *others, last = kept(body, {"stream": True})
    assert last == {
        "index": 0, "delta": {}, "finish_reason": "eos", "stop_reason": 128009, "matched_stop": {"at": [1]},
    }  # fmt: skip
    assert all(set(choice) <= {"index", "delta", "finish_reason"} for choice in others)


def test_an_empty_list_of_tool_calls_is_left_out() -> None:
    """Some servers list the tool calls of every answer; a stream without any does not."""
    choices = kept(completion(tool_calls=[]), {"stream": True})
    assert not any("tool_calls" in choice["delta"] for choice in choices)


@pytest.mark.parametrize("content", [None, "I add two numbers, one after the other, and say what comes of it."])
def test_the_official_client_reads_the_whole_draft(content: str | None) -> None:
    """Its text, tool calls, log-probabilities and finish reason."""
    draft = Reply(raw=json.dumps(completion(content=content, tool_calls=[CALL])).encode())
    with Running(pair(draft, EXPERT), policy="never") as (gateway, _):
        state: ChatCompletionStreamState[Any] = ChatCompletionStreamState()
        ask: dict[str, Any] = {**ASK, "logprobs": True, "top_logprobs": 2, "stream": True}
        for chunk in gateway.client().chat.completions.create(**ask):
            state.handle_chunk(chunk)
        choice = state.get_final_completion().choices[0]
    assert (choice.message.content, choice.finish_reason) == (content, "stop")
    assert [call.function.arguments for call in choice.message.tool_calls or ()] == ['{"a": 1}']
    assert choice.logprobs is not None
    assert [token.token for token in choice.logprobs.content or ()] == [token.text for token in TOKENS]


def tokens_of(*words: str) -> tuple[Token, ...]:
    """Tokens."""
    return tuple(Token(word, -0.1) for word in words)


LINE = ("\n\n", "Con", "fidence", ":", " 85", "%")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("content", "tokens", "shown"),
    [
        ("It is 42\n\nConfidence: 85%", ("It", " is", " 42", *LINE), ["It", " is", " 42"]),
        # A token that goes on into the white space belongs to the text.
        ("42.\n\nConfidence: 85%", ("42", ".\n", "\n", *LINE[1:]), ["42", ".\n"]),
        # Reasoning that has a field of its own, and a special token at the end that is not in the text.
        ("42\n\nConfidence: 85%", ("<think>", "6·7", "</think>", "\n\n", "42", *LINE, "<|im_end|>"),
         ["<think>", "6·7", "</think>", "\n\n", "42"]),
        ("Größe: 42 €\n\nConfidence: 85%", ("Grö", "ße", ": 42 €", *LINE), ["Grö", "ße", ": 42 €"]),
        ("Confidence: 85%", LINE[1:], []),
        # Without such a line there is nothing to hide.
        ("It is 42, confidence 85%", ("It is 42,", " confidence", " 85%"), ["It is 42,", " confidence", " 85%"]),
    ],
)  # fmt: skip
def test_tokens_of_a_confidence_line_are_cut_off_with_it(
    content: str, tokens: tuple[str, ...], shown: list[str], stream: bool
) -> None:
    """Those of the text stay, each as the server sent it."""
    body = completion(tokens_of(*tokens), content=content)
    got = kept(body, {"logprobs": True, "stream": stream}, score="verbalized")
    (choice,) = (one for one in got if one.get("logprobs")) if stream else (got,)
    assert texts(choice) == shown
    assert "Confidence" not in json.dumps(got)


def test_tokens_without_bytes_are_compared_by_their_texts() -> None:
    """Some servers leave the bytes out."""
    body = completion(tokens_of("42", *LINE), content="42\n\nConfidence: 85%")
    for token in body["choices"][0]["logprobs"]["content"]:
        del token["bytes"]
    assert texts(kept(body, {"logprobs": True}, score="verbalized")) == ["42"]


def damaged(logprobs: Any) -> Any:
    """Log-probabilities of tokens with impossible bytes."""
    return {"content": [{**token, "bytes": [300]} for token in logprobs["content"]]}


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        # Parts of a character that the server could not decode, and a token that is in both text and line.
        completion(tokens_of("4", "�", *LINE))["choices"][0]["logprobs"],
        completion(tokens_of("42\n\nCon", *LINE[2:]))["choices"][0]["logprobs"],
        damaged(completion(tokens_of("42", *LINE))["choices"][0]["logprobs"]),
        {"content": None},
        {"tokens": ["42", "Confidence"], "token_logprobs": [-0.1, -0.1]},
    ],
)
def test_log_probabilities_that_do_not_fit_the_text_are_left_out(logprobs: Any) -> None:
    """Those of the line cannot be separated from the others."""
    body = completion(content="42\n\nConfidence: 85%")
    body["choices"][0]["logprobs"] = logprobs
    choice = kept(body, {"logprobs": True}, score="verbalized")
    assert choice["message"]["content"] == "42"
    assert choice["logprobs"] is None


def test_a_lone_surrogate_in_a_draft_with_a_confidence_is_served() -> None:
    """It is in the text but in no token: the draft is served without log-probabilities."""
    body = completion(tokens_of("4\N{REPLACEMENT CHARACTER}", *LINE), content="4\ud83d\n\nConfidence: 85%")
    choice = kept(body, {"logprobs": True}, score="verbalized")
    assert (choice["message"]["content"], choice["logprobs"]) == ("4\ud83d", None)
