"""Models, graders or callers that fail: what is answered, and what is counted."""

import threading
from contextlib import closing
from typing import Any

import pytest

from bpac.routing.journal.entries import Resolved
from bpac.testing import SILENCE, Reply, Request, in_turn
from tests.gateway.configured import wait_for
from tests.gateway.raw import open_chat, post
from tests.gateway.running import ASK, Running, pair

DRAFT, EXPERT = Reply("41", probability=0.8), Reply("42", reasoning="six times seven")
BROKEN = {
    "busy": Reply("busy", status=500),
    "garbage": Reply(raw=b"<html>"),
    "nothing": Reply(raw=b""),
    "empty object": Reply(raw=b"{}"),
    "no JSON number": Reply(raw=b'{"choices": [{"message": {"content": NaN}}]}'),
    "cut": Reply("a b c d", cut=1),
    "redirect": Reply("elsewhere", status=302, headers={"Location": "http://127.0.0.1:9"}),
    "silent": SILENCE,
}
# Longer than any test waits: what is hung up is hung up because its caller left.
PATIENT = {"timeout": 60.0}
STREAMS = pytest.mark.parametrize("stream", [False, True])


@STREAMS
@pytest.mark.parametrize("failure", BROKEN)
def test_a_failed_expert_is_an_error_and_loss_1(failure: str, stream: bool) -> None:
    """The caller gets OpenAI's error body after the retries, or as the last event of a stream; the round is loss 1."""
    model = {"timeout": 0.5} if failure == "silent" else {}
    with Running(pair(DRAFT, BROKEN[failure]), model=model) as (gateway, models):
        got = post(gateway.url, ASK | {"stream": stream})
        if failure == "cut" and stream:
            assert got.status == 200
            assert b'"code":"upstream_failed"' in got.body
            assert b"[DONE]" not in got.body
        else:
            assert got.status == 502
            assert got.json["error"]["type"] == "upstream_error"
            assert "127.0.0.1" not in got.json["error"]["message"]
        gateway.idle()
        status = gateway.status()
        assert (status["steps"], status["owed"], status["forfeits"]) == (1, 0, {"expert failed": 1})
        assert [request.body["model"] for request in models.requests] == ["draft", "expert"]


def test_a_failed_request_is_retried() -> None:
    """A request to a model is retried as often as its settings say."""
    with Running(pair(DRAFT, in_turn(*[BROKEN["busy"]] * 3, EXPERT)), model={"retries": 2}) as (gateway, models):
        assert post(gateway.url, ASK).status == 200
        assert len(models.requests) == 4


@STREAMS
@pytest.mark.parametrize("score", ["perplexity", {"name": "perplexity", "first_tokens": 1}])
def test_the_draft_replaces_a_failed_expert_if_configured(stream: bool, score: Any) -> None:
    """The caller gets the draft and a header that says so, and the certificate counts it as loss 1."""
    options = {"on_expert_failure": "draft", "score": score}
    with Running(pair(DRAFT, BROKEN["busy"]), **options) as (gateway, _):
        got = post(gateway.url, ASK | {"stream": stream})
        assert got.status == 200
        assert b"41" in got.body
        assert got.headers["x-bpac-answered-by"] == "draft"
        assert got.headers["x-bpac-fallback"] == "expert-failed"
        gateway.idle()
        status = gateway.status()
        assert status["forfeits"] == {"expert failed": 1}
        assert status["certificate"]["upper"] == 1.0


@pytest.mark.parametrize(
    "judge", [Reply("no idea"), Reply("busy", status=500), Reply("no", status=400), Reply(raw=b"x")]
)
def test_a_failed_grader_is_loss_1(judge: Reply) -> None:
    """The answer is served; the loss is not known, and so counts as 1."""

    def script(request: Request) -> Reply:
        if "<answer " in request.question:
            return judge
        return DRAFT if request.body["model"] == "draft" else EXPERT

    with Running(script, loss={"name": "judge", "judge": "large", "attempts": 1}) as (gateway, _):
        assert post(gateway.url, ASK).json["choices"][0]["message"]["content"] == "42"
        gateway.idle()
        status = gateway.status()
        assert (status["owed"], status["forfeits"]) == (0, {"grader failed": 1})


def test_a_judge_gives_the_loss() -> None:
    """The judge's marks are the loss, and its tokens are counted."""

    def script(request: Request) -> Reply:
        if "<answer " in request.question:
            return Reply("7" if "\n41\n" in request.question else "8")
        return DRAFT if request.body["model"] == "draft" else EXPERT

    with Running(script, loss={"name": "judge", "judge": "large"}) as (gateway, _):
        post(gateway.url, ASK)
        gateway.idle()
        status = gateway.status()
        assert (status["owed"], status["forfeits"]) == (0, {})
        assert status["savings"]["judge_tokens"] == 2


def test_a_late_outcome_is_forfeited_and_then_accepted() -> None:
    """It is forfeited at its deadline, the answer does not wait for it, and a late outcome is still accepted."""
    with Running(pair(DRAFT, Reply("42", delay=2.5)), deadline=0.2) as (gateway, _):
        answer = open_chat(gateway.url, ASK)
        wait_for(lambda: gateway.status()["forfeits"] == {"deadline": 1})
        with closing(answer):
            received = b""
            while b"42" not in received:  # head and body may come one after the other
                received += (part := answer.recv(65536))
                assert part, received
        gateway.idle()
        (game,) = gateway.service.store.games()
        outcomes = [kept.entry for kept in gateway.service.store.entries(game)][-2:]
        assert outcomes == [Resolved(1, None, "deadline"), Resolved(1, 1.0)]


@pytest.mark.parametrize("explore", ["serve", "shadow"])
@STREAMS
def test_the_audit_goes_on_when_the_caller_leaves(explore: str, stream: bool) -> None:
    """The round gets its outcome although its caller has left."""
    with Running(pair(DRAFT, Reply("42", delay=0.4, pause=0.05)), explore=explore) as (gateway, models):
        caller = open_chat(gateway.url, ASK | {"stream": stream})
        wait_for(lambda: len(models.requests) == 2)
        caller.close()
        gateway.idle()
        status = gateway.status()
        assert (status["steps"], status["owed"], status["forfeits"]) == (1, 0, {})
        assert models.hang_ups == 0


@STREAMS
@pytest.mark.parametrize("score", ["perplexity", {"name": "perplexity", "first_tokens": 8}])
def test_the_draft_is_cancelled_when_the_caller_leaves(stream: bool, score: Any) -> None:
    """The draft is cancelled, and there is no round."""
    with Running(pair(SILENCE, EXPERT), model=PATIENT, score=score) as (gateway, models):
        caller = open_chat(gateway.url, ASK | {"stream": stream})
        wait_for(lambda: len(models.requests) == 1)
        caller.close()
        wait_for(lambda: models.hang_ups == 1)
        gateway.idle()
        assert gateway.status()["steps"] == 0


def test_requests_beyond_the_limit_get_429() -> None:
    """Requests beyond the limit are refused with a retry-after, before anything is decided for them."""
    go_on = threading.Event()

    def draft(_: Request) -> Reply:
        assert go_on.wait(60.0)
        return DRAFT

    with Running(pair(draft, EXPERT), gateway={"max_in_flight": 2}) as (gateway, models):
        callers = [open_chat(gateway.url, ASK) for _ in range(2)]
        wait_for(lambda: len(models.requests) == 2)
        got = post(gateway.url, ASK)
        go_on.set()
        assert (got.status, got.headers["retry-after"]) == (429, "1")
        assert got.json["error"]["type"] == "rate_limit_error"
        for caller in callers:
            assert b"200 OK" in caller.recv(65536)
            caller.close()
        gateway.idle()
        assert gateway.status()["steps"] == 2


def test_nothing_is_answered_after_the_store_failed() -> None:
    """Requests get an error, and the readiness endpoint says so."""
    with Running(pair(DRAFT, EXPERT)) as (gateway, _):
        gateway.service.store.close()
        got = post(gateway.url, ASK)
        assert got.status == 503
        assert got.json["error"]["code"] == "store_failed"
        assert post(gateway.url, b"", "/readyz", method="GET").status == 503
        assert post(gateway.url, b"", "/healthz", method="GET").status == 200
