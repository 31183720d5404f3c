"""Keep-alive comments before the first event of a stream."""

import json
import threading
from typing import Any

import pytest

from bpac.testing import Reply, Request
from tests.gateway.configured import wait_for
from tests.gateway.operations.asking import ask, post
from tests.gateway.raw import open_chat
from tests.gateway.running import ASK, MESSAGES, Running, pair

OFTEN = {"stream_keep_alive": 0.05}
STREAM = {**ASK, "stream": True}


def slowly(reply: Reply) -> Any:
    """An expert that takes much longer than the time between two comments."""
    return pair(Reply("41"), Reply(reply.text, delay=0.5, status=reply.status, raw=reply.raw))


def events(text: str) -> list[str]:
    """The data of the events of a stream."""
    return [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]


def test_a_slow_stream_gets_comments_and_then_its_answer() -> None:
    """The response starts with comments; the decision follows as comments, and then the events."""
    with Running(slowly(Reply("42")), gateway=OFTEN) as (gateway, _):
        status, headers, text = ask(gateway.url, stream=True, headers={"x-bpac-ids": "body"})
        assert (status, headers["x-bpac-decision"]) == (200, "pending")
        assert text.startswith(": waiting\n\n: waiting\n\n")
        gateway.idle()
        (game,) = gateway.service.live_games()
        assert f": x-bpac-decision: {game.decision_id(1)}\n: x-bpac-answered-by: expert\n" in text
        found = events(text)
        assert found[-1] == "[DONE]"
        assert json.loads(found[0])["bpac"]["decision"] == game.decision_id(1)
        assert ": waiting" not in text.partition("data: ")[2]


def test_the_official_client_ignores_comments() -> None:
    """OpenAI's client reads a stream with comments as any other."""
    with Running(slowly(Reply("42")), gateway=OFTEN) as (gateway, _):
        chunks = gateway.client().chat.completions.create(model="homework", messages=MESSAGES, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "42"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(status=500), "the model gave no usable answer"),
        (Reply(status=400, raw=b'{"error": {"message": "too long",\n "type": "invalid_request_error"}}'), "too long"),
    ],
)
def test_an_error_after_comments_is_an_event(reply: Reply, said: str) -> None:
    """The status has been sent, so the error is the last event, with the decision as a comment before it."""
    with Running(slowly(reply), gateway=OFTEN) as (gateway, _):
        status, _, text = ask(gateway.url, stream=True)
        assert status == 200
        assert ": x-bpac-decision: dec-" in text
        (only,) = events(text)
        assert said in json.loads(only)["error"]["message"]


def test_fast_streams_and_whole_answers_get_no_comments() -> None:
    """Headers and statuses are as ever for whole answers, and where the setting is 0."""
    with Running(slowly(Reply("42")), gateway=OFTEN) as (gateway, _):
        assert ask(gateway.url)[1]["x-bpac-decision"].startswith("dec-")
    with Running(slowly(Reply(status=500)), gateway={"stream_keep_alive": 0}) as (gateway, _):
        assert ask(gateway.url, stream=True)[0] == 502
    with Running(Reply("42")) as (gateway, _):
        _, headers, text = ask(gateway.url, stream=True)
        assert headers["x-bpac-decision"].startswith("dec-")
        assert not text.startswith(":")


def test_a_caller_who_leaves_during_comments_changes_nothing_that_is_counted() -> None:
    """The round was decided, so it is graded although its caller has left."""
    decided, release = threading.Event(), threading.Event()

    def expert(_: Request) -> Reply:
        decided.set()
        assert release.wait(60.0)
        return Reply("42")

    with Running(pair(Reply("42"), expert), gateway=OFTEN) as (gateway, _):
        connection = open_chat(gateway.url, STREAM)
        assert b": waiting" in _until(connection, b": waiting")
        assert decided.wait(60.0)  # comments may begin before it
        connection.close()
        release.set()
        wait_for(lambda: gateway.status()["steps"] == 1)
        gateway.idle()
        assert gateway.status()["owed"] == 0


def test_a_stop_during_comments_ends_the_stream_with_an_error() -> None:
    """A gateway that stops and waits no longer says so in the stream."""
    release = threading.Event()

    def expert(_: Request) -> Reply:
        assert release.wait(60.0)
        return Reply("42")

    with Running(pair(Reply("42"), expert), gateway={**OFTEN, "drain": 1}) as (gateway, _):
        connection = open_chat(gateway.url, STREAM)
        _until(connection, b": waiting")
        threading.Timer(0.1, gateway.stop).start()
        assert b"shutting_down" in _until(connection, b"shutting_down")
        connection.close()
        release.set()


def test_passed_through_streams_get_comments_too() -> None:
    """Completions that are passed through wait for their first event in the same way."""
    with Running(Reply("one", delay=0.4), gateway=OFTEN) as (gateway, _):
        config: Any = gateway.config
        assert gateway.reload({**config, "routes": {"alone": {"expert": "large"}}})
        _, _, text = post(f"{gateway.url}/v1/completions", {"model": "alone", "prompt": "a", "stream": True})
        assert text.startswith(": waiting\n\n")
        assert text.endswith("data: [DONE]\n\n")


def _until(connection: Any, wanted: bytes) -> bytes:
    data = b""
    while wanted not in data:
        part = connection.recv(10_000)
        assert part, data
        data += part
    return data
