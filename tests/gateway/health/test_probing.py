"""At the start every model is probed, and the operator can read what works and what does not."""

import logging
import threading
from typing import Any

import pytest

from bpac.answer import Token
from bpac.testing import SILENCE, Reply, Request, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair
from tests.ports import free_port

PROBING = {"probe": True, "probe_timeout": 60.0}
SKY = Reply("It scatters blue light more than red light", probability=0.8)
THOUGHT = Reply("It scatters blue light", reasoning="the user asks about the sky")


def findings(gateway: RunningGateway, name: str) -> dict[str, Any]:
    """The findings of the latest probe of a model, by check."""
    wait_for(lambda: bool(health(gateway, name)["probe"]))
    return {one["check"]: one for one in health(gateway, name)["probe"]}


def health(gateway: RunningGateway, name: str) -> dict[str, Any]:
    """The health of a model, as status shows it."""
    found = get_json(f"{gateway.url}/v1/status")["models"][name]["health"]
    assert isinstance(found, dict)
    return found


def lines(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    """The log lines about a model's probe."""
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith(f"model {name} (")]


def test_a_healthy_pair_gets_one_line_each(caplog: pytest.LogCaptureFixture) -> None:
    """Reachable, key accepted, model known, log-probabilities given, thinking off and on; /readyz shows it."""
    caplog.set_level(logging.INFO, "bpac.gateway")
    with Running(pair(SKY, THOUGHT), gateway=PROBING) as (gateway, models):
        wait_for(lambda: all(lines(caplog, name) for name in ("small", "large")))
        (draft,), (expert,) = lines(caplog, "small"), lines(caplog, "large")
        known = "reachable, key accepted, model known"
        assert draft == f"model small (draft of homework): {known}, log-probabilities given, thinking off"
        assert expert == f"model large (expert of homework): {known}, thinking on"
        ready = get_json(f"{gateway.url}/readyz")
        assert ready == {
            "status": "ready",
            "models": {"small": {"up": True, "probe": "ok"}, "large": {"up": True, "probe": "ok"}},
        }
        # The question to the draft is asked as for a request: with what the score needs.
        assert {one.body["model"]: one.body.get("logprobs") for one in models.requests} == {
            "draft": True,
            "expert": None,
        }
        assert gateway.status()["steps"] == 0  # a probe is no request of the route


def _no_logprobs(request: Request) -> Reply:
    return Reply("logprobs are not supported", status=400) if request.body.get("logprobs") else SKY


def _successor(request: Request) -> Reply:
    return Reply("use max_completion_tokens", status=400) if "max_tokens" in request.body else SKY


ZERO = Reply(tokens=tuple(Token(word, 0.0) for word in ["it", "scatters", "blue", "light", "more"]))
BROKEN = Reply(tokens=tuple(Token(word, -9999.0) for word in ["it", "scatters"]))


@pytest.mark.parametrize(
    ("draft", "check", "level", "said"),
    [
        (Reply("bad key", status=401), "key", "error", "key not accepted (status 401): check api_key"),
        (Reply("bad key", status=403), "key", "error", "key not accepted (status 403): check api_key"),
        (Reply("no", status=404), "model", "error", "model or path not known (status 404: no): check that 'draft'"),
        (Reply("The model `x` does not exist", status=400), "model", "error", "model or path not known (status 400"),
        (Reply("slow down", status=429), "answer", "warning", "busy: the rate limit is reached"),
        (Reply("oops", status=500), "answer", "error", "the server fails with status 500: see the log"),
        (Reply("temperature", status=422), "answer", "error", "a plain question is refused (status 422: temperature)"),
        (
            Reply(raw=b"<html>hello</html>"),
            "reachable",
            "error",
            "something else than a chat completion: check base",
        ),
        (Reply("x", status=302, headers={"Location": "/"}), "reachable", "error", "redirects elsewhere (status 302)"),
        (SILENCE, "reachable", "error", "within 1.5 s: see whether the server hangs"),
        (Reply("ok", logprobs=False), "score", "error", "it sends no log-probabilities, so the expert would answer"),
        (_no_logprobs, "score", "error", "it refuses a request for log-probabilities (status 400: logprobs are not"),
        (ZERO, "score", "error", "its log-probabilities are all 0"),
        (BROKEN, "score", "error", "its log-probabilities are impossible values"),
        (_successor, "score", "ok", "log-probabilities given"),
        (THOUGHT, "thinking", "warning", "thinking is on, so each draft costs about as much as an expert: turn"),
    ],
)
def test_every_trouble_is_found_and_said(
    draft: Any, check: str, level: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a draft's server does at the start, one line says it with the remedy, and the gateway serves."""
    caplog.set_level(logging.INFO, "bpac.gateway")
    patience: dict[str, Any] = {}
    if draft is SILENCE:
        patience = {"gateway": {**PROBING, "probe_timeout": 1.5}, "model": {"timeout": 0.5}}
    with Running(pair(draft, THOUGHT), **{"gateway": PROBING, **patience}) as (gateway, _):
        found = findings(gateway, "small")[check]
        assert found["level"] == level
        text = f"{found['message']}: {found['remedy']}" if found["remedy"] else found["message"]
        assert said in text
        (line,) = lines(caplog, "small")
        assert said in line
        assert get_json(f"{gateway.url}/readyz")["models"]["small"]["probe"] == level
        assert gateway.client().chat.completions.create(**ASK).choices


def test_a_server_that_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    """Its address is in the line, without the password in it."""
    caplog.set_level(logging.INFO, "bpac.gateway")
    with ScriptedServer(THOUGHT) as models:
        config = settings(models.base_url, gateway=PROBING)
        config["models"]["small"]["base_url"] = f"http://me:hidden@127.0.0.1:{free_port()}/v1"
        with RunningGateway(config) as gateway:
            assert findings(gateway, "small")["reachable"]["level"] == "error"
            (line,) = lines(caplog, "small")
            assert "no connection to http://***@127.0.0.1:" in line
            assert "start the server, or correct base_url" in line
            assert "hidden" not in str(get_json(f"{gateway.url}/v1/status"))


def test_what_is_wrong_is_a_trouble_with_a_remedy() -> None:
    """For the dashboard: what, since when, how often and what to do; nothing if all is well."""
    with Running(pair(Reply("ok", logprobs=False), THOUGHT), gateway=PROBING) as (gateway, _):
        wait_for(lambda: bool(gateway.service.monitor.troubles()))
        (trouble,) = gateway.service.monitor.troubles()
        assert trouble["what"] == "model small: it sends no log-probabilities, so the expert would answer every request"
        assert trouble["remedy"].startswith('set score = "auto"')
        assert (trouble["count"], trouble["since"] > 1e9) == (1, True)


def test_a_model_that_no_route_uses_need_not_answer_chats() -> None:
    """It may be a model of embeddings: that it refuses a chat is no trouble."""

    def script(request: Request) -> Reply:
        return Reply("no chats", status=404) if request.body["model"] == "vectors" else SKY

    with ScriptedServer(script) as models:
        config = settings(models.base_url, gateway=PROBING)
        config["models"]["other"] = {"base_url": models.base_url, "model": "vectors"}
        with RunningGateway(config) as gateway:
            assert {one["level"] for one in findings(gateway, "other").values()} == {"ok"}


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/completions"])
def test_the_model_of_a_route_with_one_model_need_not_answer_chats(path: str) -> None:
    """A server of embeddings or completions refuses chats: that is no trouble, and the model is up."""

    def script(request: Request) -> Reply:
        if request.body["model"] != "vectors":
            return SKY
        return Reply(raw=b'{"data": []}') if request.path == path else Reply("no chats", status=400)

    with ScriptedServer(script) as models:
        config = settings(models.base_url, gateway=PROBING)
        config["models"]["other"] = {"base_url": models.base_url, "model": "vectors"}
        config["routes"]["vectors"] = {"expert": "other"}
        with RunningGateway(config) as gateway:
            assert {one["level"] for one in findings(gateway, "other").values()} == {"ok"}
            assert health(gateway, "other")["ok"]
            assert get_json(f"{gateway.url}/readyz")["models"]["other"] == {"up": True, "probe": "ok"}


def test_the_model_of_a_route_with_one_model_that_answers_nothing_is_a_trouble() -> None:
    """A model that its server does not know, or a chat that it refuses, is found for such routes, too."""
    with ScriptedServer(lambda request: Reply("no", status=400) if "x" in request.body["model"] else SKY) as models:
        config = settings(models.base_url, gateway=PROBING)
        config["routes"] = {"alone": {"expert": "large"}}
        with RunningGateway(config) as gateway:
            assert findings(gateway, "large")["answer"]["level"] == "error"


def test_a_model_that_gets_another_use_by_a_reload_is_probed_for_it() -> None:
    """An expert that becomes a draft has to give log-probabilities, which is checked at once."""
    with Running(pair(SKY, Reply("ok", logprobs=False)), gateway=PROBING) as (gateway, models):
        assert "score" not in findings(gateway, "large")
        config = settings(models.base_url, gateway=PROBING, draft="large", expert="small")
        assert gateway.reload(config)
        wait_for(lambda: findings(gateway, "large").get("score", {}).get("level") == "error")


def test_an_expert_that_is_the_draft_without_thinking(caplog: pytest.LogCaptureFixture) -> None:
    """If both have one name and neither thinks, the expert is no better than the draft: that is said."""
    with ScriptedServer(SKY) as models:
        config = settings(models.base_url, gateway=PROBING)
        config["models"]["large"]["model"] = "draft"
        with RunningGateway(config) as gateway:
            found = findings(gateway, "large")["thinking"]
            assert (found["level"], found["message"]) == ("warning", "no thinking seen")


def test_hidden_thinking_is_seen() -> None:
    """A server that does not show its thoughts counts their tokens."""
    usage = b'{"completion_tokens": 90, "completion_tokens_details": {"reasoning_tokens": 80}}'
    body = b'{"choices": [{"message": {"content": "It scatters"}}], "usage": ' + usage + b"}"
    with Running(pair(SKY, Reply(raw=body)), gateway=PROBING) as (gateway, _):
        assert findings(gateway, "large")["thinking"]["message"] == "thinking on"


def test_a_slow_expert_is_not_down() -> None:
    """If it gives a first token in time, it is up, however long it thinks."""

    def slow(request: Request) -> Reply:
        return Reply("It") if request.body.get("max_tokens") == 1 else SILENCE

    with Running(pair(SKY, slow), gateway={**PROBING, "probe_timeout": 1.0}) as (gateway, _):
        found = findings(gateway, "large")
        assert (found["reachable"]["level"], found["answer"]["level"]) == ("ok", "warning")
        assert health(gateway, "large")["breaker"] == "closed"


def test_models_that_hang_do_not_hold_up_the_start() -> None:
    """The gateway answers while its models have not answered their probes."""
    asked, go_on = threading.Semaphore(0), threading.Event()

    def script(request: Request) -> Reply:
        if request.question.startswith("Say in one"):
            asked.release()
            assert go_on.wait(60.0)
        return SKY

    with Running(script, gateway={"probe": True, "probe_timeout": 60.0}) as (gateway, _):
        for _ in range(2):
            assert asked.acquire(timeout=60.0)
        assert health(gateway, "small")["probe"] == []
        assert gateway.client().chat.completions.create(**ASK).choices
        go_on.set()
        assert findings(gateway, "small")["score"]["level"] == "ok"


def test_a_gateway_stops_while_it_probes() -> None:
    """Probes under way are ended; ``Running`` checks that no task is left over."""
    with Running(SILENCE, gateway={"probe": True, "probe_timeout": 60.0}) as (gateway, _):
        assert get_json(f"{gateway.url}/readyz")["status"] == "ready"


def test_readyz_shows_no_secret_and_needs_no_key() -> None:
    """Names and levels only: addresses, errors and remedies are for operators."""
    keys = {"api_keys": ["caller-key"], **PROBING}
    with Running(Reply("the key sk-1234 is bad", status=401), gateway=keys) as (gateway, _):
        wait_for(lambda: get_json(f"{gateway.url}/readyz")["models"]["small"]["probe"] == "error")
        assert get_json(f"{gateway.url}/readyz")["models"]["small"] == {"up": True, "probe": "error"}
        assert post(gateway.url, b"", "/v1/status", method="GET").status == 401


def test_a_reload_changes_how_long_a_probe_may_take() -> None:
    """A model that is new is probed with the new ``probe_timeout``, and trials wait no longer than that."""
    with ScriptedServer(SKY) as models, ScriptedServer(SILENCE) as silent:
        before = settings(models.base_url, gateway={"probe": True, "probe_timeout": 60.0})
        after = settings(models.base_url, gateway={"probe": True, "probe_timeout": 0.3})
        after["models"]["third"] = {"base_url": silent.base_url, "model": "third"}
        with RunningGateway(before) as gateway:
            assert gateway.reload(after)
            assert "within 0.3 s" in findings(gateway, "third")["reachable"]["message"]
            wait_for(lambda: health(gateway, "third")["breaker"] == "open")
