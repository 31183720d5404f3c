"""Requests that are read as chats and written again for a model with the same API are the same as before."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpac.errors import AnswerError
from bpac.wire.messages import request_reading as messages
from bpac.wire.messages.event_writing import MessageWriter
from bpac.wire.messages.request_writing import write_request as write_messages
from bpac.wire.original_events import OriginalEvents
from bpac.wire.originals import ORIGINAL, check_no_original, for_api, in_own_words, without_originals
from bpac.wire.responses import request_reading as responses
from bpac.wire.responses.event_writing import ResponseWriter
from bpac.wire.responses.request_writing import write_request as write_responses
from bpac.wire.signers import marked, own_thinking, signer_of
from bpac.wire.translating import NotExpressible
from tests.gateway.doors.rich import names

words = st.text("ab~ ", min_size=1, max_size=5)
signatures = st.text("AZaz09+/=", min_size=1, max_size=9)
cached = st.fixed_dictionaries({}, optional={"cache_control": st.just({"type": "ephemeral"})})


def block(kind: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    """A block with these fields, perhaps one that is cached."""
    found = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return st.builds(lambda one, more: {**one, **more}, found, cached)


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    """One of some values."""
    return st.sampled_from(values)


texts = block("text", text=words)
images = block("image", source=one_of(
    {"type": "url", "url": "u"}, {"type": "base64", "media_type": "image/PNG", "data": "d"},
))  # fmt: skip
documents = block(
    "document", title=words, context=words,
    source=one_of({"type": "text", "media_type": "text/plain", "data": "d"}, {"type": "url", "url": "u"},
                  {"type": "content", "content": [{"type": "text", "text": "t"}]}),
)  # fmt: skip
results = block(
    "tool_result", tool_use_id=one_of("a", "b"), is_error=st.booleans(),
    content=st.one_of(words, st.lists(st.one_of(texts, images), min_size=1, max_size=2)),
)  # fmt: skip
answers = st.one_of(
    texts, block("thinking", thinking=words, signature=signatures), block("redacted_thinking", data=signatures),
    block("tool_use", id=one_of("a", "b"), name=words, input=one_of({}, {"x": 1})),
    block("server_tool_use", id=words, name=words, input=one_of({}, {"x": 1})),
)  # fmt: skip
spoken = st.one_of(texts, images, documents, block("search_result", source=words))


@st.composite
def messages_requests(draw: st.DrawFn) -> dict[str, Any]:
    """Requests of the Messages API."""
    turns: list[Any] = []
    for number in range(draw(st.integers(1, 4))):
        if number % 2:
            content = draw(st.lists(answers, min_size=1, max_size=4))
        else:
            content = draw(st.lists(results, max_size=2)) + draw(st.lists(spoken, min_size=1, max_size=3))
        turns.append({"role": "assistant" if number % 2 else "user", "content": content})
    optional = {
        "system": st.lists(texts, min_size=1, max_size=2), "temperature": one_of(0.0, 1.0), "top_k": one_of(1, 9),
        "thinking": one_of({"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}),
        "metadata": one_of({"user_id": "anna"}, {"team": "a"}), "service_tier": one_of("auto", "standard_only"),
        "stop_sequences": st.lists(words, min_size=1, max_size=2), "speed": one_of("fast"),
        "output_config": one_of({"effort": "low"}, {"effort": "max", "task_budget": {"total": 9}}),
        "context_management": one_of({"edits": [{"type": "clear_thinking"}]}, {"edits": [{"type": "compact"}]}),
        "inference_geo": one_of("us"), "mcp_servers": one_of([{"type": "url", "url": "u", "name": "n"}]),
        "tools": st.lists(one_of(
            {"name": "a", "input_schema": {"type": "object"}, "strict": True, "cache_control": {"type": "ephemeral"}},
            {"type": "custom", "name": "b", "input_schema": {"type": "object"}, "defer_loading": True},
            {"type": "bash_20250124", "name": "bash"},
        ), min_size=1, max_size=3),
    }  # fmt: skip
    more = draw(st.fixed_dictionaries({}, optional=optional))
    if "tools" in more and draw(st.booleans()):
        choices = ({"type": "any"}, {"type": "auto", "disable_parallel_tool_use": True}, {"type": "tool", "name": "a"})
        more["tool_choice"] = draw(one_of(*choices))
    return {"model": "m", "max_tokens": 9, "messages": turns, **more}


def plain(content: Any) -> Any:
    """A content; a text by itself is the same as a list with that text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@settings(max_examples=60, deadline=None)
@given(messages_requests())
def test_messages(asked: dict[str, Any]) -> None:
    """Nothing is lost; other models get nothing of the gateway's own, or are not asked."""
    before = json.dumps(asked)
    chat = messages.read_request(asked)
    written = write_messages(in_own_words(chat, "messages"), 5)
    written["messages"] = [{**turn, "content": plain(turn["content"])} for turn in written["messages"]]
    written |= {"system": plain(written["system"])} if "system" in written else {}
    assert written == asked
    assert json.dumps(asked) == before
    others(chat)


def others(chat: dict[str, Any]) -> None:
    """What models with other APIs get."""
    assert ORIGINAL not in set(names(without_originals(chat)))
    for api in ("chat", "responses", "messages"):
        try:
            found = for_api(chat, api)
        except NotExpressible:
            assert api != chat[ORIGINAL]["api"]
            continue
        assert (ORIGINAL in set(names(found))) is (api == chat[ORIGINAL]["api"])


parts = st.lists(one_of(
    {"type": "input_text", "text": "a"}, {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {}},
    {"type": "input_image", "image_url": "u", "detail": "original"}, {"type": "input_file", "file_url": "u"},
    {"type": "input_file", "file_id": "f", "detail": "high"},
), min_size=1, max_size=3)  # fmt: skip
items = one_of(
    {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"},
    {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "a"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    {"type": "function_call", "call_id": "c", "name": "a", "arguments": "{", "namespace": "n"},
    {"type": "custom_tool_call", "call_id": "d", "name": "b", "input": "x"},
    {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": "u"}]},
    {"type": "custom_tool_call_output", "call_id": "d", "output": "3"},
    {"type": "web_search_call", "id": "w", "status": "completed"},
    {"type": "message", "role": "developer", "content": "a", "status": "completed"},
)


@st.composite
def responses_requests(draw: st.DrawFn) -> dict[str, Any]:
    """Requests of the Responses API."""
    asked = draw(st.lists(st.one_of(items, st.builds(
        lambda role, content: {"type": "message", "role": role, "content": content}, one_of("user", "system"), parts,
    )), min_size=1, max_size=5))  # fmt: skip
    optional = {
        "instructions": words, "temperature": one_of(0.0, 1.0), "max_output_tokens": one_of(1, 99),
        "reasoning": one_of({"effort": "high"}, {"summary": "auto"}, {"effort": "low", "summary": "concise"}),
        "include": one_of(["reasoning.encrypted_content"], ["message.input_image.image_url"]),
        "text": one_of({"verbosity": "low"}, {"format": {"type": "json_schema", "name": "n", "schema": {}}}),
        "prompt_cache_key": words, "safety_identifier": words, "service_tier": one_of("flex"), "metadata": one_of({}),
        "max_tool_calls": one_of(1), "truncation": one_of("auto", "disabled"), "parallel_tool_calls": st.booleans(),
        "tools": st.lists(one_of(
            {"type": "function", "name": "a", "parameters": {}, "strict": None, "output_schema": {}},
            {"type": "function", "name": "b", "parameters": None, "strict": True}, {"type": "web_search"},
            {"type": "custom", "name": "c", "format": {"type": "text"}},
        ), min_size=1, max_size=3),
    }  # fmt: skip
    more = draw(st.fixed_dictionaries({}, optional=optional))
    if "tools" in more and draw(st.booleans()):
        more["tool_choice"] = draw(one_of("required", {"type": "custom", "name": "c"}, {"type": "web_search"}))
    return {"model": "m", "input": asked, **more}


@settings(max_examples=60, deadline=None)
@given(responses_requests())
def test_responses(asked: dict[str, Any]) -> None:
    """Nothing is lost; other models get nothing of the gateway's own, or are not asked."""
    before = json.dumps(asked)
    chat = responses.read_request(asked)
    written = write_responses(chat)
    written["input"] = [
        {**item, "content": [{"type": "input_text", "text": item["content"]}]}
        if item.get("role") in ("user", "system") and isinstance(item["content"], str)
        else item
        for item in written["input"]
    ]
    assert written == {"store": False, **asked}
    assert json.dumps(asked) == before
    others(chat)


@given(signatures, st.sampled_from(["thinking", "redacted_thinking", "reasoning"]))
def test_signatures_come_back_to_their_signer_as_they_were(signature: str, kind: str) -> None:
    """Another model, or the same one on another server, gets none of them."""
    field = {"thinking": "signature", "redacted_thinking": "data", "reasoning": "encrypted_content"}[kind]
    given_block = {"type": kind, field: signature}
    signer, other = signer_of("https://a", "m"), signer_of("https://b", "m")
    for reply in ({"content": [given_block]}, {"response": {"output": [given_block]}}, {"content_block": given_block}):
        sent = json.loads(marked(json.dumps(reply).encode(), signer))
        found = next(one for one in (sent.get("content") or sent.get("response", {}).get("output") or [None]))
        found = found or sent["content_block"]
        assert found[field] != signature
        assert own_thinking(found, signer) == given_block
        assert own_thinking(found, other) is None
    assert own_thinking(given_block, other) == given_block  # nobody knows whose it is: its server decides
    assert own_thinking({"type": kind, field: f"~{signer}"}, signer) is None


class _Read:
    """Translates each event to as many chunks as it says."""

    def feed(self, events: list[bytes]) -> tuple[list[bytes], bool]:
        (event,) = map(json.loads, events)
        return [b'{"choices":[]}'] * event.get("chunks", 0), event["type"] == "end"


def test_events_without_a_chunk_are_kept_for_the_next_one() -> None:
    """Each event is kept once, in its order, however they arrive."""
    events = [{"type": kind, "chunks": count} for kind, count in (("a", 0), ("b", 2), ("c", 0), ("d", 1), ("end", 1))]
    for split in range(len(events)):
        reader = OriginalEvents(_Read(), "", originals=True)
        data = [json.dumps(event).encode() for event in events]
        chunks = [*reader.feed(data[:split])[0], *reader.feed(data[split:])[0]]
        kept = [event for chunk in chunks for event in json.loads(chunk).get(ORIGINAL, {}).get("events", ())]
        assert kept == events


@pytest.mark.parametrize("original", [None, 7, [], {}, {"events": 7}, {"events": [7]}, {"reply": 7}, {"reply": {}}])
@pytest.mark.parametrize("write", [lambda: MessageWriter({}, "t", "r"), lambda: ResponseWriter({}, "t", 1)])
def test_originals_of_a_wrong_kind_are_answers_that_cannot_be_used(original: Any, write: Any) -> None:
    """They are errors that the door reports, and not failures of the gateway."""
    for answer in ("add", "whole"):
        with suppress(AnswerError):  # a message may be empty, and so is no error everywhere
            getattr(write(), answer)({"choices": [], ORIGINAL: original})


def test_events_cannot_break_out_of_their_line() -> None:
    """The type of an event, which is its name in the stream, is a word."""
    events = [{"type": "ping\ndata: 1"}, {"type": "ping"}]
    for writer in (MessageWriter({}, "t", "r"), ResponseWriter({}, "t", 1)):
        assert b"data: 1" not in writer.add({"choices": [], ORIGINAL: {"events": events}})


def test_answers_of_chat_servers_have_no_originals() -> None:
    """Neither under that name nor under the same one with escapes; as a word in a text it is allowed."""
    fine = json.dumps({"choices": [{"message": {"content": f'"{ORIGINAL}": \u00e9'}}]}).encode()
    assert check_no_original(fine) == fine
    for key in (ORIGINAL, ORIGINAL.replace("o", "\\u006f")):
        with pytest.raises(AnswerError, match=ORIGINAL):
            check_no_original(b'{"choices": [], "%b": {}}' % key.encode())
