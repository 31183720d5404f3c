"""Sticky sessions through a running gateway: one decision for a conversation, and attacks on it."""

import asyncio
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import ALL_ROLES, bearer, settings, wait_for
from tests.gateway.raw import Got, open_chat, post
from tests.gateway.running import ASK, Running, RunningGateway, pair

STICKY: dict[str, Any] = {"sticky_by": "header:x-session-id"}


def ask(gateway: RunningGateway, session: str, body: Any = None, **headers: str) -> Got:
    """A request of a session."""
    return post(gateway.url, {**ASK, **(body or {})}, headers={"x-session-id": session, **headers})


def told(got: Got) -> tuple[str, str, str]:
    """What a response says: its decision, who answered, and what it is in its session."""
    return got.headers["x-bpac-decision"], got.headers["x-bpac-answered-by"], got.headers["x-bpac-session"]


def asked(models: ScriptedServer) -> Counter[str]:
    """How often each model was asked."""
    return Counter(request.body["model"] for request in models.requests)


@pytest.mark.parametrize(("policy", "by"), [("never", "draft"), ("portfolio", "expert")])
@pytest.mark.parametrize("stream", [False, True])
def test_later_requests_follow_the_first(policy: str, by: str, stream: bool) -> None:
    """They have its decision, only its model is asked, nothing is decided again, and their tokens are counted apart."""
    with Running(pair(Reply("41"), Reply("42")), policy=policy, **STICKY) as (gateway, models):
        first = ask(gateway, "a", {"stream": stream})
        gateway.idle()
        before, spent = asked(models), gateway.status()["savings"]["usage"]
        later = [ask(gateway, "a", {"stream": stream}) for _ in range(3)]
        decision = first.headers["x-bpac-decision"]
        assert told(first) == (decision, by, "first")
        assert {told(got) for got in later} == {(decision, by, "following")}
        answer = b"41" if by == "draft" else b"42"
        assert all(got.status == 200 and answer in got.body for got in later)
        for name in ("uncertainty", "threshold", "propensity"):
            assert f"x-bpac-{name}" in later[0].headers
        gateway.idle()
        assert asked(models) - before == {by: 3}
        status = gateway.status()
        assert (status["steps"], status["unit"], status["sessions"]["open"]) == (1, "episode", 1)
        followed = status["savings"]["followed"]
        assert (followed["requests"], followed[f"by_{by}"], followed[by]["completion_tokens"]) == (3, 3, 3)
        assert status["savings"]["usage"] == spent
        page = post(gateway.url, b"", "/metrics", method="GET").body.decode()
        assert 'bpac_followed_requests_total{route="homework",segment=""} 3.0' in page
        assert f'bpac_following_total{{answered_by="{by}",route="homework"}} 3.0' in page
        assert 'bpac_open_sessions{route="homework",segment=""} 1.0' in page
        # Another session is another round, and so is a request without one.
        assert told(ask(gateway, "b"))[2] == "first"
        alone = [post(gateway.url, ASK) for _ in range(2)]
        assert {told(got)[2] for got in alone} == {"none"}
        assert len({told(got)[0] for got in alone}) == 2
        gateway.idle()
        assert gateway.status()["steps"] == 4


def test_sessions_of_two_callers_do_not_mix() -> None:
    """Equal names under two API keys are two sessions, and neither name nor key is in the journal."""
    keys = [{"name": name, "key": name, "roles": ALL_ROLES} for name in ("one", "two")]
    with Running(pair(Reply("42"), Reply("42")), gateway={"keys": keys}, **STICKY) as (gateway, _):
        first, second = (ask(gateway, "same-name", **bearer(key)) for key in ("one", "two"))
        assert told(first)[2] == told(second)[2] == "first"
        assert told(first)[0] != told(second)[0]
        assert told(ask(gateway, "same-name", **bearer("two")))[0] == told(second)[0]
        (game,) = gateway.service.live_games()
        notes = [note for _, note in game.store.entries(game.kept)]
        assert sum("session" in note for note in notes) == 2
        assert "same-name" not in str(notes)


def test_two_first_requests_at_once_are_one_decision() -> None:
    """One is decided, the others wait for it and follow."""
    with Running(pair(Reply("42", delay=0.3), Reply("42")), **STICKY) as (gateway, models):
        with ThreadPoolExecutor(8) as pool:
            got = list(pool.map(lambda _: ask(gateway, "a"), range(8)))
        assert Counter(told(one)[2] for one in got) == {"first": 1, "following": 7}
        assert len({told(one)[0] for one in got}) == 1
        assert asked(models)["draft"] == 1
        gateway.idle()
        assert gateway.status()["steps"] == 1


def test_nobody_follows_a_decision_that_could_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later requests wait until the decision is durable, as the first one does, and ask no model before."""
    with Running(pair(Reply("42"), Reply("42")), policy="never", **STICKY) as (gateway, models):
        (game,) = gateway.service.live_games()
        durable, kept = threading.Event(), game.store.durable

        async def slow() -> None:
            while not durable.is_set():
                await asyncio.sleep(0.005)
            await kept()

        monkeypatch.setattr(game.store, "durable", slow)
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(ask, gateway, "a")
            wait_for(lambda: game.router.step == 1)
            later = pool.submit(ask, gateway, "a")
            wait_for(lambda: gateway.service.busy == 2)
            time.sleep(0.1)
            assert not first.done()
            assert not later.done()
            assert asked(models) == {"draft": 1}
            durable.set()
            assert (told(first.result())[2], told(later.result())[2]) == ("first", "following")


def test_without_a_decision_there_is_no_episode() -> None:
    """A first request without a score, or whose caller leaves, leaves the session to the next one, waiting or not."""
    broken, slow = threading.Event(), threading.Event()

    def draft(_: Request) -> Reply:
        return Reply(status=500) if broken.is_set() else Reply("42", delay=5.0 if slow.is_set() else 0.0)

    with Running(pair(draft, Reply("42")), **STICKY) as (gateway, models):
        broken.set()
        assert told(ask(gateway, "a")) == ("unscored", "expert", "none")
        broken.clear()
        assert told(ask(gateway, "a"))[2] == "first"
        assert told(ask(gateway, "a"))[2] == "following"
        slow.set()
        models.requests.clear()
        leaving = open_chat(gateway.url, ASK, {"x-session-id": "b"})
        wait_for(lambda: asked(models)["draft"] == 1)
        slow.clear()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(ask, gateway, "b")
            leaving.close()
            assert told(waiting.result())[2] == "first"
        gateway.idle()
        status = gateway.status()
        assert (status["steps"], status["withdrawn"]) == (2, 2)


def test_a_failing_model_in_the_middle_of_an_episode() -> None:
    """An expert's episode gets the error, never a draft; in a draft's episode the expert answers, and it goes on."""
    down: set[str] = set()

    def script(request: Request) -> Reply:
        name = request.body["model"]
        return Reply(status=503) if name in down else Reply(name)

    with Running(script, on_expert_failure="draft", **STICKY) as (gateway, _):
        decision = told(ask(gateway, "a"))[0]
        gateway.idle()
        down.add("expert")
        got = ask(gateway, "a")
        assert got.status >= 500
        assert (got.headers["x-bpac-decision"], got.headers["x-bpac-session"]) == (decision, "following")
        assert b"draft" not in got.body
        assert gateway.status()["forfeits"] == {}
    down.clear()
    with Running(script, policy="never", **STICKY) as (gateway, _):
        decision = told(ask(gateway, "a"))[0]
        down.add("draft")
        for stream in (False, True):
            got = ask(gateway, "a", {"stream": stream})
            assert told(got) == (decision, "expert", "following")
            assert got.headers["x-bpac-fallback"] == "draft-failed"
        down.clear()
        wait_for(lambda: told(ask(gateway, "a"))[1] == "draft")
        gateway.idle()
        followed = gateway.status()["savings"]["followed"]
        assert followed["by_expert"] >= 2
        assert followed["expert_tokens_spared"] == 0.0


def test_no_coin_is_thrown_again_for_a_session(tmp_path: Path) -> None:
    """A caller who repeats a request gets the same model, after an error and after a restart, too."""
    failing = threading.Event()

    def expert(_: Request) -> Reply:
        return Reply(status=500) if failing.is_set() else Reply("42")

    options = {"gateway": {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}, **STICKY}
    with ScriptedServer(pair(Reply("42"), expert)) as models:
        config = settings(models.base_url, **options)
        with RunningGateway(config) as gateway:
            failing.set()
            got = ask(gateway, "a")
            assert got.status == 502
            decision = got.headers["x-bpac-decision"]
            assert got.headers["x-bpac-session"] == "first"
            failing.clear()
            assert told(ask(gateway, "a")) == (decision, "expert", "following")
        with RunningGateway(config) as gateway:
            assert told(ask(gateway, "a")) == (decision, "expert", "following")
            assert told(ask(gateway, "b"))[2] == "first"
            gateway.idle()
            status = gateway.status()
            assert (status["steps"], status["savings"]["followed"]["requests"]) == (2, 2)


def test_a_stop_ends_those_who_wait_too() -> None:
    """A request that waits for the decision of another one gets an error when the gateway stops, and asks nothing."""
    with Running(pair(Reply("42", delay=8.0), Reply("42")), gateway={"drain": 0.1}, **STICKY) as (gateway, models):
        with ThreadPoolExecutor(3) as pool:
            got = [pool.submit(ask, gateway, "a") for _ in range(3)]
            wait_for(lambda: asked(models)["draft"] == 1 and gateway.service.busy == 3)
            gateway.stop()
            assert [one.result().status for one in got] == [503] * 3
        assert asked(models) == {"draft": 1}


def test_limits_and_reloads_end_an_episode() -> None:
    """After so many requests another round begins, and with other terms another game: its models may be others."""
    with Running(pair(Reply("42"), Reply("42")), sticky_requests=3, **STICKY) as (gateway, models):
        got = [told(ask(gateway, "a")) for _ in range(7)]
        assert [one[2] for one in got] == ["first", "following", "following"] * 2 + ["first"]
        assert len({one[0] for one in got}) == 3
        same = settings(models.base_url, sticky_requests=3, deadline=60.0, **STICKY)
        assert gateway.reload(same)
        assert told(ask(gateway, "a"))[0] == got[-1][0]
        assert gateway.reload(settings(models.base_url, sticky_requests=3, epsilon=0.1, **STICKY))
        assert told(ask(gateway, "a"))[2] == "first"


def test_feedback_is_about_the_episode() -> None:
    """Any response names its decision, and each request of the episode gives the reporter as long as the first."""
    with Running(pair(Reply("41"), Reply("42")), loss="external", deadline=2.0, **STICKY) as (gateway, _):
        ask(gateway, "a")
        (game,) = gateway.service.live_games()
        ((until, _),) = game.outcomes._open._open.values()
        later = ask(gateway, "a")
        ((longer, _),) = game.outcomes._open._open.values()
        assert longer > until
        report = {"decision": told(later)[0], "loss": 0.0}
        assert post(gateway.url, report, "/v1/feedback").status == 200
        assert gateway.status()["owed"] == 0
        ask(gateway, "a")  # a round that has an outcome is not opened again
        assert gateway.status()["owed"] == 0


def test_a_drift_alarm_ends_no_episode() -> None:
    """An episode that was decided before goes on with its model and its decision; new ones go to the expert."""
    bad = threading.Event()
    names = (f"session {number}" for number in range(5000))

    def draft(_: Request) -> Reply:
        return Reply("41" if bad.is_set() else "42")

    with Running(pair(draft, Reply("42")), epsilon=0.4, **STICKY) as (gateway, _):
        kept = next(name for name in names if told(ask(gateway, name))[1] == "draft")
        decision = told(ask(gateway, kept))[0]
        bad.set()
        while gateway.status()["epoch"] == 1:
            for _ in range(20):
                ask(gateway, next(names))
            gateway.idle()
        assert told(ask(gateway, next(names)))[1:] == ("expert", "first")
        assert told(ask(gateway, kept)) == (decision, "draft", "following")


@pytest.mark.parametrize(
    ("route", "message"),
    [
        ({"sticky_by": "api_key"}, "is no conversation"),
        ({"sticky_by": "model"}, "is no conversation"),
        ({"sticky_by": "header:"}, "header:NAME"),
        ({"sticky_by": "header:a b"}, "header:NAME"),
        ({"sticky_by": "metadata:"}, "metadata:FIELD"),
        ({"sticky_by": "user:x"}, "or user"),
        ({"sticky_by": "header:x", "sticky_idle": 0}, "sticky_idle"),
    ],
)
def test_bad_settings_are_refused(route: dict[str, Any], message: str) -> None:
    """The error names the key and says why."""
    with pytest.raises(SettingsError, match=message):
        Config.read(settings("http://127.0.0.1:1/v1", **route))


def test_callers_that_decide_for_themselves_have_no_sessions() -> None:
    """Such a route sees no requests that could follow: the key is refused."""
    config = settings("http://127.0.0.1:1/v1")
    config["routes"] = {"homework": {"decide_only": True, "epsilon": 0.2, **STICKY}}
    with pytest.raises(SettingsError, match="sticky_by"):
        Config.read(config)


@pytest.mark.parametrize("stream", [False, True])
def test_a_session_goes_through_every_door(stream: bool) -> None:
    """Whatever API its requests come by, they follow one decision."""
    bodies = {
        "/v1/chat/completions": ASK,
        "/v1/messages": {**ASK, "max_tokens": 50},
        "/v1/responses": {"model": "homework", "input": "6 * 7?"},
    }
    with Running(pair(Reply("41"), Reply("42")), policy="never", **STICKY) as (gateway, _):
        got = [
            post(gateway.url, {**body, "stream": stream}, path, {"x-session-id": "a"}) for path, body in bodies.items()
        ]
        assert [one.status for one in got] == [200] * 3
        assert len({told(one)[0] for one in got}) == 1
        assert [told(one)[1:] for one in got] == [("draft", "first"), *[("draft", "following")] * 2]
        assert all(b"41" in one.body for one in got)
