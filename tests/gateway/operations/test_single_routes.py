"""Routes with one model: chats without a game, embeddings and completions passed through."""

import json
from typing import Any

import pytest

from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.operations.asking import ask, post
from tests.gateway.running import RunningGateway, pair

EMBEDDINGS = {"object": "list", "data": [{"index": 0, "embedding": [0.5]}], "usage": {"total_tokens": 3}}


def with_single(base_url: str, only: bool = False, **gateway: Any) -> dict[str, Any]:
    """A configuration with a route ``alone`` that has one model."""
    config = settings(base_url, gateway=gateway)
    routes = {} if only else config["routes"]
    return {**config, "routes": {**routes, "alone": {"expert": "large"}}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("only", [False, True])
def test_one_model_answers(stream: bool, only: bool) -> None:
    """The one model is asked and no other; there is no game, and other routes are not affected."""
    with (
        ScriptedServer(pair(Reply("draft"), Reply("hello"))) as models,
        RunningGateway(with_single(models.base_url, only)) as gateway,
    ):
        status, headers, body = ask(gateway.url, model="alone", stream=stream)
        assert (status, headers["x-bpac-decision"]) == (200, "single-model")
        assert headers["x-bpac-answered-by"] == "expert"
        assert "hello" in str(body)
        assert [request.body["model"] for request in models.requests] == ["expert"]
        found = get_json(f"{gateway.url}/v1/status")
        assert found["outside"] == {"alone": {"single-model": 1}}
        assert all(game["steps"] == 0 for games in found["routes"].values() for game in games)
        names = [model["id"] for model in get_json(f"{gateway.url}/v1/models")["data"]]
        assert names == (["alone"] if only else ["homework", "alone"])


def test_an_error_of_the_one_model_reaches_the_caller() -> None:
    """A failure is 502, a refusal is passed on."""
    with ScriptedServer(Reply(status=500)) as models, RunningGateway(with_single(models.base_url)) as gateway:
        assert ask(gateway.url, model="alone")[0] == 502
        models.script = lambda _: Reply(status=422, raw=b'{"error": {"message": "no"}}')
        assert ask(gateway.url, model="alone")[0] == 422


def test_a_forgotten_draft_is_an_error() -> None:
    """A route with epsilon and no draft is a mistake: it must not silently become a route without a promise."""
    config = settings("http://127.0.0.1:9/v1")
    del config["routes"]["homework"]["draft"]
    with pytest.raises(SettingsError, match=r"routes\.homework\.draft is missing"):
        Config.read(config)
    with pytest.raises(SettingsError, match=r"routes\.alone\.expert: there is no model 'other'"):
        Config.read({**config, "routes": {"alone": {"expert": "other"}}})


@pytest.mark.parametrize("path", ["/embeddings", "/completions"])
def test_other_endpoints_are_passed_through(path: str) -> None:
    """The body reaches the server with its model's name, and the server's response reaches the caller unchanged."""
    with (
        ScriptedServer(Reply(raw=json.dumps(EMBEDDINGS).encode())) as models,
        RunningGateway(with_single(models.base_url)) as gateway,
    ):
        status, headers, body = post(f"{gateway.url}/v1{path}", {"model": "alone", "input": "a", "x": [1]})
        assert (status, body, headers["x-bpac-decision"]) == (200, EMBEDDINGS, "pass-through")
        assert models.requests[0].body == {"model": "expert", "input": "a", "x": [1]}
        assert models.requests[0].path == f"/v1{path}"
        assert get_json(f"{gateway.url}/v1/status")["outside"] == {"alone": {"pass-through": 1}}


def test_streamed_completions_are_passed_through() -> None:
    """The events of a stream reach the caller as the server sends them."""
    with ScriptedServer(Reply("one two")) as models, RunningGateway(with_single(models.base_url)) as gateway:
        sent = {"model": "alone", "prompt": "a", "stream": True}
        status, _, text = post(f"{gateway.url}/v1/completions", sent)
        assert status == 200
        assert text.endswith("data: [DONE]\n\n")
        assert text.count("data: ") > 3


def test_a_route_that_decides_passes_nothing_through() -> None:
    """There is no draft of an embedding to decide on: the caller is told which routes can be used."""
    with ScriptedServer(Reply("42")) as models, RunningGateway(with_single(models.base_url)) as gateway:
        status, _, body = post(f"{gateway.url}/v1/embeddings", {"model": "homework", "input": "a"})
        assert (status, body["error"]["code"]) == (400, "not_a_single_route")
        assert post(f"{gateway.url}/v1/embeddings", {"model": "nothing", "input": "a"})[0] == 404
        assert post(f"{gateway.url}/v1/embeddings", {"input": "a"})[0] == 400
        assert not models.requests


def test_pass_through_needs_a_key_and_hides_the_servers_trouble() -> None:
    """Callers need the role call; refusals are passed on, failures and the gateway's own key are 502."""

    def script(request: Request) -> Reply:
        statuses = {"refused": 400, "failed": 500, "key": 401, "html": 200}
        raw = b"<html>" if request.body["input"] == "html" else b'{"error": {"message": "secret"}}'
        return Reply(status=statuses[request.body["input"]], raw=raw)

    keys = [{"name": "team", "key": "call-key", "roles": ["call"]}]
    with ScriptedServer(script) as models, RunningGateway(with_single(models.base_url, keys=keys)) as gateway:
        url = f"{gateway.url}/v1/embeddings"
        assert post(url, {"model": "alone", "input": "refused"})[0] == 401
        got = {
            word: post(url, {"model": "alone", "input": word}, {"Authorization": "Bearer call-key"})
            for word in ("refused", "failed", "key", "html")
        }
        statuses = {word: found[0] for word, found in got.items()}
        assert statuses == {"refused": 400, "failed": 502, "key": 502, "html": 502}
        assert "secret" not in str(got["key"][2])


def test_what_is_passed_through_is_not_adapted_as_chats_are() -> None:
    """Completions know max_tokens only: what a preset or a setting changes in chats stays as it is."""
    with ScriptedServer(Reply(raw=b'{"choices": []}')) as models:
        config = with_single(models.base_url)
        config["models"]["large"] |= {"token_limit": "max_completion_tokens", "drop": ["user"], "body": {"seed": 1}}
        with RunningGateway(config) as gateway:
            sent = {"model": "alone", "prompt": "a", "max_tokens": 5, "user": "me"}
            assert post(f"{gateway.url}/v1/completions", sent)[0] == 200
        assert models.requests[0].body == {**sent, "model": "expert", "seed": 1}


def test_what_is_passed_through_does_not_wait_for_a_server_that_is_down() -> None:
    """Its failures open the circuit breaker, as those of chats do: then callers get 502 without a request."""
    with ScriptedServer(Reply(status=500)) as models:
        config = with_single(models.base_url)
        config["models"]["large"]["breaker"] = 2
        with RunningGateway(config) as gateway:
            url = f"{gateway.url}/v1/embeddings"
            for _ in range(2):
                assert post(url, {"model": "alone", "input": "a"})[0] == 502
            wait_for(lambda: gateway.service.monitor.is_down("large"))
            assert post(url, {"model": "alone", "input": "a"})[0] == 502
            assert sum(request.path == "/v1/embeddings" for request in models.requests) == 2
