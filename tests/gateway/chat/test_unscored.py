"""Requests whose draft has no score: the expert answers them, and they are not rounds (MATH section 13)."""

from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bpac.testing import SILENCE, Reply, ScriptedServer
from tests.gateway.chat.test_failures import BROKEN, DRAFT, EXPERT, PATIENT, STREAMS
from tests.gateway.configured import settings, wait_for
from tests.gateway.raw import open_chat, post
from tests.gateway.running import ASK, Running, RunningGateway, pair

MORE = {"no log-probabilities": Reply("41", logprobs=False), "refused": Reply("no", status=400)}
REASONS = {"no log-probabilities": "no-score", "refused": "draft-refused"}


@STREAMS
@pytest.mark.parametrize("score", ["perplexity", {"name": "perplexity", "first_tokens": 8}])
@pytest.mark.parametrize("failure", [*BROKEN, *MORE])
def test_the_expert_answers_if_the_draft_fails(failure: str, stream: bool, score: Any) -> None:
    """There is no decision, no round, and nothing that feedback could be about."""
    model = {"timeout": 0.5} if failure == "silent" else {}
    reason = REASONS.get(failure, "draft-failed")
    with Running(pair((BROKEN | MORE)[failure], EXPERT), model=model, score=score) as (gateway, _):
        got = post(gateway.url, ASK | {"stream": stream})
        assert (got.status, b"42" in got.body) == (200, True)
        said = {name: value for name, value in got.headers.items() if name.startswith("x-bpac")}
        assert said == {
            "x-bpac-decision": "unscored",
            "x-bpac-answered-by": "expert",
            "x-bpac-uncertainty": "1.0",
            "x-bpac-threshold": "0.0",
            "x-bpac-propensity": "1.0",
            "x-bpac-unscored": reason,
        }
        assert post(gateway.url, {"decision": "unscored", "loss": 0.0}, "/v1/feedback").status == 404
        gateway.idle()
        status = gateway.status()
        assert (status["steps"], status["owed"], status["forfeits"], status["threshold"]) == (0, 0, {}, 0.0)
        assert status["unscored"] == {"requests": 1, "share": 1.0, "reasons": {reason: 1}}
        assert status["state"] == "not_routing"


@STREAMS
@pytest.mark.parametrize("score", ["perplexity", {"name": "perplexity", "first_tokens": 8}])
@pytest.mark.parametrize(
    ("failure", "kind", "why"),
    [
        ("busy", "busy", "it failed (status 500)"),
        ("nothing", "unusable or cut_off", "its "),
        ("refused", "refused", "it refused the request (status 400)"),
    ],
)
def test_failed_drafts_are_logged_once_for_many(
    failure: str, kind: str, why: str, *, stream: bool, score: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Callers get the expert's answer, so only the log tells an operator which model fails, and how."""
    with Running(pair((BROKEN | MORE)[failure], EXPERT), model={"retries": 0}, score=score) as (gateway, _):
        for _ in range(3):
            assert post(gateway.url, ASK | {"stream": stream}).status == 200
        gateway.idle()
    (logged,) = [vars(record) for record in caplog.records if record.message == "model failed"]
    assert (logged["levelname"], logged["model"], logged["kind"] in kind) == ("WARNING", "small", True)
    assert logged["since_last_line"] == 1
    assert why in logged["error"]


def test_unscored_requests_certify_nothing() -> None:
    """As rounds of uncertainty 1 that never lose, eighty of them would open every threshold."""
    with Running(pair(DRAFT, EXPERT)) as (gateway, _):
        for _ in range(100):
            post(gateway.url, ASK | {"n": 2})
        status = gateway.status()
        assert (status["steps"], status["threshold"], status["unscored"]["requests"]) == (0, 0.0, 100)


def test_unscored_requests_are_counted_over_restarts(tmp_path: Path) -> None:
    """By reason and as a share, in the status and in the metrics; a request with a score ends the state not_routing."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(pair(DRAFT, EXPERT)) as models:
        config = settings(models.base_url, gateway=options)
        with RunningGateway(config) as gateway:
            for more in ({"n": 2}, {"n": 2}, {"modalities": ["text", "audio"]}):
                post(gateway.url, ASK | more)
            gateway.idle()
        with RunningGateway(config) as gateway:
            assert gateway.status()["state"] == "not_routing"
            post(gateway.url, ASK)
            gateway.idle()
            status = gateway.status()
            assert status["unscored"] == {"requests": 3, "share": 0.75, "reasons": {"modalities": 1, "n": 2}}
            assert status["state"] == "warming_up"
            page = post(gateway.url, b"", "/metrics", method="GET").body.decode()
        found = {family.name: family for family in text_string_to_metric_families(page)}
        counts = [(sample.labels, sample.value) for sample in found["bpac_unscored"].samples]
        assert counts == [
            ({"route": "homework", "reason": "modalities"}, 1.0),
            ({"route": "homework", "reason": "n"}, 2.0),
        ]


@STREAMS
def test_no_draft_without_a_score_is_served(stream: bool) -> None:
    """Not even in place of an expert that fails: it would not be a round, so its loss would not count."""
    with Running(pair(MORE["no log-probabilities"], BROKEN["busy"]), on_expert_failure="draft") as (gateway, _):
        assert post(gateway.url, ASK | {"stream": stream}).status == 502


@STREAMS
def test_a_request_that_both_models_refuse_is_not_a_round(stream: bool) -> None:
    """The caller gets the expert's refusal; as rounds, a flood of them would look like harmless traffic."""
    with Running(pair(MORE["refused"], Reply("no such thing", status=400))) as (gateway, _):
        got = post(gateway.url, ASK | {"stream": stream})
        assert (got.status, got.json["error"]["message"]) == (400, "no such thing")
        gateway.idle()
        assert gateway.status()["steps"] == 0


@STREAMS
def test_an_unscored_expert_call_is_cancelled_when_the_caller_leaves(stream: bool) -> None:
    """Nothing would be learnt from the answer, and nothing was served."""
    with Running(pair(DRAFT, SILENCE), model=PATIENT) as (gateway, models):
        caller = open_chat(gateway.url, ASK | {"stream": stream, "n": 2})
        wait_for(lambda: len(models.requests) == 1)
        caller.close()
        wait_for(lambda: models.hang_ups == 1)
        gateway.idle()
        assert gateway.status()["steps"] == 0
