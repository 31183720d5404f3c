"""Model servers that break their streams or answers, behind the doors of other APIs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bpac.testing import Reply
from tests.gateway.configured import bearer
from tests.gateway.doors.opened import EXPERT, KEY, Opened, opened
from tests.gateway.doors.test_every_door import BODIES, MESSAGES, RESPONSES
from tests.gateway.raw import Got, post
from tests.wire.doors.accumulated import decoded
from tests.wire.doors.test_streams import chunk

STREAMED = {"Content-Type": "text/event-stream"}
doors = pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
# The events that end an answer, well or not.
ENDS = {
    "error", "response.failed", "response.completed", "response.incomplete", "message_stop",
}  # fmt: skip


@pytest.fixture(scope="module")
def door() -> Iterator[Opened]:
    """A gateway that keeps no stream alive: a server that takes its time would turn an error into an event."""
    with opened() as found:
        yield found


def streamed(*chunks: Any, done: bool = True) -> Reply:
    """A reply with these chunks; texts are sent as they are."""
    parts = [one if isinstance(one, str) else json.dumps(one) for one in chunks]
    data = "".join(f"data: {part}\n\n" for part in [*parts, *(["[DONE]"] if done else [])])
    return Reply(raw=data.encode("utf-8", "surrogatepass"), headers=STREAMED)


def ask(door: Opened, path: str, reply: Reply, **more: Any) -> Got:
    """The response to a request that the expert answers in this way."""
    door.play(reply)
    return post(door.gateway.url, BODIES[path] | more, path, bearer(KEY))


@doors
@pytest.mark.parametrize("second", ['{"error": {"message": "out of memory"}}', "not JSON", '{"choices": [7]}'])
def test_a_stream_that_breaks_before_its_first_event(door: Opened, path: str, second: str) -> None:
    """What arrives at once with an error is not passed on: the response is an error with a status."""
    got = ask(door, path, streamed(chunk({"content": "a"}), second), stream=True)
    assert (got.status, got.json["error"]["code"]) == (502, "upstream_failed")
    assert (got.json.get("type") == "error") is (path == MESSAGES)


@doors
@pytest.mark.parametrize(
    "delta", [{"content": 7}, {"tool_calls": [{"index": 0, "function": {"name": 7}}]}, {"tool_calls": 7}]
)
def test_a_stream_that_breaks(door: Opened, path: str, delta: Any) -> None:
    """What came before arrives, the last event is an error in the format of the door, and it is counted."""
    before = door.gateway.service.rejections.counts.get("untranslatable", 0)
    got = ask(door, path, streamed(chunk({"content": "a"}), chunk(delta)), stream=True)
    assert got.status == 200
    events = decoded(got.body)
    kinds = [event["type"] for event in events]
    assert ENDS & set(kinds) <= {"error", "response.failed"}
    (error,) = [event for event in events if event["type"] == "error"]
    assert "cannot be expressed" in error["error"]["message"]
    assert door.gateway.service.rejections.counts["untranslatable"] == before + 1
    said = [event["delta"] for event in events if event["type"].endswith(("output_text.delta", "block_delta"))]
    assert said in (["a"], [{"type": "text_delta", "text": "a"}])


@doors
def test_odd_streams_that_can_be_read(door: Opened, path: str) -> None:
    """Streams with odd but readable chunks end well: several choices, no finish reason, unknown fields, no choices."""
    other = {"choices": [{"index": 1, "delta": {"content": "other"}}]}
    chunks = [chunk({"content": "a", "odd": {}}), other, {"choices": []}, {"choices": None}, chunk({"content": "b"})]
    events = decoded(ask(door, path, streamed(*chunks), stream=True).body)
    assert events[-1]["type"] in ("response.completed", "message_stop")
    deltas = [event["delta"] for event in events if event["type"].endswith(("output_text.delta", "block_delta"))]
    assert "".join(one if isinstance(one, str) else one["text"] for one in deltas) == "ab"


@doors
@pytest.mark.parametrize(
    "raw",
    [
        b"[]", b"{}", b'{"choices": [{"message": {"content": 7}}]}', b"\xff", b"",
        b'{"choices": [{"message": {"tool_calls": [{"function": {"name": 7}}]}}]}',
    ],
)  # fmt: skip
def test_whole_answers_that_are_none(door: Opened, path: str, raw: bytes) -> None:
    """Status 502 with the error body of the door, and the gateway goes on."""
    got = ask(door, path, Reply(raw=raw))
    assert got.status == 502
    assert (got.json.get("type") == "error") is (path == MESSAGES)
    assert ask(door, path, EXPERT).status == 200


@doors
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"7", b'{"model": "homework"}', b"[" * 1000, b'{"a":' * 200 + b"1" + b"}" * 200]
)
def test_bodies_that_are_no_requests(door: Opened, path: str, body: bytes) -> None:
    """Status 400 with the error body of the door."""
    got = post(door.gateway.url, body, path, {"x-api-key": KEY})
    assert got.status == 400
    assert got.json["error"]["type"] == "invalid_request_error"
    assert (got.json.get("type") == "error") is (path == MESSAGES)


@doors
def test_several_answers_are_refused(door: Opened, path: str) -> None:
    """These APIs have one answer per request: ``n`` names the place."""
    got = post(door.gateway.url, BODIES[path] | {"n": 2}, path, bearer(KEY))
    assert (got.status, got.json["error"]["param"], got.json["error"]["code"]) == (400, "n", "unsupported")
