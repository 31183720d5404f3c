"""Failures of the draft, the expert and the judge: logged, counted, and shown in the status."""

from typing import Any

import pytest

from bpac.testing import SILENCE, Reply, Request, ScriptedServer
from tests.gateway.configured import get_json, settings
from tests.gateway.measured import metric
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair
from tests.ports import free_port

PROMPT = "a question that must not be logged"
ECHO = {"model": "homework", "messages": [{"role": "user", "content": PROMPT}]}
NO_LOGPROBS = Reply(f"logprobs is not supported by this model, asked for {PROMPT}", status=400)
FAULTS: dict[str, tuple[Reply, str, int | None]] = {
    "refuses logprobs": (NO_LOGPROBS, "refused", 400),
    "key refused": (Reply(f"wrong key, asked for {PROMPT}", status=401), "credentials", 401),
    "account": (Reply("insufficient balance", status=402), "credentials", 402),
    "unknown model": (Reply("no such model", status=404), "refused", 404),
    "unknown field": (Reply("extra inputs are not permitted", status=422), "refused", 422),
    "rate limit": (Reply("slow down", status=429), "busy", 429),
    "overloaded": (Reply("overloaded", status=503), "busy", 503),
    "html": (Reply(raw=b"<html>"), "unusable", None),
    "hangs": (SILENCE, "timeout", None),
}


def health(gateway: RunningGateway, model: str) -> dict[str, Any]:
    """What the status says about a model."""
    found: dict[str, Any] = get_json(f"{gateway.url}/v1/status")["models"][model]["health"]
    return found


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_draft_that_fails_is_seen(fault: str, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    """One log line for many requests, a count by model, kind and status, and the error in the status."""
    reply, kind, status = FAULTS[fault]
    model = {"timeout": 0.2} if fault == "hangs" else {}
    with Running(pair(reply, Reply("42")), model=model) as (gateway, _):
        for _ in range(3):
            assert post(gateway.url, ECHO | {"stream": stream}).status == 200
        gateway.idle()
        assert metric(gateway, "bpac_upstream_failures_total", model="small", kind=kind) == 3
        assert metric(gateway, "bpac_upstream_up", model="small") == 0
        assert metric(gateway, "bpac_upstream_up", model="large") == 1
        if status is not None:
            assert metric(gateway, "bpac_upstream_statuses_total", model="small", status=str(status)) == 3
        found = health(gateway, "small")
        assert (found["ok"], found["failures"]) == (False, 3)
        assert found["kinds"] == [{"kind": kind, "status": status, "count": 3}]
        assert found["since"] is not None
        assert health(gateway, "large")["ok"]
    lines = [vars(record) for record in caplog.records if getattr(record, "kind", None) == kind]
    assert [(line["model"], line["status"], line["since_last_line"]) for line in lines] == [("small", status, 1)]
    assert lines[0]["remedy"] in found["error"]
    assert PROMPT not in caplog.text + found["error"]


def test_a_draft_that_refuses_logprobs_is_named_as_such(caplog: pytest.LogCaptureFixture) -> None:
    """The remedy names another score; of the server's message only the name of the field is shown."""
    with Running(pair(NO_LOGPROBS, Reply("42"))) as (gateway, _):
        post(gateway.url, ASK)
        assert "it names logprobs" in health(gateway, "small")["error"]
        assert 'score = "verbalized"' in health(gateway, "small")["error"]


def test_a_server_that_is_not_there_is_seen() -> None:
    """A refused connection is a failure of the kind connection."""
    with Running(Reply("42")) as (_, models):
        config = settings(models.base_url)
        config["models"]["small"]["base_url"] = f"http://127.0.0.1:{free_port()}/v1"
        with RunningGateway(config) as gateway:
            assert post(gateway.url, ASK).status == 200
            assert metric(gateway, "bpac_upstream_failures_total", model="small", kind="connection") == 1
            assert "check that it runs" in health(gateway, "small")["error"]


def test_a_model_that_answers_again_is_up(caplog: pytest.LogCaptureFixture) -> None:
    """Its failures stay counted, and the log says that it answers."""
    with Running(pair(Reply("busy", status=503), Reply("42"))) as (gateway, models):
        post(gateway.url, ASK)
        assert not health(gateway, "small")["ok"]
        models.script = pair(Reply("41"), Reply("42"))
        post(gateway.url, ASK)
        found = health(gateway, "small")
        assert (found["ok"], found["error"], found["failures"]) == (True, None, 1)
        assert found["last"]["status"] == 503
    assert [record.message for record in caplog.records if "again" in record.message] == ["model answers again"]


def test_a_caller_cannot_make_a_model_look_down() -> None:
    """Requests that the model refuses say nothing about it as long as it answers others."""

    def script(request: Request) -> Reply:
        return Reply("no", status=400) if "top_k" in request.body else Reply("42")

    with Running(script) as (gateway, _):
        post(gateway.url, ASK)
        for _ in range(10):
            post(gateway.url, ASK | {"top_k": -1})
        assert health(gateway, "small")["failures"] == 10
        assert health(gateway, "small")["ok"]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply("no idea"), "unusable"),
        (Reply("busy", status=500), "busy"),
        (Reply("no", status=400), "refused"),
        (Reply("wrong key", status=401), "credentials"),
        (Reply(raw=b"x"), "unusable"),
        (SILENCE, "timeout"),
    ],
    ids=["no mark", "busy", "refused", "key", "html", "hangs"],
)
def test_a_judge_that_fails_is_seen(reply: Reply, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """The answers are served, so only the log, the metrics and the status show it."""

    def script(request: Request) -> Reply:
        if request.body["model"] == "judge":
            return reply
        return Reply("41") if request.body["model"] == "draft" else Reply("42")

    with Running(Reply("unused")) as (_, models):
        models.script = script
        config = settings(models.base_url, loss={"name": "judge", "judge": "third", "attempts": 1, "timeout": 5.0})
        config["models"]["third"] = {**config["models"]["large"], "model": "judge", "timeout": 0.2}
        with RunningGateway(config) as gateway:
            for _ in range(2):
                assert post(gateway.url, ASK).status == 200
                gateway.idle()
            failures = metric(gateway, "bpac_upstream_failures_total", model="third", kind=kind)
            # Both answers are marked at the same time, and the first failure cancels the other request.
            sent = sum(one.body["model"] == "judge" for one in models.requests)
            assert failures is not None
            assert 2 <= failures <= sent <= 4
            assert not health(gateway, "third")["ok"]
    lines = [vars(record) for record in caplog.records if getattr(record, "kind", None) == kind]
    assert [line["model"] for line in lines] == ["third"]


@pytest.mark.parametrize("status", [401, 402, 403])
@pytest.mark.parametrize("stream", [False, True])
def test_the_operators_key_is_the_operators_trouble(status: int, stream: bool) -> None:
    """Callers get 502 without the vendor's text; the status says that the gateway's own key is refused."""
    with Running(pair(Reply("41"), Reply("vendor text", status=status)), policy="always") as (gateway, _):
        got = post(gateway.url, ASK | {"stream": stream})
        assert got.status == 502
        assert b"vendor" not in got.body
        gateway.idle()
        found = health(gateway, "large")
        assert not found["ok"]
        assert "gateway's own key" in found["error"]
        assert gateway.status()["forfeits"] == {"expert failed": 1}


@pytest.mark.parametrize("limited", ["draft", "expert", "judge"])
def test_a_model_that_only_answers_429_is_seen(limited: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its breaker stays closed, because its server is up; log, metrics, status and dashboard say what to do."""
    names = {"draft": "small", "expert": "large", "judge": "third"}

    def script(request: Request) -> Reply:
        return Reply("slow down", status=429) if request.body["model"] == limited else Reply("7")

    with ScriptedServer(script) as models:
        config = settings(models.base_url, model={"breaker": 1}, loss={"name": "judge", "judge": "third"})
        config["models"]["third"] = {**config["models"]["large"], "model": "judge"}
        with RunningGateway(config) as gateway:
            for _ in range(3):
                assert post(gateway.url, ASK).status == (429 if limited == "expert" else 200)
            gateway.idle()
            name = names[limited]
            failures = metric(gateway, "bpac_upstream_failures_total", model=name, kind="busy")
            assert failures is not None
            assert failures >= 3
            assert metric(gateway, "bpac_upstream_statuses_total", model=name, status="429") == failures
            assert metric(gateway, "bpac_upstream_up", model=name) == 0
            found = health(gateway, name)
            assert (found["ok"], found["breaker"]) == (False, "closed")
            assert "raise the rate limit or quota of this key" in found["error"]
            troubles = get_json(f"{gateway.url}/dashboard/data")["troubles"]
            (trouble,) = [one for one in troubles if one["what"].startswith(f"model {name} fails")]
            assert "busy (status 429)" in trouble["what"]
            assert "raise the vendor's rate limit" in trouble["remedy"]
            assert trouble["cost"] == "used by: homework"
            assert (trouble["count"], trouble["since"]) == (failures, found["since"])
    (line,) = [vars(record) for record in caplog.records if getattr(record, "kind", None) == "busy"]
    assert (line["model"], line["status"]) == (name, 429)
    assert "raise the rate limit" in line["remedy"]
