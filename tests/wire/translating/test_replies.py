"""Replies of both APIs become chat completions that say the same, whole and streamed."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from bpac.answer import Answer, Token
from bpac.errors import AnswerError
from bpac.models.api import Translation, model_api
from bpac.testing import Reply, Request
from bpac.testing.messages_format import SIGNATURE
from bpac.wire.completions import read_completion
from bpac.wire.messages.event_reading import MessageEvents
from bpac.wire.responses.event_reading import ResponseEvents
from bpac.wire.stream import Transcript, read_events
from bpac.wire.translating import EventReader, ReportedError
from tests.wire.translating.chats import (
    CALLS,
    CHUNK,
    COMPLETION,
    MESSAGE,
    MESSAGE_EVENT,
    RESPONSE,
    RESPONSE_EVENT,
)

FORMATS = {"responses": (RESPONSE, RESPONSE_EVENT), "messages": (MESSAGE, MESSAGE_EVENT)}
API = pytest.mark.parametrize("api", ["responses", "messages"])
HOW = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
TOLD = [CALLS[0], {**CALLS[1], "function": {"name": "now", "arguments": "{}"}}]
TOKENS = (Token("4", -0.1, (-0.1, -2.5), ("4", "5")), Token("2", -0.7, (-0.7, -0.9), ("2", "1")))


def translation(api: str) -> Translation:
    """How an API is translated."""
    found = model_api(api).translation  # type: ignore[arg-type]
    assert found is not None
    return found


def asked(api: str) -> Request:
    """A request for log-probabilities and all that is encrypted."""
    include = ["message.output_text.logprobs", "reasoning.encrypted_content"]
    return Request(1, {"model": "m", "include": include, "top_logprobs": 2}, path=f"/v1/{api}")


def told(reply: Reply, api: str, stream: bool) -> tuple[Answer, list[dict[str, Any]]]:
    """The answer that a reply is after its translation, and the chat completions or chunks; all are valid."""
    whole, event = FORMATS[api]
    if not stream:
        body = reply.body(asked(api))
        whole.validate_python(body)
        completion = read_completion(translation(api).whole(json.dumps(body).encode()))
        COMPLETION.validate_python(completion.body())
        return completion.answer, [completion.body()]
    found = [one for one in reply.chunks(asked(api)) if one["type"] != "ping" and event.validate_python(one)]
    chunks, done = translation(api).stream().feed([json.dumps(one).encode() for one in found])
    assert done
    for chunk in chunks:
        CHUNK.validate_json(chunk)
    transcript = Transcript()
    transcript.add(read_events(chunks))
    return transcript.answer(), [json.loads(chunk) for chunk in chunks]


@API
@HOW
def test_a_text_with_thinking_says_the_same(api: str, stream: bool) -> None:
    """Text, thinking, the finish reason and all counts of tokens are read."""
    reply = Reply("The answer is 42", reasoning="6 times 7", cached_tokens=5)
    answer, found = told(reply, api, stream)
    assert (answer.text, answer.reasoning, answer.finish_reason) == ("The answer is 42", "6 times 7", "stop")
    assert (answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens) == (7, 5, 7)
    assert found[-1]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 3}
    assert {one["model"] for one in found} == {"m"}


@API
@HOW
def test_parallel_tool_calls_say_the_same(api: str, stream: bool) -> None:
    """Ids, names and arguments."""
    answer, _ = told(Reply("", tool_calls=tuple(TOLD), finish_reason="tool_calls"), api, stream)
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in answer.tool_calls
    ]
    assert calls == [("call_a", "weather", {"city": "Oslo"}), ("call_b", "now", {})]
    assert answer.finish_reason == "tool_calls"
    assert answer.finished


@HOW
def test_log_probabilities_of_the_responses_api_are_those_of_a_chat(stream: bool) -> None:
    """Scores are computed from them."""
    answer, _ = told(Reply(tokens=TOKENS), "responses", stream)
    assert [(one.text, one.logprob, one.top, one.top_texts) for one in answer.tokens or ()] == [
        (one.text, one.logprob, one.top, one.top_texts) for one in TOKENS
    ]


@API
@HOW
@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_answers_that_were_cut_off_say_so(api: str, stream: bool, reason: str) -> None:
    """An answer that was cut off might have gone on in any way, so it must not count as one that ended."""
    answer, _ = told(Reply("42", finish_reason=reason), api, stream)
    assert answer.finish_reason == reason
    assert not answer.finished


@pytest.mark.parametrize("stopped", ["pause_turn", "model_context_window_exceeded", "invented", 7, None])
def test_unknown_reasons_to_stop_count_as_cut_off(stopped: Any) -> None:
    """Only reasons that are known to mean that the model came to its end count as such."""
    body = Reply("42").body(asked("messages")) | {"stop_reason": stopped}
    assert read_completion(translation("messages").whole(json.dumps(body).encode())).answer.finish_reason == "length"
    events = [*Reply("42").chunks(asked("messages"))]
    events[-2]["delta"]["stop_reason"] = stopped
    chunks, _ = translation("messages").stream().feed([json.dumps(one).encode() for one in events])
    reasons = {choice["finish_reason"] for chunk in chunks for choice in json.loads(chunk)["choices"]}
    assert reasons == {None, "length"}


@HOW
def test_signed_thinking_can_be_sent_back(stream: bool) -> None:
    """What an answer has in ``thinking_blocks`` or ``reasoning_items`` is what requests accept in earlier answers."""
    for api, field in (("messages", "thinking_blocks"), ("responses", "reasoning_items")):
        _, found = told(Reply("42", reasoning="6 times 7"), api, stream)
        messages = [one["choices"][0]["delta" if stream else "message"] for one in found if one["choices"]]
        (blocks,) = [message[field] for message in messages if field in message]
        history = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "42", field: blocks}]
        request = translation(api).write({"model": "m", "messages": history})
        sent = request["messages"][1]["content"] if api == "messages" else request["input"][1:]
        assert sent[0] == blocks[0]
        assert (SIGNATURE if api == "messages" else "gAAAAscripted") in json.dumps(sent[0])


@HOW
def test_refusals_of_the_responses_api_are_refusals_of_a_chat(stream: bool) -> None:
    """The text of a refusal is not an answer."""
    part = {"type": "refusal", "refusal": "I cannot."}
    item = {"id": "msg", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    body = Reply("").body(asked("responses")) | {"output": [item]}
    RESPONSE.validate_python(body)
    if stream:
        at = {"item_id": "msg", "output_index": 0, "content_index": 0}
        events: list[dict[str, Any]] = [{"type": "response.refusal.delta", **at, "delta": "I cannot."}]
        events.append({"type": "response.completed", "response": body})
        chunks, _ = translation("responses").stream().feed([json.dumps(one).encode() for one in events])
        message = json.loads(chunks[0])["choices"][0]["delta"]
    else:
        message = json.loads(translation("responses").whole(json.dumps(body).encode()))["choices"][0]["message"]
    assert message["refusal"] == "I cannot."
    assert message.get("content") is None


def test_refusals_of_the_messages_api_are_refusals_of_a_chat() -> None:
    """With the reason that the server gives."""
    details = {"type": "refusal", "category": "cyber", "explanation": "It is not allowed."}
    body = Reply("").body(asked("messages")) | {"stop_reason": "refusal", "stop_details": details}
    MESSAGE.validate_python(body)
    choice = json.loads(translation("messages").whole(json.dumps(body).encode()))["choices"][0]
    assert (choice["message"]["refusal"], choice["finish_reason"]) == ("It is not allowed.", "content_filter")


def test_tokens_written_to_a_cache_are_tokens_of_the_prompt() -> None:
    """Anthropic counts three parts of a prompt, each billed, and the chat API their sum."""
    counted = {"input_tokens": 3, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 5}
    body = Reply("42").body(asked("messages")) | {"usage": counted}
    answer = read_completion(translation("messages").whole(json.dumps(body).encode())).answer
    assert (answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens) == (123, 20, 5)


@pytest.mark.parametrize(
    "spoiled", [{"input_tokens": None}, {"cache_read_input_tokens": -1}, {"output_tokens": "many"}, 7]
)
def test_impossible_counts_are_no_counts(spoiled: Any) -> None:
    """They are estimated then, from above."""
    body = Reply("42").body(asked("messages"))
    body["usage"] = {**body["usage"], **spoiled} if isinstance(spoiled, dict) else spoiled
    assert read_completion(translation("messages").whole(json.dumps(body).encode())).answer.prompt_tokens is None


@API
def test_what_is_not_known_is_kept_and_does_no_harm(api: str) -> None:
    """New kinds of blocks, items and events come without notice."""
    body = Reply("42").body(asked(api))
    field, kept = ("output", "other_items") if api == "responses" else ("content", "other_blocks")
    body[field].insert(0, {"type": "invented", "x": 1})
    message = json.loads(translation(api).whole(json.dumps(body).encode()))["choices"][0]["message"]
    assert (message["content"], message[kept]) == ("42", [{"type": "invented", "x": 1}])
    events = [*Reply("42").chunks(asked(api)), {"type": "invented"}]
    events.insert(2, {"type": "invented.delta", "delta": 7, "index": 99})
    events.insert(2, {"type": "content_block_delta", "index": 99, "delta": {"type": "invented_delta"}})
    transcript = Transcript()
    transcript.add(read_events(translation(api).stream().feed([json.dumps(one).encode() for one in events])[0]))
    assert transcript.answer().text == "42"


def test_interleaved_blocks_are_told_apart() -> None:
    """Deltas of a text and of two calls come in any order."""
    start, delta = "content_block_start", "content_block_delta"
    events = [
        {"type": start, "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}}},
        {"type": start, "index": 1, "content_block": {"type": "tool_use", "id": "b", "name": "g", "input": {}}},
        {"type": start, "index": 2, "content_block": {"type": "text", "text": ""}},
        {"type": delta, "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"x":'}},
        {"type": delta, "index": 2, "delta": {"type": "text_delta", "text": "so"}},
        {"type": delta, "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"y": 2}'}},
        {"type": delta, "index": 1, "delta": {"type": "input_json_delta", "partial_json": " 1}"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
    ]
    transcript = Transcript()
    transcript.add(read_events(translation("messages").stream().feed([json.dumps(one).encode() for one in events])[0]))
    calls = [(call["id"], call["function"]) for call in transcript.answer().tool_calls]
    assert calls == [
        ("a", {"name": "f", "arguments": '{"y": 2}'}),
        ("b", {"name": "g", "arguments": '{"x": 1}'}),
    ]
    assert transcript.answer().text == "so"


def test_a_stream_without_deltas_is_read_from_its_last_event() -> None:
    """Some servers send the whole response at once although a stream was asked for."""
    reply = Reply("The answer", tool_calls=(CALLS[0],), finish_reason="tool_calls")
    last = [*reply.chunks(asked("responses"))][-1]
    transcript = Transcript()
    transcript.add(read_events(translation("responses").stream().feed([json.dumps(last).encode()])[0]))
    answer = transcript.answer()
    assert (answer.text, answer.tool_calls[0]["function"], len(answer.tokens or ())) == (
        "The answer",
        CALLS[0]["function"],
        2,
    )


FAILURES: list[tuple[dict[str, Any], bool]] = [
    ({"code": "server_error", "message": "?"}, False),
    ({"code": "rate_limit_exceeded", "message": "?"}, False),
    ({"type": "overloaded_error", "message": "Overloaded"}, False),
    ({"type": "api_error", "message": "?"}, False),
    ({"code": "invalid_prompt", "message": "?"}, True),
    ({"code": "image_too_large", "message": "?"}, True),
    ({"type": "invalid_request_error", "message": "?"}, True),
    ({}, False),
]


@pytest.mark.parametrize(("error", "refused"), FAILURES)
def test_reported_errors_say_whose_fault_it_is(error: dict[str, Any], refused: bool) -> None:
    """In whole responses, in streams, and however they are nested."""
    failed = {**Reply("").body(asked("responses")), "status": "failed", "error": error or None}
    messages, responses = translation("messages"), translation("responses")

    def one(translated: Translation, event: dict[str, Any]) -> Callable[[], object]:
        return lambda: translated.stream().feed([json.dumps(event).encode()])

    attempts = [
        lambda: responses.whole(json.dumps(failed).encode()),
        lambda: messages.whole(json.dumps({"type": "error", "error": error}).encode()),
        one(responses, {"type": "response.failed", "response": failed}),
        one(responses, {**error, "type": "error", "code": error.get("code") or error.get("type")}),
        one(responses, {"type": "error", "error": error}),
        one(messages, {"type": "error", "error": error}),
    ]
    for attempt in attempts:
        with pytest.raises(ReportedError) as caught:
            attempt()
        assert caught.value.refused is refused


WRONG: list[Any] = [None, 7, "x", [], {}, [7], [None], {"type": 7}, [{"type": "text"}], [{"type": "message"}], True]


@API
@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_values_of_wrong_kinds_are_unusable_answers(api: str, wrong: Any) -> None:
    """Every field in turn: the result is an answer or an ``AnswerError``, never another exception."""

    def attempt(read: Callable[[], object]) -> None:
        with suppress(AnswerError):
            read()

    reply = Reply("4 2", reasoning="so", tool_calls=(CALLS[0],), finish_reason="tool_calls")
    body = reply.body(asked(api))
    for field in body:
        data = json.dumps(body | {field: wrong}).encode()
        attempt(lambda data=data: read_completion(translation(api).whole(data)))  # type: ignore[misc]
    events = [*reply.chunks(asked(api))]
    for number, event in enumerate(events):
        for field in event:
            changed = [*events]
            changed[number] = event | {field: wrong}
            data_of = [json.dumps(one).encode() for one in changed]

            def read(data: list[bytes] = data_of) -> None:
                transcript = Transcript()
                transcript.add(read_events(translation(api).stream().feed(data)[0]))
                transcript.answer()

            attempt(read)


@API
@pytest.mark.parametrize("data", [b"", b"<html>", b"[]", b"7", b"null", b'"x"', b"\xff", b"[" * 5000])
def test_what_is_no_reply_is_an_unusable_answer(api: str, data: bytes) -> None:
    """HTML of a proxy, for example."""
    with pytest.raises(AnswerError):
        translation(api).whole(data)
    with pytest.raises(AnswerError):
        translation(api).stream().feed([data])


@HOW
def test_log_probabilities_that_are_no_numbers_are_kept_as_such(stream: bool) -> None:
    """NaN must not become a number on the way: a score of it would be invented."""
    body = Reply(tokens=TOKENS).body(asked("responses"))
    body["output"][0]["content"][0]["logprobs"][0]["logprob"] = float("nan")
    data = json.dumps(body).encode()
    if stream:
        last = json.dumps({"type": "response.completed", "response": body}).encode()
        transcript = Transcript()
        transcript.add(read_events(translation("responses").stream().feed([last])[0]))
        answer = transcript.answer()
    else:
        answer = read_completion(translation("responses").whole(data)).answer
    first, second = answer.tokens or ()
    assert first.logprob != first.logprob
    assert second.logprob == -0.7


def test_the_mark_that_ends_a_chat_does_not_end_a_response() -> None:
    """Only the last event of the API says how a response ended; without it the stream was cut off."""
    first = [json.dumps(one).encode() for one in Reply("42").chunks(asked("responses"))][:-1]
    chunks, done = translation("responses").stream().feed([*first, b"[DONE]"])
    assert not done
    assert not any(event.finishes for event in read_events(chunks))


@pytest.mark.parametrize("said", ["text", "refusal", "call"])
def test_what_came_in_no_part_is_taken_from_the_last_event(said: str) -> None:
    """A server may stream the reasoning only: no text, refusal or call is lost, and none is there twice."""
    parts: dict[str, Any] = {
        "text": {"type": "message", "content": [{"type": "output_text", "text": "42"}]},
        "refusal": {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]},
        "call": {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    }
    thought = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"}
    last = {"type": "response.completed", "response": {"status": "completed", "output": [parts[said]]}}
    answer = added_up(ResponseEvents(0), thought, last)
    found = {"text": answer.text == "42", "refusal": answer.finish_reason == "refusal", "call": answer.tool_calls != ()}
    assert [name for name, there in found.items() if there] == [said]
    assert answer.reasoning == "hm"
    delta = {"type": "response.output_text.delta", "output_index": 1, "delta": "42"}
    assert added_up(ResponseEvents(0), delta, {**last, "response": {"output": [parts["text"]]}}).text == "42"


def test_an_incomplete_response_is_cut_off_whatever_its_status() -> None:
    """The type of the last event says so, too."""
    delta = {"type": "response.output_text.delta", "output_index": 0, "delta": "42"}
    for status in ({}, {"status": "completed"}):
        last = {"type": "response.incomplete", "response": {"output": [], **status}}
        assert not added_up(ResponseEvents(0), delta, last).finished


@pytest.mark.parametrize("index", [0, 1])
def test_blocks_without_an_end_and_with_one_index_are_whole(index: int) -> None:
    """The arguments of a call are never lost: without them it would equal a call that has none."""
    first = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    second = {"type": "tool_use", "id": "b", "name": "g", "input": {"x": 1}}
    answer = added_up(
        MessageEvents(0),
        {"type": "content_block_start", "index": 0, "content_block": first},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"y":2}'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": index, "content_block": second},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    )
    assert [call["function"]["arguments"] for call in answer.tool_calls] == ['{"y":2}', '{"x":1}']


def added_up(reader: EventReader, *events: dict[str, Any]) -> Answer:
    """The answer of a stream that ends with these events."""
    chunks, ended = reader.feed([json.dumps(event).encode() for event in events])
    assert ended
    transcript = Transcript()
    transcript.add(read_events(chunks))
    return transcript.answer()
