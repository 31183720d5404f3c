"""A draft that cannot be what was asked for has the uncertainty 1: it is a round, and is never served."""

import json
from typing import Any

import pytest

from bpac.answer import Answer
from bpac.gateway.chat.drafts.impossible_drafts import impossible, impossible_start
from bpac.testing import Reply
from tests.gateway.chat.test_json_schema import doubling
from tests.gateway.measured import metric
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, pair

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
JSON_SCHEMA: dict[str, Any] = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
}
JSON_OBJECT: dict[str, Any] = {"response_format": {"type": "json_object"}}
TOOLS: dict[str, Any] = {"tools": [{"type": "function", "function": {"name": "add", "parameters": SCHEMA}}]}
EXPERT = Reply('{"answer": 42}')


def call(name: str, arguments: str) -> dict[str, Any]:
    """A tool call."""
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}


def called(name: str, arguments: str) -> Reply:
    """A draft that calls a tool."""
    return Reply("", tool_calls=(call(name, arguments),), finish_reason="tool_calls")


IMPOSSIBLE: dict[str, tuple[Reply, dict[str, Any], str]] = {
    "empty": (Reply(""), {}, "empty"),
    "spaces": (Reply(" \n "), {}, "empty"),
    "cut off": (Reply("The answer is", finish_reason="length"), {}, "cut_off"),
    "cut off in JSON": (Reply('{"answer": 4', finish_reason="length"), JSON_SCHEMA, "cut_off"),
    "prose instead of JSON": (Reply("Sure! Here it is."), JSON_OBJECT, "not_json"),
    "a list instead of an object": (Reply("[1, 2]"), JSON_OBJECT, "not_json"),
    "fenced": (Reply('```json\n{"answer": 42}\n```'), JSON_SCHEMA, "not_json"),
    "wrong type": (Reply('{"answer": "42"}'), JSON_SCHEMA, "schema"),
    "missing field": (Reply('{"result": 42}'), JSON_SCHEMA, "schema"),
    "unknown tool": (called("multiply", '{"answer": 1}'), TOOLS, "tool_call"),
    "arguments that are no JSON": (called("add", '{"answer": '), TOOLS, "tool_call"),
    "arguments that do not fit": (called("add", '{"answer": "x"}'), TOOLS, "tool_call"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_an_impossible_draft_is_an_uncertain_round(case: str, stream: bool) -> None:
    """Even a policy that accepts every draft calls the expert; the round is counted, and so is the reason."""
    draft, ask, reason = IMPOSSIBLE[case]
    score = {"name": "mean_token_probability", "first_tokens": 64}
    with Running(pair(draft, EXPERT), policy="never", score=score) as (gateway, _):
        got = post(gateway.url, ASK | ask | {"stream": stream})
        gateway.idle()
        assert got.headers["x-bpac-answered-by"] == "expert"
        assert float(got.headers["x-bpac-uncertainty"]) == 1.0
        assert got.headers["x-bpac-decision"] != "unscored"
        status = gateway.status()
        assert (status["steps"], status["unscored"]["requests"]) == (1, 0)
        assert metric(gateway, "bpac_impossible_drafts_total", route="homework", reason=reason) == 1


POSSIBLE: dict[str, tuple[Reply, dict[str, Any]]] = {
    "text": (Reply("42"), {}),
    "an object": (Reply('{"answer": 41}'), JSON_OBJECT),
    "an object that fits": (Reply('{"answer": 41, "why": "so"}'), JSON_SCHEMA),
    "a call that fits": (
        Reply("I add.", tool_calls=(call("add", '{"answer": 41}'),), finish_reason="tool_calls"),
        TOOLS,
    ),
    "text instead of a call": (Reply("It is 42."), TOOLS),
    "any text": (Reply("Sure."), {"response_format": {"type": "text"}}),
    "a hostile schema": (
        Reply("1"),
        {"response_format": {"type": "json_schema", "json_schema": {"schema": doubling(20)}}},
    ),
    "a schema that is none": (Reply("1"), {"response_format": {"type": "json_schema", "json_schema": 5}}),
    "tools of another kind": (called("f", "{}"), {"tools": [{"type": "custom", "custom": {"name": "f"}}]}),
}


@pytest.mark.parametrize("case", POSSIBLE)
def test_other_drafts_keep_their_score(case: str) -> None:
    """What fits, and what cannot be checked, is left to the score."""
    draft, ask = POSSIBLE[case]
    spoken = Reply("so", tool_calls=draft.tool_calls, finish_reason=draft.finish_reason) if not draft.text else draft
    with Running(pair(spoken, EXPERT), policy="never") as (gateway, _):
        got = post(gateway.url, ASK | ask)
        gateway.idle()
        assert got.headers["x-bpac-answered-by"] == "draft"
        assert float(got.headers["x-bpac-uncertainty"]) == pytest.approx(0.1)


def test_the_start_of_a_streamed_draft_can_be_enough() -> None:
    """JSON was asked for and prose begins: it is known after one token, long before the draft ends."""
    draft = Reply("Sure! " + "word " * 100)
    with Running(pair(draft, EXPERT), policy="never", score={"first_tokens": 1}) as (gateway, _):
        got = post(gateway.url, ASK | JSON_SCHEMA | {"stream": True})
        gateway.idle()
        assert got.headers["x-bpac-uncertainty"] == "1.0"
        assert metric(gateway, "bpac_impossible_drafts_total", route="homework", reason="not_json") == 1


def test_a_streamed_draft_that_goes_wrong_later_is_graded_as_a_loss() -> None:
    """It was decided by its first tokens; an audit of it counts as loss 1, because it was cut off."""
    draft = Reply('{"answer": 42 ' + "and so on " * 20, finish_reason="length")
    route: dict[str, Any] = {"score": {"first_tokens": 1}, "policy": "always", "on_takeover": "finish"}
    with Running(pair(draft, EXPERT), **route) as (gateway, _):
        got = post(gateway.url, ASK | JSON_SCHEMA | {"stream": True})
        gateway.idle()
        assert float(got.headers["x-bpac-uncertainty"]) == pytest.approx(0.1)
        assert gateway.status()["forfeits"] == {"grader failed": 1}


@pytest.mark.parametrize(
    ("body", "text", "reason"),
    [
        (JSON_OBJECT, " \n{", ""),
        (JSON_OBJECT, "[", "not_json"),
        (JSON_SCHEMA, "[", ""),
        (JSON_SCHEMA, "```", "not_json"),
        (JSON_SCHEMA, "", ""),
        (JSON_SCHEMA, "<think>Sure", ""),
        ({}, "Sure", ""),
    ],
)
def test_starts_of_drafts(body: dict[str, Any], text: str, reason: str) -> None:
    """Thinking before the answer, or nothing yet, says nothing."""
    start = Answer.from_openai({"choices": [{"message": {"content": text}}]})
    assert impossible_start(body, start) == reason


@pytest.mark.parametrize("tools", [5, [5], [{"function": 5}], [{"function": {"name": []}}], [], {}])
@pytest.mark.parametrize("function", [5, {}, {"name": [], "arguments": []}, {"name": "f", "arguments": {"a": 1}}])
def test_malformed_tools_are_no_error(tools: Any, function: Any) -> None:
    """Callers and servers may send anything."""
    assert impossible({"tools": tools}, Answer("x", tool_calls=({"function": function},))) in ("", "tool_call")
    assert impossible({"response_format": tools}, Answer(json.dumps(function))) == ""
