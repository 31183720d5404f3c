"""The scripted server that bpac ships for tests of other programs."""

import json
import math
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from bpac.answer import Token
from bpac.errors import InputError
from bpac.testing import SILENCE, Reply, Request, ScriptedServer, in_turn
from tests.gateway.configured import wait_for
from tests.gateway.raw import open_chat


def post(server: ScriptedServer, timeout: float = 5.0, **body: Any) -> bytes:
    """The body that a plain HTTP client receives."""
    data = json.dumps({"messages": [{"role": "user", "content": "?"}], **body}).encode()
    asked = urllib.request.Request(f"{server.base_url}/chat/completions", data, {"X-Tenant": "t"})
    with urllib.request.urlopen(asked, timeout=timeout) as response:
        read: bytes = response.read()
    return read


def test_requests_are_recorded_and_replies_come_in_turn() -> None:
    """Requests are recorded in order with body, headers and time; the last reply is repeated."""
    with ScriptedServer(in_turn(Reply("a"), Reply("b"))) as server:
        texts = [json.loads(post(server, seed=seed))["choices"][0]["message"]["content"] for seed in (1, 2, 3)]
    assert texts == ["a", "b", "b"]
    assert [(request.number, request.body["seed"]) for request in server.requests] == [(1, 1), (2, 2), (3, 3)]
    assert server.requests[0].headers["x-tenant"] == "t"
    assert server.requests[0].question == "?"
    assert server.requests[0].at < server.requests[1].at


def test_a_reply_may_depend_on_the_request() -> None:
    """A script is a function of the request."""
    with ScriptedServer(lambda request: Reply(request.question * 2)) as server:
        assert json.loads(post(server))["choices"][0]["message"]["content"] == "??"


def test_log_probabilities_are_sent_only_on_request() -> None:
    """The number of most likely tokens is as requested; an infinite log-probability is null."""
    token = Token("a", -math.inf, (-0.1, -2.5), ("b", "c"))
    with ScriptedServer(Reply(tokens=(token,))) as server:
        assert json.loads(post(server))["choices"][0]["logprobs"] is None
        (entry,) = json.loads(post(server, logprobs=True, top_logprobs=1))["choices"][0]["logprobs"]["content"]
    assert entry["logprob"] is None
    assert [(other["token"], other["logprob"]) for other in entry["top_logprobs"]] == [("b", -0.1)]


def test_streams_are_server_sent_events() -> None:
    """A stream has a chunk for each token, the usage if requested, and ``[DONE]``."""
    with ScriptedServer(Reply("one two")) as server:
        events = post(server, stream=True, stream_options={"include_usage": True}).decode().split("\n\n")
    assert all(event.startswith("data: ") for event in events[:-1])
    assert events[-2:] == ["data: [DONE]", ""]
    assert json.loads(events[-3][6:])["usage"]["completion_tokens"] == 2


def test_errors_and_raw_bytes_are_sent() -> None:
    """A status comes with an error body and the given headers; raw bytes are sent without changes."""
    with ScriptedServer(in_turn(Reply("wait", status=429, headers={"Retry-After": "1"}), Reply(raw=b"?"))) as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(server)
        with caught.value as error:
            assert (error.code, error.headers["Retry-After"]) == (429, "1")
            assert json.load(error)["error"]["message"] == "wait"
        assert post(server) == b"?"


def test_silence_does_not_delay_the_end_of_a_test() -> None:
    """Nothing is sent, a client that disconnects is counted, and closing does not wait for the reply."""
    started = time.monotonic()
    with ScriptedServer(SILENCE) as server:
        with pytest.raises(TimeoutError):
            post(server, timeout=0.1)
        wait_for(lambda: server.hang_ups == 1)
        waiting = open_chat(server.base_url.removesuffix("/v1"), {"messages": []})
        wait_for(lambda: len(server.requests) == 2)
    waiting.close()
    assert time.monotonic() - started < SILENCE.delay


def test_the_models_are_listed() -> None:
    """``GET`` lists one model."""
    with ScriptedServer(Reply()) as server, urllib.request.urlopen(f"{server.base_url}/models") as response:
        assert json.load(response)["data"][0]["id"] == "scripted"


def test_an_exception_in_the_script_fails_the_test() -> None:
    """The client gets status 500, and the exception is raised at the end of the block."""

    def script(request: Request) -> Reply:
        raise KeyError("forgotten")

    def run() -> None:
        with ScriptedServer(script) as server:
            with pytest.raises(urllib.error.HTTPError, match="500") as caught:
                post(server)
            caught.value.close()

    with pytest.raises(KeyError, match="forgotten"):
        run()


def test_a_script_must_return_a_reply() -> None:
    """A script that returns something else fails the test with an error that shows it."""

    def run() -> None:
        with ScriptedServer(lambda request: "42") as server:  # type: ignore[arg-type, return-value]
            with pytest.raises(urllib.error.HTTPError, match="500") as caught:
                post(server)
            caught.value.close()

    with pytest.raises(TypeError, match="the script must return a Reply, got '42'"):
        run()


def test_a_request_body_that_is_not_json_gets_status_400() -> None:
    """The error has OpenAI's format, and the request is not recorded."""
    with ScriptedServer(Reply()) as server:
        with pytest.raises(urllib.error.HTTPError, match="400") as caught:
            urllib.request.urlopen(urllib.request.Request(f"{server.base_url}/chat/completions", b"{"))
        with caught.value as error:
            assert "the request body is not JSON" in json.load(error)["error"]["message"]
    assert server.requests == []


def test_wrong_use_is_explained() -> None:
    """Errors say what is wrong and how to use the server."""
    with pytest.raises(InputError, match="use  with ScriptedServer"):
        _ = ScriptedServer(Reply()).base_url
    with pytest.raises(InputError, match="at least one Reply"):
        in_turn()
    with pytest.raises(InputError, match=r"must be in \(0, 1\], got 0"):
        Reply("a", probability=0.0)
