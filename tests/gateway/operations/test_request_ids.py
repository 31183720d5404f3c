"""Ids of requests and decisions, in every response, also in errors, in the log, and in the body if asked for."""

import io
import json
import logging
import socket
import urllib.error
import urllib.request

import pytest

from bpac.gateway.telemetry.logs import JsonFormatter
from bpac.testing import Reply
from tests.gateway.configured import get_json
from tests.gateway.operations.asking import ask, post
from tests.gateway.running import Running, pair

IN_BODY = {"x-bpac-ids": "body"}


def test_every_response_has_the_id_of_its_request() -> None:
    """The caller's own id is repeated; without one, or with one that cannot be used, there is a new one."""
    with Running(Reply("42")) as (gateway, _):
        assert ask(gateway.url, headers={"x-request-id": "abc:1"})[1]["x-request-id"] == "abc:1"
        ids = [ask(gateway.url)[1]["x-request-id"] for _ in range(2)]
        ids += [ask(gateway.url, headers={"x-request-id": bad})[1]["x-request-id"] for bad in ("two words", "x" * 129)]
        assert len(set(ids)) == 4
        assert all(found.startswith("req-") for found in ids)
        with urllib.request.urlopen(f"{gateway.url}/healthz") as response:
            assert response.headers["x-request-id"].startswith("req-")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/chat/completions", {"model": "homework"}, 400),
        ("/v1/chat/completions", {"model": "nothing", "messages": [{}]}, 404),
        ("/v1/feedback", {"decision": "dec-1-1-00", "loss": 0}, 404),
        ("/nowhere", {}, 404),
    ],
)
def test_errors_have_the_id(path: str, body: object, status: int) -> None:
    """Errors of every endpoint have the id, in the header and on request in the body."""
    with Running(Reply("42")) as (gateway, _):
        got, headers, answer = post(f"{gateway.url}{path}", body, {"x-request-id": "mine", **IN_BODY})
        assert (got, headers["x-request-id"], answer["bpac"]["request_id"]) == (status, "mine", "mine")
        assert answer["error"]["message"]


def test_a_request_that_is_no_http_gets_an_id() -> None:
    """Also the refusals that are sent before a request is read have an id."""
    with (
        Running(Reply("42")) as (gateway, _),
        socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection,
    ):
        connection.sendall(b"nonsense\r\n\r\n")
        assert b"x-request-id: req-" in connection.recv(10_000)


def test_an_error_after_the_decision_names_the_decision() -> None:
    """The expert fails: the caller gets 502 with the id of the decision, which an operator finds on the dashboard."""
    with Running(pair(Reply("41"), Reply(status=500))) as (gateway, _):
        status, headers, body = ask(gateway.url, headers=IN_BODY)
        assert status == 502
        decision = headers["x-bpac-decision"]
        assert body["bpac"] == {"request_id": headers["x-request-id"], "decision": decision}
        assert get_json(f"{gateway.url}/dashboard/decisions/{decision}")


def test_an_error_without_a_score_says_so() -> None:
    """If draft and expert fail, the error says that no decision was made, and why."""
    with Running(Reply(status=500)) as (gateway, _):
        status, headers, _ = ask(gateway.url)
        assert (status, headers["x-bpac-decision"], headers["x-bpac-unscored"]) == (502, "unscored", "draft-failed")


def test_the_log_has_the_id() -> None:
    """An operator who is given the id of a failed request finds the lines about it."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())
    logging.getLogger("bpac").addHandler(handler)
    try:
        with Running(pair(Reply("41"), Reply(status=500))) as (gateway, _):
            ask(gateway.url, headers={"x-request-id": "mine"})
    finally:
        logging.getLogger("bpac").removeHandler(handler)
    lines = [json.loads(line) for line in text.getvalue().splitlines()]
    assert [line["request"] for line in lines if line["message"] == "model failed"] == ["mine"]


@pytest.mark.parametrize("stream", [False, True])
def test_ids_in_the_body_if_asked_for(stream: bool) -> None:
    """The body, or the first event of a stream, has the ids; nothing else of it changes."""
    with Running(Reply("42")) as (gateway, _):
        _, plain, before = ask(gateway.url, stream=stream)
        _, headers, after = ask(gateway.url, headers=IN_BODY, stream=stream)
        if stream:
            first = json.loads(after.partition("\n\n")[0].removeprefix("data: "))
            assert "bpac" not in before
            assert after.count('"bpac"') == 1
            assert after.endswith("data: [DONE]\n\n")
        else:
            first = after
            assert "bpac" not in before
            assert after["choices"] == before["choices"]
        ids = {"request_id": headers["x-request-id"], "decision": headers["x-bpac-decision"], "answered_by": "expert"}
        assert first["bpac"] == ids
        assert plain["x-bpac-decision"] != headers["x-bpac-decision"]
