"""Anthropic's client, unmodified except for its address."""

from typing import Any

import anthropic
import pytest

from bpac.testing import Reply
from tests.gateway.doors.opened import ADD, CALLS, DRAFT, EXPERT, KEY, PIXEL, SCHEMA, Opened, Point

ASK: Any = {"model": "homework", "max_tokens": 100, "messages": [{"role": "user", "content": "6 * 7?"}]}
TOOLS: Any = [{"name": "add", "description": "Adds.", "input_schema": SCHEMA}]
THINKS: Any = {"thinking": {"type": "adaptive"}}


def answered(door: Opened, stream: bool, **more: Any) -> Any:
    """The message of an answer, whole or put together from a stream."""
    if not stream:
        return door.anthropic.messages.create(**ASK | more)
    with door.anthropic.messages.stream(**ASK | more) as events:
        return events.get_final_message()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ["kept", "early", "homework", "single"])
def test_text(door: Opened, route: str, stream: bool) -> None:
    """The answer, its tokens and why it ended; the first block is the text for callers who ask for no thinking."""
    message = answered(door, stream, model=route)
    (block,) = message.content
    reply = DRAFT if route in ("kept", "early") else EXPERT
    assert (block.type, block.text) == ("text", reply.text)
    assert (message.stop_reason, message.stop_sequence, message.role) == ("end_turn", None, "assistant")
    assert (message.usage.input_tokens, message.usage.output_tokens > 0) == (7, True)


def test_events_and_headers(door: Opened) -> None:
    """The events of a stream come in the documented order, and both headers with the id of the request are there."""
    with door.anthropic.messages.with_streaming_response.create(**ASK | THINKS, stream=True) as raw:
        headers, kinds = raw.headers, [event.type for event in raw.parse()]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    texts = [block[0], *[block[1]] * 3, block[2]]
    assert kinds == ["message_start", *block, *texts, "message_delta", "message_stop"]
    assert headers["x-bpac-answered-by"] == "expert"
    assert headers["request-id"] == headers["x-request-id"]


@pytest.mark.parametrize("stream", [False, True])
def test_thinking(door: Opened, stream: bool) -> None:
    """It is shown to callers who ask for it, and what they send back reaches the model as its reasoning."""
    message = answered(door, stream, **THINKS)
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[0].thinking == EXPERT.reasoning
    history = [
        *ASK["messages"],
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": "Sure?"},
    ]
    answered(door, stream, messages=history, **THINKS)
    said = door.asked()["messages"][1]
    assert said == {"role": "assistant", "content": EXPERT.text, "reasoning_content": EXPERT.reasoning}


@pytest.mark.parametrize(
    ("asked", "effort"),
    [
        ({"thinking": {"type": "disabled"}}, "none"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "low"),
        ({"thinking": {"type": "enabled", "budget_tokens": 31999}}, "high"),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}, "max"),
        ({"output_config": {"effort": "auto"}}, None),
        ({"thinking": {"type": "adaptive"}}, None),
    ],
)
def test_effort(door: Opened, asked: Any, effort: str | None) -> None:
    """Thinking and effort are one word in a chat; ``auto`` leaves it to the route."""
    answered(door, False, **asked)
    assert door.asked().get("reasoning_effort") == effort


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ["homework", "kept"])
def test_tools_there_and_back(door: Opened, route: str, stream: bool) -> None:
    """A call reaches the caller; the call and its result, also one with an image, reach the model."""
    door.play(CALLS, CALLS)
    choice = {"type": "tool", "name": "add", "disable_parallel_tool_use": True}
    message = answered(door, stream, model=route, tools=TOOLS, tool_choice=choice)
    assert message.stop_reason == "tool_use"
    (call,) = message.content
    assert (call.id, call.name, call.input) == ("call-1", "add", {"a": 1, "b": 2})
    asked = door.asked("draft")
    assert asked["tools"] == [
        {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": SCHEMA}}
    ]
    assert asked["tool_choice"] == {"type": "function", "function": {"name": "add"}}
    assert asked["parallel_tool_calls"] is False
    door.play(EXPERT)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "3"}, image]}
    failed = {"type": "tool_result", "tool_use_id": "call-2", "content": "no such file", "is_error": True}
    user = {"role": "user", "content": [result, failed, {"type": "text", "text": "Well?"}]}
    history = [*ASK["messages"], {"role": "assistant", "content": message.content}, user]
    assert answered(door, stream, messages=history, tools=TOOLS).content[-1].text == EXPERT.text
    messages = door.asked()["messages"]
    assert [one["role"] for one in messages] == ["user", "assistant", "tool", "tool", "user", "user"]
    calls = messages[1]["tool_calls"]
    assert (calls[0]["id"], calls[0]["function"]["name"]) == (ADD["id"], "add")
    assert [one["content"] for one in messages[2:4]] == ["3", "Error: no such file"]
    assert messages[4]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PIXEL}"
    assert messages[5]["content"] == "Well?"


def test_structured_output(door: Opened) -> None:
    """The schema reaches the models, and the client parses the answer, whole and streamed."""
    door.play(Reply('{"x": 1, "y": 2}'), Reply('{"x": 1, "y": 2}'))
    for route in ("homework", "kept"):
        assert door.anthropic.messages.parse(**ASK | {"model": route}, output_format=Point).parsed_output == Point(
            x=1, y=2
        )
        with door.anthropic.messages.stream(**ASK | {"model": route}, output_format=Point) as stream:
            assert stream.get_final_message().parsed_output == Point(x=1, y=2)
    wanted = door.asked("draft")["response_format"]
    assert wanted["json_schema"]["schema"]["required"] == ["x", "y"]


def test_everything_else_that_chats_have(door: Opened) -> None:
    """System prompts, images, documents, stop sequences, users and unknown fields arrive as a chat has them."""
    content = [
        {"type": "text", "text": "What is this?", "cache_control": {"type": "ephemeral"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "document", "title": "Notes", "source": {"type": "text", "media_type": "text/plain", "data": "6 * 7"}},
    ]
    system = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    more = {"temperature": 0.5, "top_k": 5, "seed": 7, "context_management": edits}
    answered(
        door, False, system=system, messages=[{"role": "user", "content": content}], stop_sequences=["\n"],
        metadata={"user_id": "anna"}, extra_body=more,
    )  # fmt: skip
    assert door.asked() == {
        "model": "expert",
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "text", "text": "Notes"}, {"type": "text", "text": "6 * 7"},
            ]},
        ],
        "max_tokens": 100, "temperature": 0.5, "top_k": 5, "seed": 7, "stop": ["\n"], "user": "anna",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("refused", "param"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"tools": [TOOLS[0], {"type": "bash_20250124", "name": "bash"}]}, "tools[1].type"),
        ({"messages": [{"role": "user", "content": [{"type": "search_result"}]}]}, "messages[0].content[0].type"),
        ({"extra_body": {"mcp_servers": [{"type": "url"}]}}, "mcp_servers"),
        ({"extra_body": {"container": "c"}}, "container"),
        ({"extra_body": {"context_management": {"edits": [{"type": "compact_20260112"}]}}},
         "context_management.edits[0].type"),
    ],
)  # fmt: skip
def test_what_chats_cannot_express_is_refused(door: Opened, refused: Any, param: str) -> None:
    """With status 400, the place, and a message that says what to do; no model is asked."""
    with pytest.raises(anthropic.BadRequestError) as caught:
        door.anthropic.messages.create(**ASK | refused)
    body: Any = caught.value.body
    assert body["type"] == "error"
    assert (body["error"]["type"], body["error"]["param"]) == ("invalid_request_error", param)
    assert body["error"]["code"] == "unsupported"
    assert body["request_id"] == caught.value.request_id
    assert door.models.requests == []


def test_errors(door: Opened) -> None:
    """A wrong key, an unknown route, malformed bodies and a refusing model, as the client knows them."""
    with anthropic.Anthropic(base_url=door.gateway.url, api_key="wrong", max_retries=0) as stranger:
        for ask in (lambda: stranger.messages.create(**ASK), stranger.models.list):
            with pytest.raises(anthropic.AuthenticationError):
                ask()
    expected: Any = [
        ({"model": "nothing"}, anthropic.NotFoundError, "not_found_error"),
        ({"max_tokens": 0}, anthropic.BadRequestError, "invalid_request_error"),
        ({"messages": []}, anthropic.BadRequestError, "invalid_request_error"),
    ]
    for wrong, kind, named in expected:
        with pytest.raises(kind) as caught:
            door.anthropic.messages.create(**ASK | wrong)
        assert caught.value.body["error"]["type"] == named
    refusals: Any = [
        (400, anthropic.BadRequestError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
    ]
    for status, kind in refusals:
        door.play(Reply("too long by far", status=status))
        for stream in (False, True):
            with pytest.raises(kind) as refused:
                answered(door, stream)
            assert ("too long by far" in str(refused.value)) is (status < 500)


def test_a_stream_that_is_cut_off(door: Opened) -> None:
    """The client raises an error after the text so far, and never sees the end of a message."""
    door.play(Reply("one two three", cut=3))
    seen: list[str] = []
    stream = door.anthropic.messages.create(**ASK, stream=True)
    with pytest.raises(anthropic.APIStatusError, match="no usable answer"):
        seen.extend(event.type for event in stream)
    assert "content_block_delta" in seen
    assert "message_stop" not in seen


@pytest.mark.parametrize(
    ("reply", "stopped"),
    [(Reply("It is", finish_reason="length"), "max_tokens"), (Reply("", finish_reason="content_filter"), "refusal"),
     (Reply(""), "end_turn")],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_answers_that_are_cut_or_empty(door: Opened, reply: Reply, stopped: str, stream: bool) -> None:
    """They say why they ended, and have as many blocks as there is text."""
    door.play(reply)
    message = answered(door, stream)
    assert message.stop_reason == stopped
    assert [block.text for block in message.content] == [reply.text] * bool(reply.text)


@pytest.mark.parametrize("arguments", ['{"a": 1', "not JSON", "[1]", ""])
def test_arguments_that_are_not_an_object(door: Opened, arguments: str) -> None:
    """A whole answer shows them in a field of their own; a stream passes them on as they came."""
    call = {**ADD, "function": {"name": "add", "arguments": arguments}}
    door.play(Reply("", tool_calls=(call,), finish_reason="tool_calls"))
    (block,) = answered(door, False, tools=TOOLS).content
    assert block.input == ({"_unparsed_arguments": arguments} if arguments else {})
    events = list(door.anthropic.messages.create(**ASK, tools=TOOLS, stream=True))
    deltas: Any = [event.delta for event in events if event.type == "content_block_delta"]
    assert "".join(delta.partial_json for delta in deltas) == arguments


def test_counting_and_models(door: Opened) -> None:
    """Tokens are estimated without asking a model, and the routes are listed as models."""
    raw = door.anthropic.messages.with_raw_response.count_tokens(
        model="homework", messages=[{"role": "user", "content": "word " * 700}], tools=TOOLS, system="Be brief."
    )
    assert raw.headers["x-bpac-estimated"] == "input_tokens"
    assert 900 < raw.parse().input_tokens < 1200
    assert door.models.requests == []
    with pytest.raises(anthropic.NotFoundError):
        door.anthropic.messages.count_tokens(model="nothing", messages=ASK["messages"])
    models = door.anthropic.models.list()
    assert {model.id for model in models} >= {"homework", "single"}
    assert door.anthropic.models.retrieve("homework").display_name == "homework"
    with pytest.raises(anthropic.NotFoundError, match="count_tokens only"):
        door.anthropic.messages.batches.retrieve("b1")


def test_a_key_as_a_bearer(door: Opened) -> None:
    """The client may send its key in ``Authorization``, too."""
    with anthropic.Anthropic(base_url=door.gateway.url, auth_token=KEY, max_retries=0) as client:
        assert client.messages.create(**ASK).content[0].text == EXPERT.text
