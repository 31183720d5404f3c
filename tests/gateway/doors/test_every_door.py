"""What the gateway does for chats, it does for every door: headers, ids, budgets, segments, force, and errors."""

import json
from typing import Any

import pytest

from bpac.testing import Reply
from tests.gateway.configured import bearer, wait_for
from tests.gateway.doors.opened import EXPERT, KEY, Opened
from tests.gateway.raw import CHAT, Got, open_chat, post
from tests.gateway.running import Running, pair
from tests.wire.doors.accumulated import decoded

RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
DOORS = [CHAT, RESPONSES, MESSAGES]
QUESTION = [{"role": "user", "content": "6 * 7?"}]
BODIES: dict[str, Any] = {
    CHAT: {"model": "homework", "messages": QUESTION},
    RESPONSES: {"model": "homework", "input": "6 * 7?"},
    MESSAGES: {"model": "homework", "max_tokens": 100, "messages": QUESTION},
}
doors = pytest.mark.parametrize("path", DOORS)
streamed = pytest.mark.parametrize("stream", [False, True])


def ask(door: Opened, path: str, key: str = KEY, headers: Any = None, **more: Any) -> Got:
    """Ask at a door."""
    return post(door.gateway.url, BODIES[path] | more, path, bearer(key) | (headers or {}))


@doors
@streamed
def test_headers(door: Opened, path: str, stream: bool) -> None:
    """Every answer has the headers of its decision."""
    got = ask(door, path, stream=stream)
    assert got.status == 200
    names = ("decision", "answered-by", "uncertainty", "threshold", "propensity")
    assert all(f"x-bpac-{name}" in got.headers for name in names)
    assert got.headers["content-type"].startswith("text/event-stream" if stream else "application/json")


@doors
@streamed
def test_ids_in_the_body(door: Opened, path: str, stream: bool) -> None:
    """They come in the object, or in the first event that is no ping."""
    door.play(Reply("42", delay=0.15 if stream else 0.0))
    got = ask(door, path, headers={"x-bpac-ids": "body"}, stream=stream)
    if stream:
        lines = got.body.decode().splitlines()
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
        (body,) = [one for one in map(json.loads, data) if "bpac" in one]
        assert body.get("type") != "ping"
    else:
        body = got.json
    assert body["bpac"]["request_id"] == got.headers["x-request-id"]
    assert body["bpac"]["decision"].startswith("dec-")


@doors
@streamed
def test_budgets(door: Opened, path: str, stream: bool) -> None:
    """The tokens that the model counted are charged, those of streams, too."""
    used = door.gateway.service.budgets.to_json().get("metered", {"tokens": 0, "requests": 0})
    assert ask(door, path, "two", stream=stream).status == 200
    now = door.gateway.service.budgets.to_json()["metered"]
    generated = len(EXPERT.text.split()) + len(EXPERT.reasoning.split())
    assert now["tokens"] - used["tokens"] == 7 + generated
    assert now["requests"] - used["requests"] == 1


@doors
def test_a_refused_request_is_not_charged(door: Opened, path: str) -> None:
    """Neither is one to count tokens."""
    before = door.gateway.service.budgets.to_json()
    assert ask(door, path, "two", n=3.5).status == 400
    body = BODIES[MESSAGES] | {"max_tokens": None}
    assert post(door.gateway.url, body, "/v1/messages/count_tokens", {"x-api-key": "two"}).status == 200
    assert door.gateway.service.budgets.to_json() == before


@doors
def test_force(door: Opened, path: str) -> None:
    """An operator chooses the model at any door."""
    got = ask(door, path, headers={"x-bpac-force": "draft"})
    assert (got.headers["x-bpac-answered-by"], got.headers["x-bpac-decision"]) == ("draft", "forced")
    assert ask(door, path, "two", headers={"x-bpac-force": "draft"}).status == 403


def test_segments(door: Opened) -> None:
    """The same user, and the same field of metadata, is the same segment at every door."""
    for path in DOORS:
        named = {"metadata": {"user_id": "anna"}} if path == MESSAGES else {"user": "anna"}
        assert ask(door, path, **named, model="divided").status == 200
        assert ask(door, path, model="labelled", metadata={"team": "a"}).status == 200
    door.gateway.idle()
    routes = door.gateway.service.status().to_json()["routes"]
    for route, segment in (("divided", "anna"), ("labelled", "a")):
        assert {game["segment"]: game["steps"] for game in routes[route]}[segment] == 3


def test_keeping_a_stream_alive(door: Opened) -> None:
    """A slow answer is preceded by comments, or by pings at the door that has them; clients see neither."""
    door.play(Reply("42", delay=0.25))
    for path, waiting in ((CHAT, b": waiting\n\n"), (RESPONSES, b": waiting\n\n"), (MESSAGES, b"event: ping\n")):
        got = ask(door, path, stream=True)
        assert got.body.startswith(waiting)
        assert b": x-bpac-answered-by: expert\n" in got.body
    with door.anthropic.messages.stream(**BODIES[MESSAGES]) as stream:
        assert stream.get_final_message().content[0].text == "42"
    with door.openai.responses.stream(**BODIES[RESPONSES]) as events:
        assert events.get_final_response().output_text == "42"


def test_errors_after_a_ping(door: Opened) -> None:
    """They are events, because the status has been sent."""
    door.play(Reply("too long by far", status=400, delay=0.25))
    last = ask(door, MESSAGES, stream=True).body.split(b"\n\n")[-2] + b"\n\n"
    (error,) = decoded(last)
    assert (error["error"]["type"], error["error"]["message"]) == ("invalid_request_error", "too long by far")
    last = ask(door, RESPONSES, stream=True).body.split(b"\n\n")[-2] + b"\n\n"
    (error,) = decoded(last)
    assert (error["type"], error["message"], error["sequence_number"]) == ("error", "too long by far", 0)


@doors
def test_callers_who_leave(door: Opened, path: str) -> None:
    """The model of a caller who has left is not kept busy, and nothing is left over."""
    door.play(Reply("a b c d e f g h", pause=0.4))
    before = door.models.hang_ups
    body = BODIES[path] | {"model": "single", "stream": True}
    connection = open_chat(door.gateway.url, body, bearer(KEY), path=path)
    assert connection.recv(100).startswith(b"HTTP/1.1 200")
    connection.close()
    wait_for(lambda: door.models.hang_ups > before)
    door.gateway.idle()


@doors
def test_a_gateway_without_keys_checks_who_asks(path: str) -> None:
    """The error of a request that is not JSON has the body of its door."""
    with Running(pair(EXPERT, EXPERT)) as (gateway, _):
        got = post(gateway.url, BODIES[path], path, {"Content-Type": "text/plain"})
        assert got.status == 415
        assert (got.json.get("type") == "error") is (path == MESSAGES)
        assert post(gateway.url, b"", path, method="GET").headers["allow"] == "POST"
        assert post(gateway.url, BODIES[path], path).status == 200
