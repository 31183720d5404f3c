"""The plug-in in LiteLLM's real proxy: kept drafts, expert calls, and losses that arrive at the gateway."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from openai import APIStatusError, OpenAI

from bpac.routing.journal.entries import Resolved
from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import wait_for
from tests.gateway.deciding.own_route import Client
from tests.gateway.running import RunningGateway
from tests.plugins.litellm_proxy import KEY, litellm_proxy
from tests.ports import free_port

TOOL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
ROUTES = {"kept": "never", "asked": "always"}


def model(request: Request) -> Reply:
    """Both models; the question says what they do."""
    draft, question = request.body["model"] == "draft", request.question
    if "tool" in question:
        return Reply("", tool_calls=(TOOL,), finish_reason="tool_calls")
    if "no draft" in question and draft:
        return Reply("busy", status=500)
    if "unscored" in question and draft:
        return Reply("41", logprobs=False)
    if "broken" in question and not draft:
        return Reply("broken", status=500)
    if "refused" in question and not draft:
        return Reply("I do not answer this", status=422)
    return Reply("41" if draft and "wrong" in question else "42", probability=0.9)


class Proxy(NamedTuple):
    """What runs."""

    client: OpenAI
    models: ScriptedServer
    gateway: RunningGateway

    def ask(self, route: str, question: str, **more: Any) -> Any:
        """The answer to a question, and the headers."""
        messages: Any = [{"role": "user", "content": question}]
        return self.client.chat.completions.with_raw_response.create(model=route, messages=messages, **more)

    def game(self, route: str) -> dict[str, Any]:
        """The status of the game of a route."""
        (game,) = Client(self.gateway).status()["routes"][route]
        assert isinstance(game, dict)
        return game

    def asked(self, question: str) -> list[str]:
        """Which models were asked a question, in order."""
        return [request.body["model"] for request in self.models.requests if request.question == question]


def config(models: str, gateway: str) -> str:
    """LiteLLM's configuration; JSON is YAML."""
    groups = {"small": "draft", "large": "expert"}
    pair = {"bpac": {"draft": "small", "expert": "large"}}
    nowhere = f"http://127.0.0.1:{free_port()}"
    routes = [(name, f"bpac/{name}", gateway, pair) for name in ROUTES]
    routes += [("gone", "bpac/kept", nowhere, pair), ("no-route", "bpac/missing", gateway, pair)]
    routes += [("unset", "bpac/kept", gateway, {})]
    routes += [("no-expert", "bpac/asked", gateway, {"bpac": {"draft": "small", "expert": "missing"}})]
    routes += [("no-draft", "bpac/asked", gateway, {"bpac": {"draft": "missing", "expert": "large"}})]
    return json.dumps(
        {
            "model_list": [
                {
                    "model_name": name,
                    "litellm_params": {
                        "model": f"openai/{model}",
                        "api_base": models,
                        "api_key": "none",
                        "max_retries": 0,
                    },
                }
                for name, model in groups.items()
            ]
            + [
                {"model_name": name, "litellm_params": {"model": model, "api_base": base}, "model_info": info}
                for name, model, base, info in routes
            ],
            "litellm_settings": {
                "custom_provider_map": [{"provider": "bpac", "custom_handler": "bpac.plugins.litellm.handler"}]
            },
            "router_settings": {"num_retries": 1, "retry_after": 0, "disable_cooldowns": True},
        }
    )


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """One gateway, one scripted server and one proxy for the tests of this file."""
    routes = {name: {"decide_only": True, "epsilon": 0.2, "policy": policy} for name, policy in ROUTES.items()}
    settings = {"gateway": {"listen": "127.0.0.1:0", "store": "memory://"}, "routes": routes}
    folder = tmp_path_factory.mktemp("litellm")
    with (
        ScriptedServer(model) as models,
        RunningGateway(settings) as gateway,
        litellm_proxy(config(models.base_url, gateway.url), folder) as url,
        OpenAI(base_url=url, api_key=KEY, max_retries=0, timeout=60.0) as client,
    ):
        yield Proxy(client, models, gateway)


def test_a_kept_draft_is_served_and_the_expert_is_not_asked(proxy: Proxy) -> None:
    """The caller's fields reach the draft; the log-probabilities that the plug-in asked for do not reach the caller."""
    got = proxy.ask("kept", "keep this", temperature=0.25)
    answer = got.parse()
    assert (answer.choices[0].message.content, answer.choices[0].logprobs) == ("42", None)
    assert proxy.asked("keep this") == ["draft"]
    (sent,) = [request.body for request in proxy.models.requests if request.question == "keep this"]
    assert (sent["temperature"], sent["logprobs"]) == (0.25, True)
    assert got.headers["llm_provider-x-bpac-answered-by"] == "draft"
    assert got.headers["llm_provider-x-bpac-decision"].startswith("dec-")
    assert proxy.game("kept")["savings"]["draft_tokens"] >= 1


@pytest.mark.parametrize(("question", "loss"), [("right answer", 0.0), ("wrong answer", 1.0)])
def test_the_experts_answer_is_served_and_the_loss_arrives(proxy: Proxy, question: str, loss: float) -> None:
    """The draft is graded against the expert's answer, and the gateway knows its loss."""
    before = proxy.game("asked")
    got = proxy.ask("asked", question)
    assert got.parse().choices[0].message.content == "42"
    assert got.headers["llm_provider-x-bpac-answered-by"] == "expert"
    assert proxy.asked(question) == ["draft", "expert"]
    wait_for(lambda: proxy.game("asked")["steps"] == before["steps"] + 1 and proxy.game("asked")["owed"] == 0)
    (round_,) = proxy.gateway.service.store.rounds(_game(proxy, "asked").kept, limit=1)
    assert round_.outcome is not None
    assert isinstance(round_.outcome.entry, Resolved)
    assert round_.outcome.entry.loss == loss
    assert proxy.game("asked")["forfeits"] == before["forfeits"]


def _game(proxy: Proxy, route: str) -> Any:
    (game,) = [game for game in proxy.gateway.service.live_games() if game.route.name == route]
    return game


@pytest.mark.parametrize("route", ["kept", "asked"])
def test_streams(proxy: Proxy, route: str) -> None:
    """A kept draft is streamed at once, the expert's answer as it comes; its loss arrives all the same."""
    question = f"stream of {route}"
    messages: Any = [{"role": "user", "content": question}]
    chunks = list(proxy.client.chat.completions.create(model=route, messages=messages, stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "42"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert proxy.asked(question) == (["draft"] if route == "kept" else ["draft", "expert"])
    wait_for(lambda: proxy.game(route)["owed"] == 0)


@pytest.mark.parametrize("route", ["kept", "asked"])
def test_tool_calls_whole_and_streamed(proxy: Proxy, route: str) -> None:
    """Whichever model calls a tool, the caller gets the call."""
    question = f"tool of {route}"
    tools: Any = [{"type": "function", "function": {"name": "add", "parameters": {}}}]
    (call,) = proxy.ask(route, question, tools=tools).parse().choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("add", {"a": 1})
    messages: Any = [{"role": "user", "content": question}]
    stream: Any = proxy.client.chat.completions.create(model=route, messages=messages, tools=tools, stream=True)
    parts = [part for chunk in stream for part in (chunk.choices[0].delta.tool_calls or ()) if chunk.choices]
    assert "".join(part.function.name or "" for part in parts) == "add"
    assert json.loads("".join(part.function.arguments or "" for part in parts)) == {"a": 1}
    wait_for(lambda: proxy.game(route)["owed"] == 0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ["gone", "no-route"])
def test_without_a_gateway_the_expert_answers(proxy: Proxy, route: str, stream: bool) -> None:
    """No draft is kept that no gateway decided, and none is asked for."""
    question = f"{route} {stream}"
    messages: Any = [{"role": "user", "content": question}]
    got: Any = proxy.client.chat.completions.create(model=route, messages=messages, stream=stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in got) if stream else got.choices[0].message.content
    assert (text, proxy.asked(question)) == ("42", ["expert"])


@pytest.mark.parametrize("question", ["no draft", "unscored", "several"])
def test_without_a_score_the_expert_answers(proxy: Proxy, question: str) -> None:
    """A draft that fails, has no log-probabilities, or would have to be several: no round, and no ticket is left."""
    steps = proxy.game("kept")["steps"]
    more = {"n": 2} if question == "several" else {}
    assert proxy.ask("kept", question, **more).parse().choices[0].message.content == "42"
    assert proxy.asked(question)[-1] == "expert"
    assert proxy.game("kept")["steps"] == steps
    wait_for(lambda: Client(proxy.gateway).status()["tickets"]["kept"]["held"] == 0)


def test_an_expert_that_fails_has_one_coin(proxy: Proxy) -> None:
    """LiteLLM repeats the call: with the expert alone. The round is given up, and counts as a loss."""
    before = proxy.game("asked")
    with pytest.raises(APIStatusError) as caught:
        proxy.ask("asked", "broken")
    assert caught.value.status_code == 500
    assert proxy.asked("broken").count("draft") == 1
    assert proxy.asked("broken").count("expert") >= 2
    after = proxy.game("asked")
    assert after["steps"] == before["steps"] + 1
    assert after["forfeits"]["caller gave up"] == before["forfeits"].get("caller gave up", 0) + 1


def test_an_expert_that_refuses_makes_a_fair_round(proxy: Proxy) -> None:
    """Its refusal reaches the caller, and the gateway counts it as a refusal."""
    before = proxy.game("asked")["refused"]
    with pytest.raises(APIStatusError) as caught:
        proxy.ask("asked", "refused")
    assert caught.value.status_code in (400, 422)
    assert proxy.game("asked")["refused"] == before + 1


def test_an_expert_that_the_proxy_does_not_have_is_no_refusal(proxy: Proxy) -> None:
    """No server has refused anything: the round counts as a loss, and the caller's error names the missing group."""
    before = proxy.game("asked")
    with pytest.raises(APIStatusError, match=r"the model group 'missing' that model_info\.bpac names") as caught:
        proxy.ask("no-expert", "nobody is asked")
    assert caught.value.status_code == 500
    after = proxy.game("asked")
    assert (after["steps"], after["refused"]) == (before["steps"] + 1, before["refused"])
    assert after["forfeits"]["caller gave up"] == before["forfeits"].get("caller gave up", 0) + 1
    assert proxy.ask("no-draft", "only the expert").parse().choices[0].message.content == "42"
    assert proxy.game("asked")["steps"] == after["steps"]


def test_a_pair_that_is_not_configured_is_an_error_that_names_the_place(proxy: Proxy) -> None:
    """The message says what is missing and where."""
    with pytest.raises(APIStatusError, match=r"model_info\.bpac of the model bpac/kept"):
        proxy.ask("unset", "hello")
