"""What callers see of a model server's refusal: nothing about the gateway's own credentials."""

import logging
from typing import Any

import pytest

from bpac.testing import Reply
from tests.gateway.measured import metric
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, pair

SECRET = "Incorrect API key provided: sk-operator-1234"
STREAMED = ASK | {"stream": True}


@pytest.mark.parametrize("status", [401, 403, 407])
@pytest.mark.parametrize("ask", [ASK, STREAMED], ids=["whole", "streamed"])
def test_refused_credentials_are_not_shown_to_callers(status: int, ask: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Status 502 without the server's message or status; the log names the model, once for many requests."""
    refusal = Reply(SECRET, status=status, headers={"WWW-Authenticate": "Basic", "Retry-After": "7"})
    with Running(pair(Reply("41"), refusal), policy="always", model={"retries": 2}) as (gateway, models):
        for _ in range(3):
            got = post(gateway.url, ask)
            assert (got.status, got.json["error"]["code"]) == (502, "upstream_failed")
            assert not {"www-authenticate", "retry-after"} & got.headers.keys()
            assert str(status) not in got.json["error"]["message"]
            assert SECRET.encode() not in got.body
        gateway.idle()
        assert gateway.status()["forfeits"] == {"expert failed": 3}
        assert len(models.requests) == 6, "it would say no again"
        assert metric(gateway, "bpac_upstream_failures_total", model="large", kind="credentials") == 3
    logged = [vars(record) for record in caplog.records if record.message == "model cannot be used"]
    assert [(record["levelno"], record["model"], record["status"]) for record in logged] == [
        (logging.ERROR, "large", status)
    ]
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"<html><script>alert(1)</script></html>", "text/html"),
        (b"nginx", "text/plain"),
        (b'["a list"]', "application/json"),
        (b"{", "application/json"),
        (b"", "application/json"),
        (b'{"padding": "' + b"x" * 2**20 + b'"}', "application/json"),
    ],
    ids=["html", "text", "list", "broken", "empty", "long"],
)
@pytest.mark.parametrize("ask", [ASK, STREAMED], ids=["whole", "streamed"])
def test_only_json_is_passed_on(raw: bytes, kind: str, ask: Any) -> None:
    """Anything else becomes an error of the gateway with the same status."""
    refusal = Reply(raw=raw, status=404, headers={"Content-Type": kind})
    with Running(pair(Reply("41"), refusal), policy="always") as (gateway, _):
        got = post(gateway.url, ask)
        assert (got.status, got.headers["content-type"]) == (404, "application/json")
        assert got.json["error"]["code"] == "upstream_refused"
        assert b"script" not in got.body


def test_json_errors_are_passed_on_whatever_their_content_type() -> None:
    """An error that is JSON comes through byte by byte, as JSON."""
    raw = b'{"error": {"message": "too long", "type": "vendor"}}'
    refusal = Reply(raw=raw, status=400, headers={"Content-Type": "text/html"})
    with Running(pair(Reply("41"), refusal), policy="always") as (gateway, _):
        got = post(gateway.url, ASK)
        assert (got.status, got.body, got.headers["content-type"]) == (400, raw, "application/json")
