"""Budgets: requests and tokens per day of a name, across keys, streams, errors, reloads and restarts."""

import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from bpac.gateway.auth.keys import Identity, KeyLimits
from bpac.gateway.budgets.budgets import DAY, Budgets
from bpac.gateway.http.bad_request import BadRequest
from bpac.testing import SILENCE, Reply, ScriptedServer
from tests.gateway.configured import bearer, settings, wait_for
from tests.gateway.operations.asking import ask, post
from tests.gateway.raw import open_chat
from tests.gateway.running import ASK, MESSAGES, Running, RunningGateway, pair

TEAM: dict[str, Any] = {"name": "team", "key": "one", "roles": ["call"]}
OTHER: dict[str, Any] = {"name": "team", "key": "two", "roles": ["call"]}
FREE: dict[str, Any] = {"name": "free", "key": "free", "roles": ["call", "operator"]}


def keys(*teams: dict[str, Any], **limits: Any) -> dict[str, Any]:
    """Settings of a gateway whose team has these limits, and a key without limits."""
    return {"keys": [*({**team, **limits} for team in teams or (TEAM,)), FREE]}


def used(gateway: RunningGateway) -> Any:
    """What the team has used."""
    return gateway.service.budgets.to_json()["team"]


def test_requests_beyond_the_budget_get_429() -> None:
    """The error has OpenAI's body and Retry-After; nothing is asked, and other keys are not affected."""
    with Running(Reply("42"), gateway=keys(requests_per_day=2)) as (gateway, models):
        assert [ask(gateway.url, "one")[0] for _ in range(2)] == [200, 200]
        gateway.idle()
        asked = len(models.requests)
        status, headers, body = ask(gateway.url, "one")
        assert (status, body["error"]["code"], body["error"]["type"]) == (429, "insufficient_quota", "rate_limit_error")
        assert "2 requests per day" in body["error"]["message"]
        assert 0 < int(headers["retry-after"]) <= DAY
        assert len(models.requests) == asked
        assert gateway.service.rejections.counts == {"insufficient_quota": 1}
        assert ask(gateway.url, "free")[0] == 200
        (game,) = gateway.service.live_games()
        gateway.idle()
        assert (game.router.step, game.router.summary().withdrawn) == (3, 0)


def test_keys_of_one_name_share_what_is_used() -> None:
    """A second key of the same name is no second budget."""
    with Running(Reply("42"), gateway=keys(TEAM, OTHER, requests_per_day=1)) as (gateway, _):
        assert (ask(gateway.url, "one")[0], ask(gateway.url, "two")[0]) == (200, 429)


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_are_those_that_the_answer_reports(stream: bool) -> None:
    """The scripted server reports 7 tokens of prompt and 2 of the answer; then the budget of 9 is used up."""
    with Running(Reply("forty two"), gateway=keys(tokens_per_day=9)) as (gateway, _):
        status, _, body = ask(gateway.url, "one", stream=stream)
        assert status == 200
        assert used(gateway)["tokens"] == 9
        assert ("usage" in body) is not stream  # a caller who did not ask for it does not see it
        status, _, body = ask(gateway.url, "one", stream=stream)
        assert (status, "9 tokens per day" in body["error"]["message"]) == (429, True)


def test_a_stream_with_usage_keeps_it() -> None:
    """A caller who asks for the counts gets them, and the official client reads the stream to its end."""
    with Running(Reply("forty two"), gateway=keys(tokens_per_day=100)) as (gateway, _):
        options: Any = {"include_usage": True}
        client = gateway.client("one").chat.completions
        chunks = list(client.create(model="homework", messages=MESSAGES, stream=True, stream_options=options))
        assert chunks[-1].usage is not None
        assert used(gateway)["tokens"] == chunks[-1].usage.total_tokens == 9
        hidden = list(client.create(model="homework", messages=MESSAGES, stream=True))
        assert all(chunk.choices for chunk in hidden)
        assert used(gateway)["tokens"] == 18


def test_a_model_cannot_write_its_own_count() -> None:
    """What looks like a count in the text of an answer is not one."""
    with Running(Reply('"total_tokens": 100000'), gateway=keys(tokens_per_day=50)) as (gateway, _):
        for stream in (False, True):
            assert ask(gateway.url, "one", stream=stream)[0] == 200
        assert used(gateway)["tokens"] == 18


def test_what_is_not_answered_is_not_charged() -> None:
    """A request that the gateway rejects costs nothing; one that a model fails on counts, without tokens."""
    with Running(pair(Reply("41"), Reply(status=500)), gateway=keys(tokens_per_day=500)) as (gateway, _):
        assert post(f"{gateway.url}/v1/chat/completions", {}, bearer("one"))[0] == 400
        assert ask(gateway.url, "one", model="nothing")[0] == 404
        assert ask(gateway.url, "one", headers={"x-bpac-force": "draft"})[0] == 403
        assert used(gateway) | {"day": 0} == {"day": 0, "requests": 0, "tokens": 0}
        assert ask(gateway.url, "one")[0] == 502
        assert used(gateway) | {"day": 0} == {"day": 0, "requests": 1, "tokens": 0}


def test_a_caller_who_disconnects_has_used_the_prompt() -> None:
    """Otherwise callers could have models generate for nothing."""
    with Running(pair(Reply("42"), SILENCE), gateway=keys(tokens_per_day=500), model={"timeout": 1.0}) as (gateway, _):
        asked = {**ASK, "messages": [{"role": "user", "content": "x" * 400}]}
        connection = open_chat(gateway.url, asked, {"Authorization": "Bearer one"})
        wait_for(lambda: gateway.service.busy > 0)
        connection.close()
        assert used(gateway)["requests"] == 1
        assert used(gateway)["tokens"] > 100


def test_passed_through_requests_are_charged() -> None:
    """Embeddings use the same budget."""
    reply = Reply(raw=json.dumps({"data": [], "usage": {"total_tokens": 30}}).encode())
    with ScriptedServer(reply) as models:
        config = settings(models.base_url, gateway=keys(tokens_per_day=30))
        config["routes"] = {"embed": {"expert": "large"}}
        with RunningGateway(config) as gateway:
            url = f"{gateway.url}/v1/embeddings"
            statuses = [post(url, {"model": "embed", "input": "a"}, bearer("one"))[0] for _ in range(2)]
            assert statuses == [200, 429]


def test_budgets_survive_a_reload_and_a_restart(tmp_path: Path) -> None:
    """Neither grants a new budget; a raised limit takes effect at once."""
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(Reply("42")) as models:

        def config(limit: int) -> dict[str, Any]:
            return settings(models.base_url, gateway={**store, **keys(requests_per_day=limit)})

        with RunningGateway(config(1)) as gateway:
            assert ask(gateway.url, "one")[0] == 200
            assert gateway.reload(config(1))
            assert ask(gateway.url, "one")[0] == 429
        assert oct((tmp_path / "bpac.db.budgets").stat().st_mode)[-3:] == "600"
        with RunningGateway(config(1)) as gateway:
            assert ask(gateway.url, "one")[0] == 429
            assert gateway.reload(config(2))
            assert ask(gateway.url, "one")[0] == 200
            # While it runs it is saved, too: a crash forgets a second at most.
            wait_for(lambda: json.loads((tmp_path / "bpac.db.budgets").read_text())["team"]["requests"] == 2)


def test_a_damaged_file_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The gateway starts, and the log says that budgets begin anew."""
    (tmp_path / "bpac.db.budgets").write_text("[1")
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with (
        caplog.at_level(logging.ERROR),
        Running(Reply("42"), gateway={**store, **keys(requests_per_day=1)}) as (gateway, _),
    ):
        assert ask(gateway.url, "one")[0] == 200
    assert "the file of the budgets cannot be read" in caplog.text


def test_a_new_day_is_a_new_budget() -> None:
    """At midnight in UTC; what was admitted before is settled on its own day."""
    budgets, who = Budgets(), Identity("team", "team", frozenset(), KeyLimits(1, None))
    noon = (time.time() // DAY) * DAY + DAY / 2
    first = budgets.admit(who, 0, noon)
    with pytest.raises(BadRequest) as refused:
        budgets.admit(who, 0, noon)
    assert refused.value.retry_after == DAY // 2
    assert budgets.admit(who, 0, noon + DAY / 2) is not None
    assert first is not None
    first.settle(5)
    assert budgets.to_json()["team"]["tokens"] == 0
