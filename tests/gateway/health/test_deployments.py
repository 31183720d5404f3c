"""A model with several deployments: tried in order or by least load, and the response says which one answered."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.stores import MemoryStore
from bpac.testing import Reply, Request, Script, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.raw import post
from tests.gateway.running import ASK, RunningGateway

GOOD = Reply("42")
BROKEN = Reply(cut=0)
FAILING = Reply("oops", status=500)


def config(*urls: str, **model: Any) -> dict[str, Any]:
    """A configuration whose two models are deployed at each of these addresses, with the names a, b and c."""
    data = settings("http://127.0.0.1:9/v1", gateway={"probe_timeout": 1.0}, model={"breaker": 2, **model})
    for table in data["models"].values():
        del table["base_url"]
        table["deployments"] = [{"name": name, "base_url": url} for name, url in zip("abc", urls, strict=False)]
    return data


@contextmanager
def deployed(*scripts: Script | Reply, **model: Any) -> Iterator[tuple[RunningGateway, list[ScriptedServer]]]:
    """A gateway whose models are deployed on several servers."""
    with ExitStack() as opened:
        servers = [opened.enter_context(ScriptedServer(script)) for script in scripts]
        gateway = opened.enter_context(RunningGateway(config(*(server.base_url for server in servers), **model)))
        yield gateway, servers


def health(gateway: RunningGateway, name: str) -> dict[str, Any]:
    """The health of a model, as status shows it."""
    found = get_json(f"{gateway.url}/v1/status")["models"][name]["health"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("score", ["perplexity", {"name": "perplexity", "first_tokens": 1}])
def test_the_first_that_is_listed_answers(stream: bool, score: Any) -> None:
    """In order: the second is not asked while the first answers; header and metric name it."""
    with ExitStack() as opened:
        servers = [opened.enter_context(ScriptedServer(GOOD)) for _ in range(2)]
        data = config(*(server.base_url for server in servers))
        data["routes"]["homework"]["score"] = score
        gateway = opened.enter_context(RunningGateway(data))
        reply = post(gateway.url, {**ASK, "stream": stream})
        gateway.idle()
        assert (reply.status, reply.headers["x-bpac-deployment"]) == (200, "a")
        assert reply.headers["x-bpac-decision"] != "unscored"
        assert (len(servers[0].requests), len(servers[1].requests)) == (2, 0)
        page = post(gateway.url, b"", "/metrics", method="GET").body.decode()
        assert 'bpac_deployment_answers_total{deployment="a",model="small"} 1.0' in page
        assert health(gateway, "small")["deployments"] == {"small/a": "closed", "small/b": "closed"}
        listed = get_json(f"{gateway.url}/v1/status")["models"]["small"]["deployments"]
        assert [(one["name"], one["up"], one["answers"]) for one in listed] == [("a", True, 1), ("b", True, 0)]


@pytest.mark.parametrize("failure", [FAILING, BROKEN, Reply("slow down", status=429), Reply("no such", status=404)])
@pytest.mark.parametrize("stream", [False, True])
def test_the_next_one_is_tried_at_once(failure: Reply, stream: bool) -> None:
    """A server that fails, is busy or does not know the model: the round is one like any other."""
    with deployed(failure, GOOD) as (gateway, _):
        reply = post(gateway.url, {**ASK, "stream": stream})
        gateway.idle()
        assert (reply.status, reply.headers["x-bpac-deployment"]) == (200, "b")
        status = gateway.status()
        assert (status["steps"], status["unscored"]["requests"], status["forfeits"]) == (1, 0, {})
        assert health(gateway, "small")["ok"]


def test_a_refusal_of_what_was_asked_is_passed_on() -> None:
    """All deployments serve one model, which would refuse it as well; it is counted as one with one server is."""
    with deployed(Reply("temperature is too high", status=400), GOOD) as (gateway, servers):
        reply = post(gateway.url, ASK)
        assert reply.status == 400
        assert b"temperature is too high" in reply.body
        assert servers[1].requests == []
        kinds = health(gateway, "large")["kinds"]
        assert kinds == [{"kind": "refused", "status": 400, "count": 1}]


def test_a_deployment_that_is_down_is_skipped_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a breaker of its own; the model is up while one of them is."""
    monkeypatch.setattr("bpac.gateway.health.monitor.FIRST_PAUSE", 0.05)
    with deployed(BROKEN, GOOD) as (gateway, servers):
        for _ in range(2):
            assert post(gateway.url, ASK).headers["x-bpac-deployment"] == "b"
        wait_for(lambda: set(health(gateway, "small")["deployments"].values()) == {"open", "closed"})
        assert health(gateway, "small")["breaker"] == "closed"
        asked = sum(one.body.get("max_tokens") is None for one in servers[0].requests if one.body["model"] == "draft")
        assert post(gateway.url, ASK).headers["x-bpac-deployment"] == "b"
        assert asked == sum(
            one.body.get("max_tokens") is None for one in servers[0].requests if one.body["model"] == "draft"
        )
        servers[0].script = lambda _: GOOD
        wait_for(lambda: set(health(gateway, "small")["deployments"].values()) == {"closed"})
        wait_for(lambda: set(health(gateway, "large")["deployments"].values()) == {"closed"})
        assert post(gateway.url, ASK).headers["x-bpac-deployment"] == "a"


def test_all_deployments_fail() -> None:
    """They are tried again as often as ``retries`` says; then the rules are those of a model with one server."""
    with deployed(FAILING, BROKEN, retries=1, breaker=0) as (gateway, servers):
        reply = post(gateway.url, ASK)
        assert reply.status == 502
        assert gateway.status()["unscored"]["reasons"] == {"draft-failed": 1}
        # Two rounds of both models.
        assert [len(server.requests) for server in servers] == [4, 4]
        assert not health(gateway, "small")["ok"]


def test_all_deployments_are_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft is skipped, and the gateway is not ready if the experts are down, too."""
    monkeypatch.setattr("bpac.gateway.health.monitor.FIRST_PAUSE", 0.05)

    def draft_down(request: Request) -> Reply:
        return BROKEN if request.body["model"] == "draft" else GOOD

    with deployed(draft_down, draft_down) as (gateway, servers):
        for _ in range(2):
            assert post(gateway.url, ASK).headers["x-bpac-unscored"] == "draft-failed"
        wait_for(lambda: health(gateway, "small")["breaker"] == "open")
        reply = post(gateway.url, ASK)
        assert (reply.headers["x-bpac-unscored"], reply.headers["x-bpac-deployment"]) == ("draft-down", "a")
        for server in servers:
            server.script = lambda _: GOOD
        wait_for(lambda: health(gateway, "small")["breaker"] == "closed")


def test_the_least_loaded_is_tried_first() -> None:
    """While one is busy with a request, the next request goes to the other, streams included."""
    asked, go_on = threading.Semaphore(0), threading.Event()

    def slow(request: Request) -> Reply:
        asked.release()
        assert go_on.wait(60.0)
        return GOOD

    with deployed(slow, slow, balance="least_load") as (gateway, servers), ThreadPoolExecutor(4) as callers:
        replies = [callers.submit(post, gateway.url, {**ASK, "stream": bool(number % 2)}) for number in range(4)]
        for _ in replies:
            assert asked.acquire(timeout=60.0)
        assert [len(server.requests) for server in servers] == [2, 2]
        go_on.set()
        assert {reply.result().status for reply in replies} == {200}
        gateway.idle()
        for route, _ in gateway.service._running.current.routes.values():
            for model in (route.draft_model, route.expert.model):
                assert set(model.load.values()) == {0}  # type: ignore[attr-defined]


def test_a_caller_who_leaves_leaves_no_load() -> None:
    """Also if a stream has begun."""
    with deployed(Reply("a b c d e f g h", pause=0.1), balance="least_load") as (gateway, _):
        client = gateway.client()
        with client.chat.completions.create(**ASK, stream=True) as stream:
            next(iter(stream))
        client.close()
        gateway.idle()
        for route, _ in gateway.service._running.current.routes.values():
            assert route.expert.model.load == {"a": 0}  # type: ignore[attr-defined]


def test_the_journal_does_not_depend_on_deployments() -> None:
    """Terms and entries are those of the same model on one server: a game goes on when a deployment is added."""

    def terms(data: dict[str, Any]) -> str:
        route = Config.read(data).routes["homework"]
        return route.terms(route.new_router())

    plain = settings("http://127.0.0.1:9/v1")
    assert terms(config("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1")) == terms(plain)
    other = config("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1")
    other["models"]["small"]["deployments"][1]["model"] = "another"
    assert terms(other) != terms(plain)
    with deployed(GOOD, GOOD) as (gateway, _):
        post(gateway.url, ASK)
        gateway.idle()
        assert isinstance(gateway.service.store, MemoryStore)
        (game,) = gateway.service.store.games()
        kept = list(gateway.service.store.entries(game))
        assert not any("deployment" in str(one.entry) for one in kept)
        notes: dict[str, Any] = {}
        for one in kept:
            notes |= one.note
        assert (notes["draft_deployment"], notes["expert_deployment"]) == ("a", "a"), "the note of the round has it"


def test_deployments_have_names_models_and_keys_of_their_own() -> None:
    """What is not given is the model's; names are the hosts by default."""
    data = config("http://127.0.0.1:1/v1", "http://me:secret@127.0.0.1:2/v1", api_key="common")
    first, second = data["models"]["small"]["deployments"]
    del second["name"]
    first |= {"model": "draft-west", "api_key": "west", "headers": {"x-a": "b"}, "timeout": 3.0}
    model = Config.read(data).models["small"]
    assert list(model.servers()) == ["small/a", "small/127.0.0.1:2"]
    west, other = model.servers().values()
    assert (west.model, west.api_key, west.timeout, west.headers) == ("draft-west", "west", 3.0, {"x-a": "b"})
    assert (other.model, other.api_key, other.timeout) == ("draft", "common", 60.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"deployments": []}, "models.small.deployments: expected tables"),
        ({"deployments": [{"name": "a"}]}, r"models.small.deployments\[0\].base_url is missing"),
        ({"deployments": [{"base_url": "http://a", "body": {}}]}, r"models.small.deployments\[0\].body: unknown key"),
        ({"deployments": [{"base_url": "http://a"}, {"base_url": "http://a"}]}, "two deployments are called a"),
        ({"deployments": [{"base_url": "http://a", "name": "a b"}]}, "without spaces"),
        ({"base_url": "http://a/v1"}, "models.small.base_url: each of the deployments has its own"),
        ({"balance": "random"}, "models.small.*balance: expected one of least_load, order"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], said: str) -> None:
    """With the path of the mistake and what to do."""
    data = config("http://127.0.0.1:1/v1")
    data["models"]["small"] |= change
    with pytest.raises(SettingsError, match=said):
        Config.read(data)


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_outside_the_games_names_its_deployment(stream: bool) -> None:
    """A forced request, and one of a route with one model, may be answered by the second one, too."""
    with ExitStack() as opened:
        servers = [opened.enter_context(ScriptedServer(script)) for script in (FAILING, GOOD)]
        data = config(*(server.base_url for server in servers))
        data["routes"]["alone"] = {"expert": "large"}
        gateway = opened.enter_context(RunningGateway(data))
        forced = post(gateway.url, {**ASK, "stream": stream}, headers={"x-bpac-force": "expert"})
        alone = post(gateway.url, {**ASK, "stream": stream, "model": "alone"})
        assert [reply.headers["x-bpac-deployment"] for reply in (forced, alone)] == ["b", "b"]
