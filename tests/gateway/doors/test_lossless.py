"""A request reaches a model with the API of its door as it is, and so does the reply its caller: nothing is lost."""

import json
import re
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from bpac.testing import Reply
from bpac.wire.originals import ORIGINAL
from tests.gateway.configured import bearer
from tests.gateway.doors import rich
from tests.gateway.doors.opened import APIS, EXPERT, KEY, Opened, opened_with, pairs, reached_at, score_with
from tests.gateway.raw import CHAT, post
from tests.wire.translating.chats import MESSAGE_EVENT, MESSAGE_REQUEST, RESPONSE_EVENT, RESPONSE_REQUEST, known

streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
SSE = {"Content-Type": "text/event-stream"}
MARK = re.compile(r"~[0-9a-f]{8}")


def config(base_url: str) -> dict[str, Any]:
    """For each API a route with one model, one whose expert answers, and one whose drafts are kept."""
    ours, models = reached_at(base_url), pairs(base_url)
    routes: dict[str, Any] = {}
    for api in APIS:
        pair_of = {"draft": f"small-{api}", "expert": f"large-{api}", "epsilon": 0.2, "score": score_with(api)}
        routes[f"only-{api}"] = {"expert": f"large-{api}"}
        routes[f"kept-{api}"] = {**pair_of, "policy": "never"}
        routes[f"asked-{api}"] = {**pair_of, "policy": "always", "explore": "shadow"}
        routes[f"mixed-{api}"] = {**pair_of, "draft": "small-chat", "score": "perplexity", "policy": "always"}
    routes["early"] = {**routes["kept-responses"], "score": {"name": "perplexity", "first_tokens": 2}}
    models["strict"] = {**ours, "model": "expert", "api": "messages", "drop": ["thinking", "user", "anthropic-beta"]}
    models["headed"] = {**ours, "model": "expert", "api": "messages", "headers": {"Anthropic-Beta": "operator"}}
    routes |= {name: {"expert": name} for name in ("strict", "headed")}
    keys = [{"name": "all", "key": KEY, "roles": ["call"]}]
    gateway = {"listen": "127.0.0.1:0", "store": "memory://", "probe": False, "keys": keys}
    return {"gateway": gateway, "models": models, "routes": routes}


@pytest.fixture(scope="module")
def door() -> Iterator[Opened]:
    """One gateway and one model server for all tests of this file."""
    with opened_with(config) as found:
        yield found


def message_reply(reply: Any = rich.MESSAGES_REPLY) -> Any:
    """A model that answers with a message, whole or streamed."""
    return lambda request: _raw(reply, rich.streamed_message if request.body.get("stream") else None)


def response_reply(reply: Any = rich.RESPONSES_REPLY) -> Any:
    """A model that answers with a response, whole or streamed."""
    return lambda request: _raw(reply, rich.streamed_response if request.body.get("stream") else None)


def _raw(reply: Any, write: Any) -> Reply:
    return Reply(raw=json.dumps(reply).encode()) if write is None else Reply(raw=write(reply), headers=SSE)


def ask_messages(door: Opened, route: str, asked: Any, stream: bool = False, **more: Any) -> dict[str, Any]:
    """The message that Anthropic's own client makes of the reply."""
    if not stream:
        return dict(door.anthropic.messages.create(model=route, **asked, **more).to_dict(warnings=False))
    with door.anthropic.messages.stream(model=route, **asked, **more) as events:
        return dict(events.get_final_message().to_dict(warnings=False))


def ask_responses(door: Opened, route: str, asked: Any, stream: bool = False) -> dict[str, Any]:
    """The response that OpenAI's own client makes of the reply."""
    got = door.openai.responses.create(model=route, stream=stream, **asked)
    return dict((list(got)[-1].response if stream else got).to_dict(warnings=False))


def unmarked(value: Any) -> Any:
    """A reply as its server wrote it, of which the marks in signatures were added by the gateway."""
    return json.loads(MARK.sub("", json.dumps(value)))


@streamed
@pytest.mark.parametrize("asked", [rich.MESSAGES_REQUEST, rich.MESSAGES_ONLY], ids=["rich", "only here"])
def test_messages_requests(door: Opened, asked: dict[str, Any], stream: bool) -> None:
    """Each field of a request arrives as it was sent: caches, budgets, failed tools, signatures, documents, tools."""
    known(MESSAGE_REQUEST[False], {"model": "m", **asked})
    beta = {"anthropic-beta": rich.BETAS}
    ask_messages(door, "only-messages", asked, stream, extra_headers=beta, extra_body=rich.MORE)
    assert door.asked() == {**asked, **rich.MORE, "model": "expert", **({"stream": True} if stream else {})}
    assert door.models.requests[-1].headers["anthropic-beta"] == rich.BETAS


@streamed
def test_messages_replies(door: Opened, stream: bool) -> None:
    """Each block comes back in its order, with citations and signatures, and all counts of tokens with it."""
    door.play(message_reply())
    got = ask_messages(door, "only-messages", rich.MESSAGES_REQUEST, stream)
    assert unmarked(got) == rich.MESSAGES_REPLY
    for event in rich.streamed_message(rich.MESSAGES_REPLY).split(b"data: ")[1:]:
        if b"ping" not in event:  # it has no type
            MESSAGE_EVENT.validate_json(event.split(b"\n")[0])


@streamed
@pytest.mark.parametrize("asked", [rich.RESPONSES_REQUEST, rich.RESPONSES_ONLY], ids=["rich", "only here"])
def test_responses_requests(door: Opened, asked: dict[str, Any], stream: bool) -> None:
    """Each field of a request arrives as it was sent: encrypted reasoning, keys of caches, strictness, roles, tools."""
    known(RESPONSE_REQUEST[False], {"model": "m", **asked})
    ask_responses(door, "only-responses", asked, stream)
    expected = {**asked, "model": "expert", "store": False, **({"stream": True} if stream else {})}
    expected["input"] = [{**item} for item in asked["input"]]
    for item in expected["input"]:
        if item["type"] == "message":  # ids of messages mean nothing to a server that keeps nothing
            item.pop("id", None)
    if "text" in expected:
        expected["text"] = {"verbosity": "low"}  # plain text is the default
    assert {name: value for name, value in door.asked().items() if name != "stream" or stream} == expected


@streamed
def test_responses_replies(door: Opened, stream: bool) -> None:
    """Each item comes back in its order; what a response repeats of its request is what the caller asked."""
    door.play(response_reply())
    asked = {"input": "6 * 7?", "instructions": "Be brief."}
    got = unmarked(ask_responses(door, "only-responses", asked, stream))
    expected = {**rich.RESPONSES_REPLY, "instructions": "Be brief."}
    assert {name: got[name] for name in expected} == expected
    assert got["store"] is False
    for event in rich.streamed_response(rich.RESPONSES_REPLY).split(b"data: ")[1:]:
        RESPONSE_EVENT.validate_json(event.split(b"\n")[0])


@streamed
def test_drafts_lose_nothing_but_the_line_that_was_asked_for(door: Opened, stream: bool) -> None:
    """A draft that is kept comes with its blocks; the last line, which only the gateway asked for, is cut off."""
    said = [{"type": "text", "text": "It is ", "citations": None}, {"type": "text", "text": "42\n\nConfidence: 90%"}]
    reply = {**rich.MESSAGES_REPLY, "stop_reason": "end_turn", "content": [*rich.MESSAGES_REPLY["content"][:2], *said]}
    door.play(EXPERT, message_reply(reply))
    asked = {"max_tokens": 100, "messages": [{"role": "user", "content": "6 * 7?"}]}
    got = unmarked(ask_messages(door, "kept-messages", asked, stream))
    kept = [*reply["content"][:3], {"type": "text", "text": "42"}]
    assert [{k: v for k, v in one.items() if v is not None} for one in got["content"]] == [
        {k: v for k, v in one.items() if v is not None} for one in kept
    ]
    assert got["usage"] == reply["usage"]


@streamed
@pytest.mark.parametrize("route", ["kept-responses", "early"])
@pytest.mark.parametrize("wanted", [None, 1])
def test_log_probabilities_are_shown_to_those_who_asked(
    door: Opened, route: str, stream: bool, wanted: int | None
) -> None:
    """The gateway asks a draft for them to score it; a caller sees as many as it has asked for itself."""
    more = {"include": ["message.output_text.logprobs"], "top_logprobs": wanted} if wanted else {}
    got = door.openai.responses.with_raw_response.create(model=route, input="6 * 7?", stream=stream, **more)
    assert got.headers["x-bpac-answered-by"] == "draft"
    text = got.http_response.read().decode()
    assert door.asked("draft")["include"] == ["message.output_text.logprobs"]
    assert ('"logprob":' in text) is bool(wanted)
    assert "I think" in text


@streamed
def test_thinking_goes_back_to_the_model_that_signed_it_only(door: Opened, stream: bool) -> None:
    """In the next turn the expert gets its own signature, byte for byte, and the draft gets no thinking at all."""
    door.play(message_reply({**rich.MESSAGES_REPLY, "stop_reason": "tool_use"}))
    asked = {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    first = [{"role": "user", "content": "6 * 7?"}]
    said = ask_messages(door, "only-messages", {**asked, "messages": first}, stream)
    door.play(EXPERT)
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "3"}]}
    turn = {"role": "assistant", "content": said["content"]}
    ask_messages(door, "asked-messages", {**asked, "messages": [*first, turn, result]}, stream)
    sent = door.asked()["messages"][1]["content"]
    assert sent[:2] == rich.MESSAGES_REPLY["content"][:2]
    assert door.asked()["thinking"] == asked["thinking"]
    drafted = door.asked("draft")
    assert "thinking" not in drafted
    assert "output_config" not in drafted
    assert not {"thinking", "redacted_thinking"} & {block["type"] for block in drafted["messages"][1]["content"]}
    assert [block["type"] for block in drafted["messages"][1]["content"]] == [block["type"] for block in sent[2:]]
    turn["content"] = [
        block for block in said["content"] if "server" not in block["type"] and "web" not in block["type"]
    ]
    ask_messages(door, "only-chat", {**asked, "messages": [*first, turn, result]}, stream)
    assert MARK.search(json.dumps(door.asked())) is None


@pytest.mark.parametrize("kind", ["enabled", "adaptive"])
def test_a_turn_that_a_draft_began_is_continued_without_a_budget(door: Opened, kind: str) -> None:
    """The API refuses calls without thinking before them while there is a budget for thinking; other modes stay."""
    asked: Any = {"max_tokens": 4000, "thinking": {"type": kind}}
    asked["thinking"] |= {"budget_tokens": 2000} if kind == "enabled" else {}
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
    use = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "3"}]}
    for signature, own in (("c2lnbmVk", True), ("c2lnbmVk~00000000", False)):
        turn = {"role": "assistant", "content": [{**thought, "signature": signature}, use]}
        history = [{"role": "user", "content": "?"}, turn, result]
        ask_messages(door, "only-messages", {**asked, "messages": history})
        kept = own or kind == "adaptive"
        assert door.asked()["thinking"] == (asked["thinking"] if kept else {"type": "disabled"})


@streamed
def test_encrypted_reasoning_goes_back_to_the_model_that_wrote_it_only(door: Opened, stream: bool) -> None:
    """The same with the Responses API, whose items then have no ids that belong to missing reasoning."""
    door.play(response_reply())
    asked = {"include": ["reasoning.encrypted_content"]}
    said = ask_responses(door, "only-responses", {"input": "6 * 7?", **asked}, stream)
    door.play(EXPERT)
    result = {"type": "function_call_output", "call_id": "call_1", "output": "3"}
    history = [{"type": "message", "role": "user", "content": "6 * 7?"}, *said["output"], result]
    ask_responses(door, "asked-responses", {"input": history, **asked}, stream)
    expected = rich.RESPONSES_REPLY["output"]
    assert door.asked()["input"][1] == expected[0]
    assert [item.get("id") for item in door.asked()["input"]] == [None, "rs_1", "ws_1", None, None, None, None]
    assert [item["type"] for item in door.asked("draft")["input"][1:]] == [
        "web_search_call", "message", "message", "function_call", "function_call_output",
    ]  # fmt: skip


@pytest.mark.parametrize("at", ["messages", "responses"])
@pytest.mark.parametrize("api", APIS)
def test_nothing_of_our_own_reaches_a_server(door: Opened, at: str, api: str) -> None:
    """Whichever API a model has, it gets no field of the gateway's, and no hint that only the door's API knows."""
    if at == "messages":
        dropped = ("stop_sequences",) if api == "responses" else ()  # it has none, and so refuses them
        ask_messages(door, f"only-{api}", {k: v for k, v in rich.MESSAGES_REQUEST.items() if k not in dropped})
    else:
        asked = {name: value for name, value in rich.RESPONSES_REQUEST.items() if name not in ("text", "tools")}
        asked = {**asked, "tools": rich.RESPONSES_REQUEST["tools"][:2]}
        asked["input"] = [item for item in asked["input"] if "custom" not in item["type"]]
        ask_responses(door, f"only-{api}", asked)
    found = set(rich.names(door.asked()))
    assert ORIGINAL not in found
    if api != at:
        assert not found & {"cache_control", "input_examples", "defer_loading", "budget_tokens", "max_tool_calls"}
        assert "Error: no such thing" in json.dumps(door.asked()) or at == "responses"


@pytest.mark.parametrize("at", ["messages", "responses"])
def test_what_only_one_api_can_say_is_refused_by_the_others(door: Opened, at: str) -> None:
    """If the expert has another API, no model is asked; if only the draft has, the expert answers."""
    asked = rich.MESSAGES_ONLY if at == "messages" else rich.RESPONSES_ONLY
    ask: Any = ask_messages if at == "messages" else ask_responses
    for api in APIS:
        door.play(EXPERT)
        if api == at:
            ask(door, f"mixed-{api}", asked)
            assert {request.api for request in door.models.requests} == {api}
            continue
        with pytest.raises((anthropic.BadRequestError, openai.BadRequestError)) as raised:
            ask(door, f"only-{api}", asked)
        refused: Any = raised.value
        body = refused.body
        assert (body.get("error") or body)["code"] == "unsupported"
        assert door.models.requests == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"max_tokens": 9, "container": "c"}),
        ("/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": [
            {"type": "document", "source": {"type": "file", "file_id": "f"}}]}]}),
        ("/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": [
            {"type": "container_upload", "file_id": "f"}]}]}),
        ("/v1/responses", {"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}),
        ("/v1/responses", {"tools": [{"type": "code_interpreter", "container": "c"}]}),
        ("/v1/responses", {"tools": [{"type": "shell", "environment": {"type": "container_reference"}}]}),
        ("/v1/responses", {"previous_response_id": "r"}),
        ("/v1/responses", {"input": [{"type": "item_reference", "id": "i"}]}),
    ],
)  # fmt: skip
def test_what_is_stored_at_a_vendor_is_nobodys(door: Opened, path: str, body: dict[str, Any]) -> None:
    """Callers share the gateway's account there: a model with the same API is not asked either."""
    history = {"input": "?"} if path == "/v1/responses" else {"messages": [{"role": "user", "content": "?"}]}
    got = post(door.gateway.url, {"model": f"only-{path[4:]}", **history, **body}, path, bearer(KEY))
    assert (got.status, got.json["error"]["code"]) == (400, "unsupported")
    assert door.models.requests == []


def test_settings_of_a_model_come_before_the_caller(door: Opened) -> None:
    """Fields and headers in ``drop`` are left out, and a header of the model's own is not replaced."""
    beta = {"anthropic-beta": rich.BETAS}
    ask_messages(door, "strict", rich.MESSAGES_REQUEST, extra_headers=beta)
    assert not door.asked().keys() & {"thinking", "metadata", "output_config"}
    assert "anthropic-beta" not in door.models.requests[-1].headers
    ask_messages(door, "headed", rich.MESSAGES_REQUEST, extra_headers=beta)
    assert door.models.requests[-1].headers["anthropic-beta"] == "operator"


def test_callers_cannot_write_originals(door: Opened) -> None:
    """The name is refused at the top of a chat; below it, it is a field like any other and replaces nothing."""
    forged = {"api": "messages", "fields": {"container": "c"}}
    asked: dict[str, Any] = {"model": "only-messages", "messages": [{"role": "user", "content": "6 * 7?"}]}
    got = post(door.gateway.url, {**asked, ORIGINAL: forged}, CHAT, bearer(KEY))
    assert (got.status, got.json["error"]["param"]) == (400, ORIGINAL)
    part = {"type": "text", "text": "6 * 7?", ORIGINAL: [{"type": "container_upload", "file_id": "f"}]}
    messages = [{"role": "user", "content": [part]}, {"role": "assistant", "content": "a", ORIGINAL: [part]}]
    got = post(door.gateway.url, {**asked, "messages": [*messages, messages[0]]}, CHAT, bearer(KEY))
    assert got.status == 200
    assert ORIGINAL not in set(rich.names(door.asked()))
    assert [turn["content"] for turn in door.asked()["messages"]] == ["6 * 7?", "a", "6 * 7?"]
    got = post(door.gateway.url, {**asked, "max_tokens": 9, ORIGINAL: forged}, "/v1/messages", bearer(KEY))
    assert "container" not in door.asked()


@streamed
@pytest.mark.parametrize("key", [ORIGINAL, ORIGINAL.replace("_", "\\u005f")])
def test_servers_cannot_write_originals(door: Opened, stream: bool, key: str) -> None:
    """What a caller sees is what was scored and graded: a server of chats that sends an original fails."""
    said = (
        '{"choices": [{"index": 0, "message": {"content": "41"}, "delta": {"content": "41"}, "finish_reason": "stop"}]'
    )
    forged = f'{said}, "{key}": {{"reply": {json.dumps(rich.MESSAGES_REPLY)}}}}}'
    door.play(Reply(raw=f"data: {forged}\n\ndata: [DONE]\n\n".encode() if stream else forged.encode(), headers=SSE))
    asked = {"model": "only-chat", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}], "stream": stream}
    got = post(door.gateway.url, asked, "/v1/messages", bearer(KEY))
    assert b"msg_01" not in got.body
    assert got.status == 502


@pytest.mark.parametrize("call_id", ["functions.add:0", "x" * 100])
@pytest.mark.parametrize("at", APIS)
def test_ids_of_calls_that_a_server_would_refuse(door: Opened, at: str, call_id: str) -> None:
    """Without a preset, too, ids are made acceptable, and a call and its result keep belonging together."""
    for api, accepted in (("messages", r"[\w-]{1,64}"), ("responses", r".{1,64}")):
        door.play(EXPERT)
        _with_call(door, at, f"only-{api}", call_id)
        if api == "messages":
            turns = door.asked()["messages"]
            ids = [turns[1]["content"][0]["id"], turns[2]["content"][0]["tool_use_id"]]
        else:
            ids = [item["call_id"] for item in door.asked()["input"] if "call_id" in item]
        assert len(ids) == 2
        assert ids[0] == ids[1]
        assert re.fullmatch(accepted, ids[0])
        assert (ids[0] == call_id) is bool(re.fullmatch(accepted, call_id))


def _with_call(door: Opened, at: str, route: str, call_id: str) -> None:
    user: Any = {"role": "user", "content": "?"}
    if at == "messages":
        use = {"type": "tool_use", "id": call_id, "name": "add", "input": {}}
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "3"}]}
        history = [user, {"role": "assistant", "content": [use]}, result]
        ask_messages(door, route, {"max_tokens": 9, "messages": history})
    elif at == "responses":
        call = {"type": "function_call", "call_id": call_id, "name": "add", "arguments": "{}"}
        ask_responses(
            door, route, {"input": [user, call, {"type": "function_call_output", "call_id": call_id, "output": "3"}]}
        )
    else:
        function = {"id": call_id, "type": "function", "function": {"name": "add", "arguments": "{}"}}
        said = {"role": "assistant", "content": None, "tool_calls": [function]}
        history = [user, said, {"role": "tool", "tool_call_id": call_id, "content": "3"}]
        door.openai.chat.completions.create(model=route, messages=history)
