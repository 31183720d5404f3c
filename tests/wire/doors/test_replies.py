"""Replies in other formats: what servers do differently, what only one server can read, and what is malformed."""

from collections.abc import Callable
from typing import Any

import pytest

from bpac.errors import AnswerError
from bpac.wire.json import to_json
from bpac.wire.messages import request_reading as messages
from bpac.wire.messages.event_writing import MessageWriter
from bpac.wire.responses import request_reading as responses
from bpac.wire.responses.event_writing import ResponseWriter
from tests.wire.doors.accumulated import (
    anthropic_message,
    decoded,
    messages_events,
    openai_response,
    responses_events,
)
from tests.wire.doors.test_hostile_requests import WRONG, changed, with_change
from tests.wire.doors.test_streams import chunk

SIGNED = {"type": "thinking", "thinking": "hm", "signature": "sig"}
REDACTED = {"type": "redacted_thinking", "data": "secret"}
ENCRYPTED = {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "secret"}
ASKS = {"model": "m", "thinking": {"type": "adaptive"}}
WRITERS: list[Callable[[], Any]] = [
    lambda: ResponseWriter({"model": "m"}, "t", 1), lambda: MessageWriter(ASKS, "t", "req"),
]  # fmt: skip


def call(index: int | None, name: str = "", arguments: str = "", call_id: str = "") -> dict[str, Any]:
    """A part of a tool call."""
    found: dict[str, Any] = {"function": {"name": name or None, "arguments": arguments}}
    found |= {} if index is None else {"index": index}
    return found | ({"id": call_id} if call_id else {})


@pytest.mark.parametrize(
    "parts",
    [
        [call(0, "add", "{}", "c1"), call(0, "sub", "{}", "c2")],  # one index for all calls
        [call(None, "add", "{}", "c1"), call(None, "sub", "{}", "c2")],  # no index
        [call(None, "add", "", "c1"), call(None, "", "{}"), call(None, "sub", "{}", "c2")],
        [call(1, "sub", "{", "c2"), call(0, "add", "{", "c1"), call(0, "", "}"), call(1, "", "}")],  # in turns
        [call(0, "", "{", "c1"), call(0, "add", "}"), call(1, "sub", "{}", "c2")],  # the name comes late
    ],
)
@pytest.mark.parametrize("at_once", [False, True])
def test_tool_calls_as_servers_write_them(parts: list[dict[str, Any]], at_once: bool) -> None:
    """Two calls are two calls, whatever their indices, and whether they come in one chunk or in several."""
    deltas = [parts] if at_once else [[part] for part in parts]
    chunks = [chunk({"tool_calls": delta}) for delta in deltas]
    expected = {("c1", "add"), ("c2", "sub")}
    last, _ = openai_response(responses_events(chunks))
    assert {(one.call_id, one.name) for one in last.output} == expected
    assert {one.arguments for one in last.output} == {"{}"}
    message = anthropic_message(messages_events(chunks))
    assert {(one.id, one.name) for one in message.content} == expected
    assert message.stop_reason == "tool_use"


def test_a_call_that_goes_on_after_its_end() -> None:
    """At the door of messages it is an error: what came before cannot be taken back."""
    writer = MessageWriter(ASKS, "t", "req")
    writer.add(chunk({"tool_calls": [call(0, "add", "{}", "c1")]}))
    writer.add(chunk({"content": "so"}))
    writer.add(chunk({"tool_calls": [call(0, "", " \n")]}))
    with pytest.raises(AnswerError, match="after its end"):
        writer.add(chunk({"tool_calls": [call(0, "", ', "b": 1}')]}))


@pytest.mark.parametrize("asks", [ASKS, {"model": "m"}, {"thinking": {"type": "adaptive", "display": "omitted"}}])
def test_signed_thinking_is_always_shown_and_comes_back(asks: dict[str, Any]) -> None:
    """Whole and streamed, with its signature, as its server wrote it; the model gets it back unchanged."""
    message = {"content": "42", "reasoning_content": "hm", "thinking_blocks": [SIGNED, REDACTED]}
    whole = MessageWriter(asks, "t", "req").whole({"choices": [{"message": message}]})
    chunks = [chunk({"reasoning_content": "hm"}), chunk({"thinking_blocks": [SIGNED]}),
              chunk({"thinking_blocks": [REDACTED]}), chunk({"content": "42"})]  # fmt: skip
    found = [block.to_dict() for block in anthropic_message(messages_events(chunks, asks)).content]
    assert found == whole["content"]
    assert found == [SIGNED, REDACTED, {"type": "text", "text": "42"}]
    back = {"model": "m", "max_tokens": 9, "messages": [{"role": "assistant", "content": found}]}
    assert messages.read_request(back)["messages"][0]["thinking_blocks"] == found[:2]


def test_encrypted_reasoning_comes_back() -> None:
    """Whole and streamed, it is in the item of the reasoning, and the model gets it back."""
    message = {"content": "42", "reasoning_content": "hm", "reasoning_items": [ENCRYPTED]}
    whole = ResponseWriter(ASKS, "t", 1).whole({"choices": [{"message": message}]})
    chunks = [chunk({"reasoning_content": "hm"}), chunk({"reasoning_items": [ENCRYPTED]}), chunk({"content": "42"})]
    last, _ = openai_response(responses_events(chunks))
    found = [item.to_dict() for item in last.output]
    assert found == whole["output"]
    assert found[0]["encrypted_content"] == "secret"
    (said,) = responses.read_request({"model": "m", "input": found})["messages"]
    assert said["reasoning_items"][0]["encrypted_content"] == "secret"
    assert (said["content"], said["reasoning_content"]) == ("42", "hm")


def test_refusals() -> None:
    """A text in which the model refuses is a part of its own, or the reason why it stopped."""
    chunks = [chunk({"refusal": "I "}), chunk({"refusal": "cannot."}), chunk({}, finish_reason="stop")]
    last, _ = openai_response(responses_events(chunks))
    assert last.output[0].content[0].to_dict() == {"type": "refusal", "refusal": "I cannot."}
    message = anthropic_message(messages_events(chunks))
    assert (message.content[0].text, message.stop_reason) == ("I cannot.", "refusal")
    history = {"model": "m", "input": [item.to_dict() for item in last.output]}
    assert responses.read_request(history)["messages"][0]["refusal"] == "I cannot."


def test_stop_sequences_and_custom_tools_and_citations() -> None:
    """What only some servers say has its place, too."""
    stopped = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop", "stop_reason": "\n"}]}
    whole = MessageWriter({"model": "m", "stop_sequences": ["\n"]}, "t", "req").whole(stopped)
    assert (whole["stop_reason"], whole["stop_sequence"]) == ("stop_sequence", "\n")
    custom = {"id": "c1", "type": "custom", "custom": {"name": "run", "input": "ls"}}
    (item,) = ResponseWriter(ASKS, "t", 1).whole({"choices": [{"message": {"tool_calls": [custom]}}]})["output"]
    assert (item["type"], item["call_id"], item["input"]) == ("custom_tool_call", "c1", "ls")
    (said,) = responses.read_request({"model": "m", "input": [item]})["messages"]
    assert said["tool_calls"] == [custom]
    cited = {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}
    message = {"content": "a", "annotations": [cited]}
    (item,) = ResponseWriter(ASKS, "t", 1).whole({"choices": [{"message": message}]})["output"]
    assert item["content"][0]["annotations"][0]["url"] == "u"


def test_cached_tokens() -> None:
    """They are a part of the input in one API, and beside it in the other."""
    details = {"cached_tokens": 6, "cache_creation_tokens": 3}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": details}
    usage["completion_tokens_details"] = {"reasoning_tokens": 2}
    completion = {"choices": [{"message": {"content": "a"}}], "usage": usage}
    counted = MessageWriter(ASKS, "t", "req").whole(completion)["usage"]
    assert counted == {
        "input_tokens": 1, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 6, "output_tokens": 5,
        "output_tokens_details": {"thinking_tokens": 2},
    }  # fmt: skip
    counted = ResponseWriter(ASKS, "t", 1).whole(completion)["usage"]
    assert (counted["input_tokens"], counted["total_tokens"]) == (10, 15)
    assert counted["input_tokens_details"] == {"cached_tokens": 6, "cache_write_tokens": 3}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("whole", [True, False])
def test_malformed_answers_are_refused_or_read(writer: Callable[[], Any], whole: bool) -> None:
    """With a wrong value anywhere, they are an ``AnswerError`` or can be written; nothing else is raised."""
    said = {
        "role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "b"}],
        "reasoning_content": "r", "refusal": "no", "thinking_blocks": [SIGNED, REDACTED],
        "reasoning_items": [ENCRYPTED],
        "tool_calls": [call(0, "add", "{}", "c1"), {"index": 1, "custom": {"name": "c", "input": "x"}}],
        "annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}],
    }  # fmt: skip
    logprobs = {"content": [{"token": "a", "logprob": -0.1, "top_logprobs": []}]}
    choice = {"index": 0, "message" if whole else "delta": said, "finish_reason": "stop", "logprobs": logprobs}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}}
    body = {"model": "m", "choices": [choice], "usage": usage}
    refused = 0
    for place in changed(body):
        for wrong in WRONG:
            writing = writer()
            try:
                given = with_change(body, place, wrong)
                to_json(writing.whole(given)) if whole else decoded(writing.add(given) + writing.end())
            except AnswerError:
                refused += 1
    assert refused > 20
