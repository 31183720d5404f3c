"""Streams in other formats add up to what the whole reply says, whatever the order of the chunks."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpac.wire.messages.event_writing import MessageWriter
from bpac.wire.responses.event_writing import ResponseWriter
from tests.wire.doors.accumulated import anthropic_message, messages_events, openai_response, responses_events

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(TEXT, VALUES, max_size=3)
ASKS = {"model": "homework", "thinking": {"type": "adaptive"}}
BOUNDED = settings(max_examples=80, derandomize=True, database=None, deadline=None)


def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A chunk of a stream."""
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None, **more}]}


@st.composite
def answers(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A whole chat completion, and the chunks of the same answer: pieces of anything, in any order."""
    texts, thoughts = draw(st.lists(TEXT, max_size=3)), draw(st.lists(TEXT, max_size=3))
    calls: list[dict[str, Any]] = [
        {"id": f"call-{at}", "type": "function", "function": {"name": f"tool{at}", "arguments": json.dumps(arguments)}}
        for at, arguments in enumerate(draw(st.lists(ARGUMENTS, max_size=3)))
    ]
    streams = [[chunk({"content": text}) for text in texts], [chunk({"reasoning_content": text}) for text in thoughts]]
    for at, call in enumerate(calls):
        given_name = {**call, "index": at, "function": {**call["function"], "arguments": ""}}
        pieces = [chunk({"tool_calls": [given_name]})]
        text, size = call["function"]["arguments"], draw(st.integers(1, 9))
        for start in range(0, len(text), size):
            part = {"index": at, "function": {"arguments": text[start : start + size]}}
            pieces.append(chunk({"tool_calls": [part]}))
        streams.append(pieces)
    mixed = [chunk({"role": "assistant", "content": ""})]
    order = draw(st.permutations([at for at, pieces in enumerate(streams) for _ in pieces]))
    mixed += [streams[at].pop(0) for at in order]
    usage = {"prompt_tokens": draw(st.integers(0, 99)), "completion_tokens": draw(st.integers(0, 99))}
    finish = draw(st.sampled_from(["stop", "length", "content_filter", "tool_calls"]))
    mixed += [chunk({}, finish_reason=finish), {"choices": [], "usage": usage}]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts), "reasoning_content": "".join(thoughts)}
    message |= {"tool_calls": calls} if calls else {}
    return {"model": "m", "choices": [{"message": message, "finish_reason": finish}], "usage": usage}, mixed


@given(answers())
@BOUNDED
def test_responses_add_up(answer: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    """Text, reasoning, calls, usage and status are the same in the whole response, at the end and in between."""
    completion, chunks = answer
    whole = ResponseWriter(ASKS, "t", 1).whole(completion)
    events = responses_events(chunks, ASKS)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    last, snapshot = openai_response(events)
    for output in (last.output, snapshot.output):
        found = [item if isinstance(item, dict) else item.to_dict() for item in output]
        assert _said(found, "message", "content", "text") == _said(whole["output"], "message", "content", "text")
        calls = [(one["call_id"], one["name"], one["arguments"]) for one in found if one["type"] == "function_call"]
        expected = [call["function"] for call in completion["choices"][0]["message"].get("tool_calls", ())]
        assert sorted(calls) == [(f"call-{at}", one["name"], one["arguments"]) for at, one in enumerate(expected)]
    thought = _said([item.to_dict() for item in last.output], "reasoning", "summary", "text")
    assert thought == completion["choices"][0]["message"]["reasoning_content"]
    assert last.usage.to_dict() == whole["usage"]
    assert (last.status, last.incomplete_details and last.incomplete_details.to_dict()) == (
        whole["status"], whole["incomplete_details"],
    )  # fmt: skip


def _said(items: list[dict[str, Any]], kind: str, parts: str, field: str) -> str:
    return "".join(part[field] for item in items if item["type"] == kind for part in item[parts])


@given(answers())
@BOUNDED
def test_messages_add_up(answer: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    """Text, thinking, calls, usage and stop reason are the same, and blocks follow one another."""
    completion, chunks = answer
    whole = MessageWriter(ASKS, "t", "req").whole(completion)
    events = messages_events(chunks, ASKS)
    opened: list[int] = []
    for event in events:
        if event["type"] == "content_block_start":
            assert not opened
            opened.append(event["index"])
        elif event["type"].startswith("content_block_"):
            assert opened == [event["index"]]
            opened = opened if event["type"].endswith("delta") else []
    message = anthropic_message(events)
    found = [block.to_dict() for block in message.content]
    for kind, field in (("text", "text"), ("thinking", "thinking")):
        assert _joined(found, kind, field) == _joined(whole["content"], kind, field)
    calls = [(one["id"], one["name"], one["input"]) for one in found if one["type"] == "tool_use"]
    expected = completion["choices"][0]["message"].get("tool_calls", ())
    assert sorted(calls, key=lambda call: str(call[0])) == [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in expected
    ]
    assert {**message.usage.to_dict()} == whole["usage"]
    assert message.stop_reason == whole["stop_reason"]


def _joined(blocks: list[dict[str, Any]], kind: str, field: str) -> str:
    return "".join(block[field] for block in blocks if block["type"] == kind)


@pytest.mark.parametrize("pieces", [["6 \ud83d", "\ude00!"], ["\ud83d", "\ude00"], ["a\ud83d", "b"]])
def test_characters_split_over_chunks(pieces: list[str]) -> None:
    """Halves of a character come together; a half alone is replaced, and never breaks the JSON of an event."""
    chunks = [chunk({"content": piece}) for piece in pieces]
    joined = "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert openai_response(responses_events(chunks))[0].output_text == joined
    assert "".join(block.text for block in anthropic_message(messages_events(chunks)).content) == joined
