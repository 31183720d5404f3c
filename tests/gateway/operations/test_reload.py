"""Reloading the configuration: whole or not at all, and no request or round is lost."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import ALL_ROLES, get_json, settings, wait_for
from tests.gateway.operations.asking import ask, post
from tests.gateway.running import RunningGateway, pair


class Held:
    """A model server whose experts answer only after ``release``; drafts are answered at once."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def __call__(self, request: Request) -> Reply:
        """The reply to a request."""
        if request.body["model"] == "expert":
            assert self.open.wait(60.0)
        return Reply("42")


@pytest.fixture
def held() -> Held:
    """Experts that wait."""
    return Held()


def begun(models: ScriptedServer, count: int) -> None:
    """Wait until so many requests have reached the experts."""
    wait_for(lambda: sum(request.body["model"] == "expert" for request in models.requests) >= count)


def in_background(url: str, **options: Any) -> "Future[tuple[int, dict[str, str], Any]]":
    """A chat request in a thread of its own."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(ask, url, **options)
    pool.shutdown(wait=False)
    return future


def test_games_whose_terms_did_not_change_continue() -> None:
    """A reload with equal terms keeps game, rounds and threshold; settings outside the terms take effect."""
    with ScriptedServer(Reply("42")) as models, RunningGateway(settings(models.base_url)) as gateway:
        for _ in range(3):
            ask(gateway.url)
        gateway.idle()
        before = gateway.status()
        assert gateway.reload(settings(models.base_url, deadline=1800, gateway={"max_in_flight": 7}))
        assert gateway.status() == before
        assert gateway.service.config.max_in_flight == 7
        assert [game.route.deadline for game in gateway.service.live_games()] == [1800]
        ask(gateway.url)
        gateway.idle()
        assert (gateway.status()["game"], gateway.status()["steps"]) == (before["game"], 4)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 2.0},
        {"loss": "embeding"},
        {"gateway": {"store": "sqlite:///elsewhere.db"}},
        {"gateway": {"listen": "127.0.0.1:1"}},
        {"model": {"headers": {"x": "a\nb"}}},
    ],
)
def test_a_configuration_that_cannot_be_used_changes_nothing(change: Any) -> None:
    """The old configuration stays in use, and status, metrics and log say why."""
    with ScriptedServer(Reply("42")) as models, RunningGateway(settings(models.base_url)) as gateway:
        ask(gateway.url)
        gateway.idle()
        config, before = gateway.service.config, gateway.status()
        assert not gateway.reload(settings(models.base_url, **change))
        assert gateway.service.config is config
        assert gateway.status() == before
        said = get_json(f"{gateway.url}/v1/status")["configuration"]
        assert said["reloads"] == 0
        assert said["failed_reload"]["error"]
        assert 'bpac_reloads_total{result="failed"} 1.0' in gateway.service.measurements()
        assert ask(gateway.url)[0] == 200
        # The mistake is corrected.
        assert gateway.reload(settings(models.base_url))
        assert get_json(f"{gateway.url}/v1/status")["configuration"] == {"reloads": 1, "failed_reload": None}


def test_a_store_that_fails_during_a_reload_leaves_the_old_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a game cannot be opened, games that had been taken over go back to their old settings."""
    config = settings("http://127.0.0.1:9/v1")
    other = settings("http://127.0.0.1:9/v1", deadline=1800)
    other["routes"]["second"] = {**other["routes"]["homework"], "epsilon": 0.1}
    with RunningGateway(config) as gateway:

        def fail(*_: object) -> None:
            raise OSError("no space left on device")

        monkeypatch.setattr(gateway.service.store, "open_game", fail)
        assert not gateway.reload(other)
        assert gateway.service.routes() == ["homework"]
        assert [game.route.deadline for game in gateway.service.live_games()] == [3600]
        monkeypatch.undo()
        assert gateway.reload(other)
        assert gateway.service.routes() == ["homework", "second"]


def test_requests_in_progress_finish_in_the_game_they_began_in(held: Held) -> None:
    """With other terms a new game begins; the old one gets the outcome of its last round and then ends."""
    with ScriptedServer(held) as models, RunningGateway(settings(models.base_url)) as gateway:
        service = gateway.service
        (old,) = service.live_games()
        first = in_background(gateway.url)
        begun(models, 1)
        assert gateway.reload(settings(models.base_url, epsilon=0.3))
        (new,) = service.live_games()
        assert new.number != old.number
        assert service.open_games() == [new, old]
        held.open.set()
        status, headers, _ = first.result(60.0)
        assert status == 200
        assert headers["x-bpac-decision"].startswith(f"dec-{old.number}-")
        gateway.idle()
        assert (old.router.step, len(old.router.owed), new.router.step) == (1, 0, 0)
        wait_for(lambda: service.open_games() == [new])
        assert ask(gateway.url)[1]["x-bpac-decision"].startswith(f"dec-{new.number}-")


def test_terms_that_change_back_during_a_request_resume_the_same_game(held: Held) -> None:
    """Two objects on one journal would count rounds twice, so a game that is still open goes on."""
    with ScriptedServer(held) as models, RunningGateway(settings(models.base_url)) as gateway:
        (old,) = gateway.service.live_games()
        first = in_background(gateway.url)
        begun(models, 1)
        assert gateway.reload(settings(models.base_url, epsilon=0.3))
        assert gateway.reload(settings(models.base_url))
        assert gateway.service.live_games() == [old]
        held.open.set()
        assert first.result(60.0)[0] == 200
        gateway.idle()
        assert old.router.step == 1
        wait_for(lambda: gateway.service.open_games() == [old])


def test_a_route_can_be_removed_and_added_under_load(held: Held) -> None:
    """New requests for a removed route get 404, and the one in progress gets its answer."""
    with ScriptedServer(held) as models, RunningGateway(settings(models.base_url)) as gateway:
        first = in_background(gateway.url)
        begun(models, 1)
        other = settings(models.base_url)
        other["routes"] = {"renamed": other["routes"]["homework"]}
        assert gateway.reload(other)
        assert ask(gateway.url)[0] == 404
        held.open.set()
        assert first.result(60.0)[0] == 200
        assert ask(gateway.url, model="renamed")[0] == 200


def test_a_request_in_progress_keeps_its_model_server(held: Held) -> None:
    """After a move to another server, the request in progress is answered by the old one and new ones by the new."""
    with (
        ScriptedServer(held) as models,
        ScriptedServer(Reply("new")) as others,
        RunningGateway(settings(models.base_url)) as gateway,
    ):
        first = in_background(gateway.url)
        begun(models, 1)
        assert gateway.reload(settings(others.base_url))
        assert ask(gateway.url)[2]["choices"][0]["message"]["content"] == "new"
        held.open.set()
        assert first.result(60.0)[2]["choices"][0]["message"]["content"] == "42"
        gateway.idle()
        assert gateway.status()["steps"] == 2


def test_keys_take_effect_at_once() -> None:
    """A removed key is refused and a new one accepted, without a restart."""

    def keyed(url: str, key: str) -> dict[str, Any]:
        return settings(url, gateway={"keys": [{"name": "ops", "key": key, "roles": ALL_ROLES}]})

    with ScriptedServer(Reply("42")) as models, RunningGateway(keyed(models.base_url, "one")) as gateway:
        assert (ask(gateway.url, "one")[0], ask(gateway.url, "two")[0]) == (200, 401)
        assert gateway.reload(keyed(models.base_url, "two"))
        assert (ask(gateway.url, "one")[0], ask(gateway.url, "two")[0]) == (401, 200)


def test_feedback_for_a_game_that_ends_is_still_counted() -> None:
    """A loss that is reported after the terms changed settles the round in the game that made the decision."""
    with (
        ScriptedServer(pair(Reply("41"), Reply("42"))) as models,
        RunningGateway(settings(models.base_url, loss="external")) as gateway,
    ):
        (old,) = gateway.service.live_games()
        decision = ask(gateway.url)[1]["x-bpac-decision"]
        gateway.idle()
        assert gateway.reload(settings(models.base_url, loss="external", epsilon=0.3))
        assert post(f"{gateway.url}/v1/feedback", {"decision": decision, "loss": 0.5})[0] == 200
        assert not old.router.owed
        wait_for(lambda: old not in gateway.service.open_games())


def test_segments_continue_and_new_ones_use_the_new_settings() -> None:
    """Each segment's game continues after a reload; a segment that appears later has the new settings."""
    with ScriptedServer(Reply("42")) as models:
        by = {"segment_by": "user"}
        with RunningGateway(settings(models.base_url, **by)) as gateway:
            ask(gateway.url, user="a")
            gateway.idle()
            (old,) = gateway.service.live_games()
            assert gateway.reload(settings(models.base_url, deadline=1800, **by))
            ask(gateway.url, user="a")
            ask(gateway.url, user="b")
            gateway.idle()
            games = {game.segment: game for game in gateway.service.live_games()}
            assert games["a"] is old
            assert old.router.step == 2
            assert games["b"].route.deadline == 1800
