"""Requests that only the expert refuses: fair rounds, which neither open nor close a threshold (MATH section 13)."""

from typing import Any

import pytest

from bpac.gateway.chat.experts import expert as audits
from bpac.routing.coins import SeededCoins
from bpac.routing.journal.entries import Resolved
from bpac.testing import Reply, Request
from tests.gateway.chat.test_failures import STREAMS
from tests.gateway.games.test_tickets import FIRST_TOKEN, router_of, written
from tests.gateway.measured import metric
from tests.gateway.raw import Got, post
from tests.gateway.running import ASK, Running, RunningGateway

REFUSED = Reply("temperature is not supported", status=400)
SCORES = pytest.mark.parametrize("score", ["perplexity", FIRST_TOKEN])


def strict(request: Request) -> Reply:
    """Two models that agree; the expert refuses requests with a temperature."""
    if "temperature" in request.body and request.body["model"] == "expert":
        return REFUSED
    return Reply("42", probability=0.8)


def opened(gateway: RunningGateway, seed: int) -> None:
    """Send requests until every draft is accepted and few are audited, with the same coins in every run."""
    router_of(gateway)._proposals._coins = SeededCoins(seed)
    while gateway.status()["steps"] < 60:
        post(gateway.url, ASK)
    gateway.idle()
    assert gateway.status()["threshold"] == 1.0


def attack(gateway: RunningGateway, requests: int, **more: Any) -> list[Got]:
    """One caller whose requests the expert would all refuse."""
    replies = [post(gateway.url, ASK | {"temperature": 0} | more) for _ in range(requests)]
    gateway.idle()
    return replies


@STREAMS
@SCORES
def test_refusals_of_one_caller_do_not_affect_others(stream: bool, score: Any) -> None:
    """No alarm, the same threshold for others, and every accepted draft is served, with a header where audited."""
    with Running(strict, score=score) as (gateway, _):
        opened(gateway, seed=3)
        replies = attack(gateway, 60, stream=stream)
        audited = [got for got in replies if "x-bpac-fallback" in got.headers]
        assert {got.status for got in replies} == {200}
        assert {got.headers["x-bpac-answered-by"] for got in replies} == {"draft"}
        assert {got.headers["x-bpac-fallback"] for got in audited} == {"expert-refused"}
        assert all(b"42" in got.body for got in replies)
        status = gateway.status()
        assert 0 < status["refused"] == len(audited) < 60
        assert (status["forfeits"], status["epoch"], status["threshold"], status["owed"]) == ({}, 1, 1.0, 0)
        assert (status["state"], status["forfeit_share"], status["doubt"]) == ("routing", 0.0, 1.0)
        assert metric(gateway, "bpac_refused_total", route="homework") == len(audited)


def test_refusals_counted_as_failures_would_close_the_route(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: callers get errors at random, and every draft of every caller is audited."""
    monkeypatch.setattr(audits, "is_refusal", lambda error: False)
    with Running(strict) as (gateway, _):
        opened(gateway, seed=3)
        assert {got.status for got in attack(gateway, 60)} == {200, 400}
        status = gateway.status()
        assert (status["state"], status["forfeit_share"] > 0.2) == ("alarmed", True)
        decision = post(gateway.url, ASK)
        assert (decision.headers["x-bpac-answered-by"], decision.headers["x-bpac-propensity"]) == ("expert", "1.0")


@STREAMS
@SCORES
def test_a_draft_that_was_not_accepted_is_not_served(stream: bool, score: Any) -> None:
    """Its caller gets the expert's refusal unchanged; the round pays nothing at any threshold."""
    with Running(strict, score=score) as (gateway, _):
        (got,) = attack(gateway, 1, stream=stream)
        assert (got.status, got.json["error"]["message"]) == (400, "temperature is not supported")
        assert written(gateway)[-1] == Resolved(1, None, refused=True)
        assert router_of(gateway).log_wealth(0.5) == pytest.approx(0.0, abs=1e-9)
        assert gateway.status()["certificate"]["upper"] == 0.0


def test_a_refused_shadow_audit_is_a_fair_round() -> None:
    """With shadow audits the caller has the draft already; the refusal is recorded as a fair round."""
    with Running(strict, explore="shadow") as (gateway, _):
        opened(gateway, seed=3)
        replies = attack(gateway, 30)
        assert {(got.status, got.headers["x-bpac-answered-by"]) for got in replies} == {(200, "draft")}
        assert not any("x-bpac-fallback" in got.headers for got in replies)
        refusals = [entry for entry in written(gateway) if isinstance(entry, Resolved) and entry.refused]
        assert len(refusals) == gateway.status()["refused"] > 0
        assert not any(entry.draft_served for entry in refusals)


@pytest.mark.parametrize("status", [401, 402, 403, 407, 408, 429])
def test_a_key_or_a_rate_that_is_refused_is_a_failure(status: int) -> None:
    """It is about the operator, not about what was asked, so the outcome is unknown and counts as a loss."""

    def script(request: Request) -> Reply:
        return Reply("no", status=status) if request.body["model"] == "expert" else Reply("42")

    with Running(script) as (gateway, _):
        post(gateway.url, ASK)
        gateway.idle()
        assert (gateway.status()["refused"], gateway.status()["forfeits"]) == (0, {"expert failed": 1})
