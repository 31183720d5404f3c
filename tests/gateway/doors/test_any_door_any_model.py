"""Any door leads to any model: 3 APIs of callers, 3 APIs of models, one gateway."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from bpac.routing.journal.entries import Resolved
from bpac.testing import Reply, Request
from bpac.testing.messages_format import SIGNATURE
from tests.gateway.configured import bearer
from tests.gateway.doors.opened import APIS, CALLS, EXPERT, KEY, Opened, Point, opened_with, pairs, score_with
from tests.gateway.doors.speakers import DOORS, USER, ask, ask_with_tools, parsed, result
from tests.gateway.raw import CHAT, post

every = pytest.mark.parametrize("at", DOORS)
upstream = pytest.mark.parametrize("api", APIS)
streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
# Answers that are cut off or refused, by their finish reason, and how each door says so.
CUT = {
    "length": {"chat": "length", "responses": "max_output_tokens", "messages": "max_tokens"},
    "content_filter": {"chat": "content_filter", "responses": "content_filter", "messages": "refusal"},
}


def config(base_url: str) -> dict[str, Any]:
    """A route to each model alone, and one for each pair of APIs, whose expert answers every request."""
    routes: dict[str, Any] = {}
    for api in APIS:
        routes[f"only-{api}"] = {"expert": f"large-{api}"}
        score = score_with(api)
        for other in APIS:
            route = {"draft": f"small-{api}", "expert": f"large-{other}", "epsilon": 0.2, "score": score}
            routes[f"{api}-{other}"] = {**route, "policy": "always"}
            routes[f"{api}-{other}-kept"] = {**route, "policy": "never"}
            if api != "messages":
                routes[f"{api}-{other}-early"] = {**route, "policy": "never", "score": {**score, "first_tokens": 2}}
    keys = [{"name": "all", "key": KEY, "roles": ["call"], "tokens_per_day": 10**9}]
    gateway = {"listen": "127.0.0.1:0", "store": "memory://", "probe": False, "keys": keys}
    return {"gateway": gateway, "models": pairs(base_url), "routes": routes}


@pytest.fixture(scope="module")
def door() -> Iterator[Opened]:
    """One gateway and one model server for all tests of this file."""
    with opened_with(config) as found:
        yield found


def paths(door: Opened) -> list[str]:
    """The endpoints that models were asked at."""
    door.gateway.idle()
    return [request.path for request in door.models.requests]


def tokens_charged(door: Opened) -> int:
    """The tokens that the key has been charged so far."""
    return int(door.gateway.service.budgets.to_json().get("all", {"tokens": 0})["tokens"])


def outcome(door: Opened, route: str) -> Resolved:
    """How the last round of a route was graded."""
    door.gateway.idle()
    store = door.gateway.service.store
    (game,) = [game for game in store.games() if game.route == route]
    return [kept.entry for kept in store.entries(game) if isinstance(kept.entry, Resolved)][-1]


@every
@upstream
@streamed
def test_text(door: Opened, at: str, api: str, stream: bool) -> None:
    """The text, its end and its tokens are the same through all of them, and tokens are charged once."""
    before = tokens_charged(door)
    said = ask(door, at, f"only-{api}", stream=stream)
    assert said.text == EXPERT.text
    assert said.ended in ("stop", "completed", "end_turn")
    assert said.tokens == 7 + EXPERT.generated
    assert paths(door) == [f"/v1/{'chat/completions' if api == 'chat' else api}"]
    assert tokens_charged(door) - before == said.tokens


@every
@upstream
@streamed
def test_tools_there_and_back(door: Opened, at: str, api: str, stream: bool) -> None:
    """A call reaches the caller; the call and its result reach the model under one id."""
    door.play(CALLS)
    said = ask_with_tools(door, at, f"only-{api}", stream=stream)
    ((call_id, name, arguments),) = said.calls
    assert (call_id, name, arguments) == ("call-1", "add", {"a": 1, "b": 2})
    door.play(EXPERT)
    history = [*USER, *said.turn, result(at, call_id, "3")]
    assert ask_with_tools(door, at, f"only-{api}", history, stream=stream).text == EXPERT.text
    sent = door.asked()
    if api == "responses":
        assert [item.get("call_id") for item in sent["input"]] == [None, "call-1", "call-1"]
    elif api == "messages":
        assert sent["messages"][1]["content"][0]["id"] == sent["messages"][2]["content"][0]["tool_use_id"] == "call-1"
    else:
        assert sent["messages"][1]["tool_calls"][0]["id"] == sent["messages"][2]["tool_call_id"] == "call-1"


@every
@upstream
@pytest.mark.parametrize("thought_by", APIS)
def test_thinking_in_the_history(door: Opened, at: str, api: str, thought_by: str) -> None:
    """A server gets back thinking that it signed itself, if the door can carry it, and no other server's thinking."""
    more: Any = {"thinking": {"type": "adaptive"}} if at == "messages" else {}
    said = ask(door, at, f"only-{thought_by}", **more)
    door.play(EXPERT)
    assert ask(door, at, f"only-{api}", [*USER, *said.turn, *USER], **more).text == EXPERT.text
    sent = json.dumps(door.asked().get("input") or door.asked()["messages"])
    if api == "chat":  # its servers ignore what they do not know, or thinking_in_history = "drop" leaves it out
        return
    signed = api == thought_by == "messages" and at in ("chat", "messages")
    assert (SIGNATURE in sent) is signed
    assert (EXPERT.reasoning in sent) is signed


@every
@upstream
def test_structured_output(door: Opened, at: str, api: str) -> None:
    """The schema reaches the model, and the client parses the answer."""
    door.play(Reply('{"x": 1, "y": 2}'))
    assert parsed(door, at, f"only-{api}") == Point(x=1, y=2)
    sent = door.asked()
    wanted: Any = {
        "chat": lambda: sent["response_format"]["json_schema"],
        "responses": lambda: sent["text"]["format"],
        "messages": lambda: sent["output_config"]["format"],
    }[api]()
    assert wanted["schema"]["required"] == ["x", "y"]


@every
@upstream
@pytest.mark.parametrize("status", [400, 429, 500])
def test_errors(door: Opened, at: str, api: str, status: int) -> None:
    """The client raises the error of its own API that fits, with the words of a server that refused."""
    door.play(Reply("no such thing", status=status))
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as raised:
        ask(door, at, f"only-{api}")
    found: Any = raised.value
    assert found.status_code == {400: 400, 429: 429, 500: 502}[status]
    assert ("no such thing" in str(found)) is (status < 500)


@every
@upstream
@streamed
@pytest.mark.parametrize("reason", CUT)
def test_answers_that_did_not_end(door: Opened, at: str, api: str, stream: bool, reason: str) -> None:
    """An answer that is cut off, or refused, never looks complete."""
    door.play(Reply("It is 42", finish_reason=reason))
    assert ask(door, at, f"only-{api}", stream=stream).ended == CUT[reason][at]


@pytest.mark.parametrize("at", ["responses", "messages"])
@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource", "weird"])
def test_unknown_reasons_are_no_end(door: Opened, at: str, reason: str) -> None:
    """Servers of chats have further words for answers that broke off: other APIs do not call them complete."""
    door.play(Reply("The answer is 42", finish_reason=reason))
    assert ask(door, at, "only-chat").ended == CUT["length"][at]
    door.play(Reply("The answer is 42"), Reply("The answer is 42", finish_reason=reason))
    ask(door, at, "chat-chat")
    assert outcome(door, "chat-chat").loss is None


@pytest.mark.parametrize("expert", APIS)
@pytest.mark.parametrize("draft", APIS)
def test_the_same_answers_are_equal_across_apis(door: Opened, draft: str, expert: str) -> None:
    """The loss of a draft does not depend on the API of either model: equal texts, other texts, and tool calls."""
    at, route = DOORS[(APIS.index(draft) + APIS.index(expert)) % 3], f"{draft}-{expert}"
    door.play(Reply("The answer is 42."), Reply("So, the answer is 42"))
    assert ask(door, at, route).text == "The answer is 42."
    assert outcome(door, route).loss == 0.0
    door.play(Reply("The answer is 42."), Reply("The answer is 41."))
    ask(door, at, route, stream=True)
    assert outcome(door, route).loss == 1.0
    spaced = '{"b":2.0,   "a":1}'
    called: Any = {"id": "other", "type": "function", "function": {"name": "add", "arguments": spaced}}
    for stream in (False, True):
        door.play(CALLS, Reply("", tool_calls=(called,), finish_reason="tool_calls"))
        assert ask_with_tools(door, at, route, stream=stream).calls[0][2] == {"a": 1, "b": 2}
        if draft != "responses":  # it has no log-probabilities of calls, so there is no score and no round
            assert outcome(door, route).loss == 0.0


@pytest.mark.parametrize("reason", CUT)
@upstream
def test_answers_that_did_not_end_are_never_graded_equal(door: Opened, api: str, reason: str) -> None:
    """Whichever of the two was cut off or refused: its loss is unknown, which counts as 1."""
    cut, route = Reply("The answer is 42", finish_reason=reason), f"{api}-{api}"
    for draft, expert in ((cut, Reply("The answer is 42")), (Reply("The answer is 42"), cut), (cut, cut)):
        door.play(expert, draft)
        ask(door, "chat", route)
        assert outcome(door, route).loss is None


def refused(request: Request) -> Reply:
    """A model that says something, refuses to go on, and calls that complete, as chats and responses can."""
    text = json.dumps(Reply("The answer is 42").body(request))
    if request.api == "chat":
        return Reply(raw=text.replace('"content": "The', '"refusal": "No.", "content": "The').encode())
    part = '{"type": "refusal", "refusal": "No."}'
    return Reply(raw=text.replace('"content": [{"type"', f'"content": [{part}, {{"type"').encode())


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_refusal_with_the_right_text_is_never_graded_equal(door: Opened, api: str) -> None:
    """A model that refuses has not answered, whatever it said before."""
    route = f"{api}-{api}"
    for draft, expert in ((refused, Reply("The answer is 42")), (Reply("The answer is 42"), refused)):
        door.play(expert, draft)
        ask(door, "chat", route)
        assert outcome(door, route).loss is None


@every
@upstream
@streamed
def test_a_draft_that_is_kept(door: Opened, at: str, api: str, stream: bool) -> None:
    """It is scored through every API, and reaches the caller through every door; its line of confidence does not."""
    text = "The answer is 42\nConfidence: 0.8" if api == "messages" else "The answer is 42"
    door.play(EXPERT, Reply(text, probability=0.8))
    assert ask(door, at, f"{api}-chat-kept", stream=stream).text == "The answer is 42"


@every
@pytest.mark.parametrize(("api", "cut"), [("chat", 4), ("responses", 7)])
def test_a_draft_that_is_served_while_it_is_written(door: Opened, at: str, api: str, cut: int) -> None:
    """After its first tokens it reaches the caller, and if its server breaks off, it does not look complete."""
    route = f"{api}-messages-early"
    door.play(EXPERT, Reply("The answer is 42", probability=0.8))
    assert ask(door, at, route, stream=True).text == "The answer is 42"
    door.play(EXPERT, Reply("The answer is 42", probability=0.8, pause=0.01, cut=cut))
    path, body = {
        "chat": (CHAT, {"messages": USER}),
        "responses": ("/v1/responses", {"input": USER}),
        "messages": ("/v1/messages", {"messages": USER, "max_tokens": 100}),
    }[at]
    got = post(door.gateway.url, {"model": route, "stream": True, **body}, path, bearer(KEY))
    assert b" answer" in got.body
    assert b" 42" not in got.body
    assert b"upstream_failed" in got.body
    assert not any(end in got.body for end in (b'"finish_reason":"stop"', b"response.completed", b"message_stop"))


def test_a_draft_behind_responses_is_routed_by_its_log_probabilities(door: Opened) -> None:
    """The uncertainty of each draft is that of its own tokens."""
    for probability in (0.9, 0.6):
        door.play(EXPERT, Reply("The answer is 42", probability=probability))
        create = door.openai.chat.completions.with_raw_response.create
        got = create(model="responses-messages", messages=USER)
        assert float(got.headers["x-bpac-uncertainty"]) == pytest.approx(1.0 - probability)
