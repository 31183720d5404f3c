"""The scripted server that is shipped for tests does what its script says."""

import json
import math
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from bpac.answer import Token
from bpac.testing import SILENCE, Reply, Request, ScriptedServer, in_turn
from tests.gateway.configured import wait_for
from tests.gateway.raw import open_chat


def post(server: ScriptedServer, timeout: float = 5.0, **body: Any) -> bytes:
    """What a plain HTTP client gets."""
    data = json.dumps({"messages": [{"role": "user", "content": "?"}], **body}).encode()
    asked = urllib.request.Request(f"{server.base_url}/chat/completions", data, {"X-Tenant": "t"})
    with urllib.request.urlopen(asked, timeout=timeout) as response:
        read: bytes = response.read()
    return read


def test_requests_are_recorded() -> None:
    """In order, with body, headers and time; replies come in turn."""
    with ScriptedServer(in_turn(Reply("a"), Reply("b"))) as server:
        said = [json.loads(post(server, seed=seed))["choices"][0]["message"]["content"] for seed in (1, 2, 3)]
    assert said == ["a", "b", "b"]
    assert [(request.number, request.body["seed"]) for request in server.requests] == [(1, 1), (2, 2), (3, 3)]
    assert server.requests[0].headers["x-tenant"] == "t"
    assert server.requests[0].question == "?"
    assert server.requests[0].at < server.requests[1].at


def test_a_reply_may_depend_on_the_request() -> None:
    """The script is a function."""
    with ScriptedServer(lambda request: Reply(request.question * 2)) as server:
        assert json.loads(post(server))["choices"][0]["message"]["content"] == "??"


def test_log_probabilities_are_sent_on_request() -> None:
    """With as many alternatives as requested; what JSON cannot write is null."""
    token = Token("a", -math.inf, (-0.1, -2.5), ("b", "c"))
    with ScriptedServer(Reply(tokens=(token,))) as server:
        assert json.loads(post(server))["choices"][0]["logprobs"] is None
        (entry,) = json.loads(post(server, logprobs=True, top_logprobs=1))["choices"][0]["logprobs"]["content"]
    assert entry["logprob"] is None
    assert [(other["token"], other["logprob"]) for other in entry["top_logprobs"]] == [("b", -0.1)]


def test_streams_are_events() -> None:
    """One for each token, one with the counts on request, and the one that ends the stream."""
    with ScriptedServer(Reply("one two")) as server:
        events = post(server, stream=True, stream_options={"include_usage": True}).decode().split("\n\n")
    assert all(event.startswith("data: ") for event in events[:-1])
    assert events[-2:] == ["data: [DONE]", ""]
    assert json.loads(events[-3][6:])["usage"]["completion_tokens"] == 2


def test_errors_and_raw_bytes_are_sent_as_scripted() -> None:
    """A status comes with an error body and the given headers; raw bytes are not changed."""
    with ScriptedServer(in_turn(Reply("wait", status=429, headers={"Retry-After": "1"}), Reply(raw=b"?"))) as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(server)
        with caught.value as error:
            assert (error.code, error.headers["Retry-After"]) == (429, "1")
            assert json.load(error)["error"]["message"] == "wait"
        assert post(server) == b"?"


def test_silence_ends_with_the_server_or_the_caller() -> None:
    """A caller that hangs up is counted, and closing the server does not wait."""
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
    """As OpenAI lists them."""
    with ScriptedServer(Reply()) as server, urllib.request.urlopen(f"{server.base_url}/models") as response:
        assert json.load(response)["data"][0]["id"] == "scripted"


def test_a_script_that_fails_fails_the_test() -> None:
    """The caller sees a status 500, and the block ends with the script's own error."""

    def script(request: Request) -> Reply:
        raise KeyError("forgotten")

    def run() -> None:
        with ScriptedServer(script) as server:
            with pytest.raises(urllib.error.HTTPError, match="500") as caught:
                post(server)
            caught.value.close()

    with pytest.raises(KeyError, match="forgotten"):
        run()
