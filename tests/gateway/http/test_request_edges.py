"""Numbers at the edge of JSON, the list of models, and how the gateway stops."""

import json
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import openai
import pytest

from bpac.gateway.chat.request import ChatRequest, parse_object
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.http.openapi.openapi import document
from bpac.testing import Reply, ScriptedServer
from bpac.wire.json import to_json
from tests.gateway.configured import settings, wait_for
from tests.gateway.raw import open_chat, post
from tests.gateway.running import ASK, Running, RunningGateway, pair
from tests.gateway.serving import COMMAND, Process

DRAFT, EXPERT = Reply("41"), Reply("42")


@pytest.mark.parametrize("logprobs", [{}, {"logprobs": False}, {"logprobs": None}])
def test_top_logprobs_need_logprobs(logprobs: dict[str, Any]) -> None:
    """Status 400, as from OpenAI, and no model is called."""
    with Running(pair(DRAFT, EXPERT)) as (gateway, models):
        got = post(gateway.url, ASK | {"top_logprobs": 3} | logprobs)
        assert (got.status, got.json["error"]["param"]) == (400, "top_logprobs")
        assert "set logprobs to true" in got.json["error"]["message"]
        # None of them need no logprobs.
        assert post(gateway.url, ASK | {"top_logprobs": 0} | logprobs).status == 200
        gateway.idle()
        assert gateway.status()["steps"] == 1
        assert {request.body["top_logprobs"] for request in models.requests} == {0}


@pytest.mark.parametrize("count", [21, 1000, 10**30])
def test_any_number_of_top_logprobs_is_passed_on(count: int) -> None:
    """The models' servers refuse what is too many for them."""
    with Running(pair(DRAFT, EXPERT), policy="always") as (gateway, models):
        assert post(gateway.url, ASK | {"logprobs": True, "top_logprobs": count}).status == 200
        gateway.idle()
        assert [request.body["top_logprobs"] for request in models.requests] == [count, count]


@pytest.mark.parametrize("count", [-1, 1.5, "3", True, -(10**30)])
def test_top_logprobs_must_be_a_whole_number(count: Any) -> None:
    """The error names the field and what it must be."""
    with pytest.raises(BadRequest, match="a whole number of at least 0") as caught:
        ChatRequest.parse(json.dumps(ASK | {"logprobs": True, "top_logprobs": count}).encode())
    assert (caught.value.status, caught.value.param) == (400, "top_logprobs")


LONG = {
    "seed": 2**64,
    "logit_bias": {"7": -(2**63) - 1},
    "ids": [2**63, 2**64 - 1, -(2**63), 10**40, [123456789012345678901234567890]],
    "temperature": 0.12345678901234567,
    "user": "1234567890123456789012345",
}


@pytest.mark.parametrize("policy", ["never", "always"])
@pytest.mark.parametrize("stream", [False, True])
def test_long_numbers_arrive_unchanged(policy: str, stream: bool) -> None:
    """Whole numbers beyond 64 bits reach the models digit by digit."""
    with Running(pair(DRAFT, EXPERT), policy=policy) as (gateway, models):
        assert post(gateway.url, ASK | LONG | {"stream": stream}).status == 200
        gateway.idle()
        assert len(models.requests) == (1 if policy == "never" else 2)
        for request in models.requests:
            # By their texts: to Python the float that is nearest may be equal.
            assert {key: repr(request.body[key]) for key in LONG} == {key: repr(value) for key, value in LONG.items()}


@pytest.mark.parametrize("number", ["9" * 19, "-" + "9" * 19, "9" * 300, "1" * 25 + ".5", "0.1234567890123456789"])
def test_numbers_are_read_as_python_reads_them(number: str) -> None:
    """Whatever their length and their place; and written so that the same number is read again."""
    body = parse_object(b'{"x": [%s], "%s": {"y": %s}}' % ((number.encode(),) * 3), 64)
    assert body == {"x": [json.loads(number)], number: {"y": json.loads(number)}}
    assert [type(value) for value in body["x"]] == [type(json.loads(number))]
    assert json.loads(to_json(body)) == body


@pytest.mark.parametrize(
    "body", [b'{"x": NaN, "y": %s}', b'{"x": "\\ud800", "y": %s}', b'{"y": %s}]', b'{"y": 0%s}', b'{"y": %s000}']
)
def test_a_malformed_body_with_a_long_number_is_refused(body: bytes) -> None:
    """And so is a number beyond the range of floats."""
    with pytest.raises(BadRequest, match="not JSON"):
        parse_object(body % (b"9" * 307), 64)


def test_long_numbers_in_deep_bodies_are_read() -> None:
    """As deep as the configuration allows, and no deeper."""
    deepest = b'{"x":' + b"[" * 499 + b"9" * 30 + b"]" * 499 + b"}"
    assert to_json(parse_object(deepest, 500)) == deepest
    with pytest.raises(BadRequest, match="deeper than 499"):
        parse_object(deepest, 499)


def test_each_model_is_found_under_its_name() -> None:
    """With the fields that it has in the list, whatever characters are in its name; other names are not found."""
    with ScriptedServer(pair(DRAFT, EXPERT)) as models:
        config = settings(models.base_url)
        config["routes"]["maths/school: ä"] = config["routes"]["homework"]
        with RunningGateway(config) as gateway:
            client = gateway.client()
            listed = list(client.models.list())
            assert [model.id for model in listed] == ["homework", "maths/school: ä"]
            assert [client.models.retrieve(model.id) for model in listed] == listed
            for name in ("gpt-4", "small", "homework/", "HOMEWORK"):
                with pytest.raises(openai.NotFoundError) as caught:
                    client.models.retrieve(name)
                assert caught.value.body == {
                    "message": f"there is no route {name!r}: GET /v1/models lists the routes",
                    "type": "invalid_request_error", "param": "model", "code": "model_not_found",
                }  # fmt: skip
            # Some clients end every path with a slash.
            assert post(gateway.url, b"", "/v1/models/", method="GET").json["object"] == "list"
            assert post(gateway.url, b"", "/v1/models/homework").status == 405
    assert "/v1/models/{model}" in document(["homework"])["paths"]


def test_models_are_shown_with_a_key_only() -> None:
    """Without one, a caller does not learn which models exist."""
    with Running(pair(DRAFT, EXPERT), gateway={"api_keys": ["one"]}) as (gateway, _):
        assert gateway.client("one").models.retrieve("homework").id == "homework"
        for name in ("homework", "gpt-4"):
            with pytest.raises(openai.AuthenticationError):
                gateway.client("two").models.retrieve(name)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_gateway_with_exit_code_0(tmp_path: Path, how: signal.Signals) -> None:
    """After requests under way are answered and the journal is closed."""
    with ScriptedServer(pair(DRAFT, Reply("42", delay=0.5))) as models:
        gateway = Process(tmp_path, models.base_url)
        gateway.start()
        got = []
        caller = threading.Thread(target=lambda: got.append(post(gateway.url, ASK).status))
        caller.start()
        wait_for(lambda: len(models.requests) == 2)
        assert gateway.end(how) == 0
        caller.join()
        assert got == [200]
        gateway.close()
    assert (tmp_path / "log.jsonl").read_text() == ""
    # SQLite removes its log when the last connection closes the file.
    assert not list(tmp_path.glob("*-wal"))


def listens(port: int) -> bool:
    """Whether a server listens on the port."""
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    """Requests under way are cut off, and the exit code is 1."""
    with ScriptedServer(pair(DRAFT, Reply("42", delay=15.0))) as models:
        gateway = Process(tmp_path, models.base_url)
        gateway.start()
        with open_chat(gateway.url, ASK):
            wait_for(lambda: len(models.requests) == 2)
            gateway.process.send_signal(signal.SIGINT)
            wait_for(lambda: not listens(gateway.port))
            assert gateway.end(signal.SIGINT) == 1
        gateway.close()


def test_a_gateway_that_cannot_start_exits_with_code_1(tmp_path: Path) -> None:
    """And the log says why."""
    gateway = Process(tmp_path, "http://127.0.0.1:9/v1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", gateway.port))
        taken.listen()
        ended = subprocess.run([*COMMAND, "serve", gateway.config], capture_output=True, timeout=60.0, check=False)
    gateway.close()
    assert ended.returncode == 1
    assert b"address already in use" in ended.stderr
