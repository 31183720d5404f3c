"""OpenAI's client with the Responses API, unmodified except for its address."""

import json
from typing import Any

import openai
import pytest

from bpac.testing import Reply
from tests.gateway.doors.opened import ADD, CALLS, DRAFT, EXPERT, PIXEL, SCHEMA, Opened, Point

TOOLS: Any = [{"type": "function", "name": "add", "parameters": SCHEMA, "strict": True}]
ROUTES = [("kept", "draft", DRAFT.text), ("early", "draft", DRAFT.text), ("homework", "expert", EXPERT.text),
          ("single", "expert", EXPERT.text)]  # fmt: skip


@pytest.mark.parametrize(("route", "by", "text"), ROUTES)
@pytest.mark.parametrize("stream", [False, True])
def test_text(door: Opened, route: str, by: str, text: str, stream: bool) -> None:
    """The answer, its reasoning and its tokens, whole and streamed, with the headers of the decision."""
    if stream:
        with door.openai.responses.with_streaming_response.create(model=route, input="6 * 7?", stream=True) as raw:
            headers, events = raw.headers, list(raw.parse())
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == text
        assert [event.sequence_number for event in events] == list(range(len(events)))
        answer: Any = events[-1].response
    else:
        whole = door.openai.responses.with_raw_response.create(model=route, input="6 * 7?")
        headers, answer = whole.headers, whole.parse()
    assert headers["x-bpac-answered-by"] == by
    assert (answer.status, answer.output_text) == ("completed", text)
    assert answer.usage.input_tokens == 7
    thoughts = [item.summary[0].text for item in answer.output if item.type == "reasoning"]
    assert thoughts == ([EXPERT.reasoning] if by == "expert" else [])
    assert answer.output[-1].content[0].logprobs == []


def test_the_stream_helper(door: Opened) -> None:
    """It accepts the order of the events, and its final response is the whole one."""
    with door.openai.responses.stream(model="homework", input="6 * 7?") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_text == EXPERT.text
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert {"response.reasoning_summary_text.delta", "response.content_part.added"} < set(kinds)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ["homework", "kept"])
def test_tools_there_and_back(door: Opened, route: str, stream: bool) -> None:
    """A call reaches the caller; the call and its result, with the reasoning, reach the model."""
    door.play(CALLS, CALLS)
    conversation: list[Any] = [{"role": "user", "content": "1 + 2?"}]
    if stream:
        with door.openai.responses.stream(model=route, input=conversation, tools=TOOLS) as events:
            output: Any = events.get_final_response().output
    else:
        output = door.openai.responses.create(
            model=route, input=conversation, tools=TOOLS, tool_choice={"type": "function", "name": "add"},
            parallel_tool_calls=False,
        ).output  # fmt: skip
        asked = door.asked("draft")
        assert asked["tool_choice"] == {"type": "function", "function": {"name": "add"}}
        assert asked["parallel_tool_calls"] is False
    (call,) = [item for item in output if item.type == "function_call"]
    assert (call.call_id, call.name, json.loads(call.arguments)) == ("call-1", "add", {"a": 1, "b": 2})
    assert door.asked("draft")["tools"] == [
        {"type": "function", "function": {"name": "add", "parameters": SCHEMA, "strict": True}}
    ]
    door.play(EXPERT)
    conversation += [item.to_dict() for item in output]
    conversation.append({"type": "function_call_output", "call_id": call.call_id, "output": "3"})
    assert door.openai.responses.create(model="homework", input=conversation, tools=TOOLS).output_text == EXPERT.text
    messages = door.asked()["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert messages[1]["tool_calls"] == [ADD]
    assert messages[2] == {"role": "tool", "tool_call_id": "call-1", "content": "3"}


def test_structured_output(door: Opened) -> None:
    """The schema reaches the models, and the client parses the answer, whole and streamed."""
    door.play(Reply('{"x": 1, "y": 2}'), Reply('{"x": 1, "y": 2}'))
    for route in ("homework", "kept"):
        parsed = door.openai.responses.parse(model=route, input="where?", text_format=Point)
        assert parsed.output_parsed == Point(x=1, y=2)
        with door.openai.responses.stream(model=route, input="where?", text_format=Point) as stream:
            assert stream.get_final_response().output_parsed == Point(x=1, y=2)
    wanted = door.asked("draft")["response_format"]
    assert (wanted["type"], wanted["json_schema"]["name"]) == ("json_schema", "Point")
    assert wanted["json_schema"]["schema"]["required"] == ["x", "y"]


def test_everything_else_that_chats_have(door: Opened) -> None:
    """Images, instructions, limits, effort, log-probabilities and unknown fields arrive as a chat has them."""
    answer = door.openai.responses.create(
        model="kept",
        instructions="Be brief.",
        input=[{
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "low"},
            ],
        }],
        max_output_tokens=50, temperature=0.5, reasoning={"effort": "auto", "summary": "auto"},
        include=["message.output_text.logprobs"], top_logprobs=1, metadata={"team": "a"}, store=True, user="anna",
        text={"verbosity": "low"}, extra_body={"seed": 7},
    )  # fmt: skip
    assert door.asked("draft") == {
        "model": "draft",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
            ]},
        ],
        "max_tokens": 50, "temperature": 0.5, "logprobs": True, "top_logprobs": 1, "metadata": {"team": "a"},
        "user": "anna", "verbosity": "low", "seed": 7,
    }  # fmt: skip
    message: Any = answer.output[-1]
    assert [token.token for token in message.content[0].logprobs][:2] == ["It", " is"]
    assert [len(token.top_logprobs) for token in message.content[0].logprobs][:2] == [1, 1]
    assert (answer.instructions, answer.metadata, answer.max_output_tokens) == ("Be brief.", {"team": "a"}, 50)


@pytest.mark.parametrize(
    ("refused", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [TOOLS[0], {"type": "file_search", "vector_store_ids": []}]}, "tools[1].type"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input[0].content[0]"),
    ],
)
def test_what_chats_cannot_express_is_refused(door: Opened, refused: Any, param: str) -> None:
    """With status 400, the place, and a message that says what to do; no model is asked, and it is counted."""
    before = door.gateway.service.rejections.counts.get("unsupported", 0)
    with pytest.raises(openai.BadRequestError) as caught:
        door.openai.responses.create(**{"model": "homework", "input": "6 * 7?", **refused})
    assert (caught.value.param, caught.value.code) == (param, "unsupported")
    assert len(caught.value.message) > 60
    assert door.models.requests == []
    assert door.gateway.service.rejections.counts["unsupported"] == before + 1


def test_errors(door: Opened) -> None:
    """A wrong key, an unknown route, a malformed body and a refusing model, as the client knows them."""
    with pytest.raises(openai.AuthenticationError):
        door.gateway.client("wrong").responses.create(model="homework", input="6 * 7?")
    with pytest.raises(openai.NotFoundError) as missing:
        door.openai.responses.create(model="nothing", input="6 * 7?")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as wrong:
        door.openai.responses.create(model="homework", input=7)
    assert wrong.value.param == "input"
    with pytest.raises(openai.NotFoundError) as kept:
        door.openai.responses.retrieve("resp_1")
    assert kept.value.code == "not_kept"
    door.play(Reply("too long by far", status=400))
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError, match="too long by far"):
            door.openai.responses.create(model="homework", input="6 * 7?", stream=stream)
    door.play(Reply("broken", status=500))
    with pytest.raises(openai.InternalServerError):
        door.openai.responses.create(model="homework", input="6 * 7?")


def test_a_stream_that_is_cut_off(door: Opened) -> None:
    """The client raises an error after the text so far; the last event says that the response has failed."""
    door.play(Reply("one two three", cut=3))
    seen: list[str] = []
    stream = door.openai.responses.create(model="homework", input="6 * 7?", stream=True)
    with pytest.raises(openai.APIError, match="no usable answer"):
        seen.extend(event.type for event in stream)
    assert "response.output_text.delta" in seen
    assert "response.completed" not in seen


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        (Reply("It is", finish_reason="length"), "incomplete", "max_output_tokens"),
        (Reply("", finish_reason="content_filter"), "incomplete", "content_filter"),
        (Reply(""), "completed", None),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_answers_that_are_cut_or_empty(
    door: Opened, reply: Reply, status: str, reason: str | None, stream: bool
) -> None:
    """They say so, and have an item all the same."""
    door.play(reply)
    if stream:
        last: Any = list(door.openai.responses.create(model="homework", input="6 * 7?", stream=True))[-1]
        assert last.type == f"response.{status}"
        answer = last.response
    else:
        answer = door.openai.responses.create(model="homework", input="6 * 7?")
    assert (answer.status, answer.incomplete_details and answer.incomplete_details.reason) == (status, reason)
    assert [item.type for item in answer.output] == ["message"]
    assert answer.output_text == reply.text
