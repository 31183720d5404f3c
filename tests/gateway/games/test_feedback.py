"""Losses that are reported from outside, and traffic in segments."""

from typing import Any

import pytest

from bpac.testing import Reply
from tests.gateway.configured import OPERATOR, bearer, get_json, wait_for
from tests.gateway.raw import Got, post
from tests.gateway.running import ASK, Running, RunningGateway, pair

EXTERNAL = {"loss": "external"}


def feedback(gateway: RunningGateway, decision: Any, loss: Any) -> Got:
    """Report a loss."""
    return post(gateway.url, {"decision": decision, "loss": loss}, "/v1/feedback")


def test_a_reported_loss_closes_the_round() -> None:
    """It is accepted once; until then the round is open and charged."""
    with Running(pair(Reply("41"), Reply("42")), **EXTERNAL) as (gateway, _):
        decision = post(gateway.url, ASK).headers["x-bpac-decision"]
        gateway.idle()
        assert gateway.status()["owed"] == 1
        assert get_json(f"{gateway.url}/v1/decisions/{decision}") == {"draft": "41", "expert": "42"}
        assert post(gateway.url, b"", "/v1/decisions/dec-1-1-0", method="GET").status == 404
        assert feedback(gateway, decision, 0.5).json == {"decision": decision, "loss": 0.5}
        assert gateway.status()["owed"] == 0
        again = feedback(gateway, decision, 0.5)
        assert (again.status, again.json["error"]["code"]) == (409, "already_resolved")
        assert gateway.status()["savings"]["expert_tokens"] == 1


def test_wrong_feedback_is_refused() -> None:
    """404 for a decision that was never made, 422 for a value that is no loss, 409 for a draft that was kept."""
    with Running(pair(Reply("41"), Reply("42")), **EXTERNAL) as (gateway, _):
        decision = post(gateway.url, ASK).headers["x-bpac-decision"]
        forgeries = ["", "dec-1-1-0000000000000000", decision[:-1], f"{decision}0", decision.replace("-1-1-", "-1-2-")]
        for forged in (*forgeries, "dec-1-" + "9" * 400 + "-x", "dec-²-1-x", "💥"):
            got = feedback(gateway, forged, 0.5)
            assert (got.status, got.json["error"]["code"]) == (404, "unknown_decision")
        losses: list[Any] = [-0.1, 1.1, "0.5", None, True, [], 10**400]
        for loss in losses:
            assert feedback(gateway, decision, loss).status in (400, 422)
        assert post(gateway.url, b'{"decision": 7, "loss": 0.5}', "/v1/feedback").status == 422
        assert post(gateway.url, b'{"decision": NaN}', "/v1/feedback").status == 400
        assert post(gateway.url, b" " * 100_000, "/v1/feedback").status == 413
        assert feedback(gateway, decision, 1).status == 200
    with Running(pair(Reply("41"), Reply("42")), policy="never", **EXTERNAL) as (gateway, _):
        got = feedback(gateway, post(gateway.url, ASK).headers["x-bpac-decision"], 0.5)
        assert (got.status, got.json["error"]["code"]) == (409, "not_audited")


def test_feedback_after_the_deadline_replaces_the_charge() -> None:
    """The forfeit stays counted, and the true loss replaces the charge of 1."""
    with Running(pair(Reply("41"), Reply("42")), deadline=0.1, **EXTERNAL) as (gateway, _):
        decision = post(gateway.url, ASK).headers["x-bpac-decision"]
        wait_for(lambda: gateway.status()["forfeits"] == {"deadline": 1})
        assert feedback(gateway, decision, 0.0).status == 200
        assert feedback(gateway, decision, 0.0).status == 409


@pytest.mark.parametrize(
    ("segment_by", "first", "second"),
    [
        ("header:x-tenant", {"headers": {"X-Tenant": "a"}}, {"headers": {"x-tenant": "b"}}),
        ("metadata:team", {"body": {"metadata": {"team": "a"}}}, {"body": {"metadata": {"team": "b"}}}),
        ("user", {"body": {"user": "a"}}, {"body": {"user": "b"}}),
        ("model", {"body": {"model": "homework:a"}}, {"body": {"model": "homework:b"}}),
        (
            "api_key",
            {"headers": {"Authorization": "Bearer one"}},
            {"headers": {"Authorization": "Bearer two"}},
        ),
    ],
)
def test_each_segment_has_its_own_game(segment_by: str, first: Any, second: Any) -> None:
    """Up to a limit; later segments share one game. The status does not show API keys."""
    keys = {"api_keys": ["one", "two", "three"], "keys": [OPERATOR]} if segment_by == "api_key" else {}
    key, ops = (bearer("one"), bearer(OPERATOR["key"])) if keys else ({}, {})
    options = {"gateway": keys, "segment_by": segment_by, "most_segments": 3}
    with Running(pair(Reply("41"), Reply("42")), **options) as (gateway, _):
        for asked in (first, first, second):
            body, headers = ASK | asked.get("body", {}), key | asked.get("headers", {})
            assert post(gateway.url, body, headers=headers).status == 200
        games = _games(gateway, ops)
        assert sorted(game["steps"] for game in games) == [1, 2]
        assert not {"one", "two"} & {game["segment"] for game in games}
        if segment_by == "header:x-tenant":
            assert [game["segment"] for game in games] == ["a", "b"]
            for tenant in ("c", "d", "", "x" * 5000):
                post(gateway.url, ASK, headers={"X-Tenant": tenant})
            games = _games(gateway, ops)
            assert {game["segment"]: game["steps"] for game in games} == {"a": 2, "b": 1, "*": 4}


def _games(gateway: RunningGateway, headers: Any) -> list[dict[str, Any]]:
    if not headers:
        games = get_json(f"{gateway.url}/v1/status")["routes"]["homework"]
    else:
        games = post(gateway.url, b"", "/v1/status", headers=headers, method="GET").json["routes"]["homework"]
    assert isinstance(games, list)
    return games
