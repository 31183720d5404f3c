"""Every preset makes requests acceptable to its vendor, with thinking off for drafts and on for the expert."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.models.adapting.presets import PRESETS, SWITCHES
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import settings
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway
from tests.gateway.vendors import vendor

PROVIDERS = (Path(__file__).parents[3] / "docs" / "providers.md").read_text(encoding="utf-8")

# A model of glm-4.7 always thinks, so that it can be the expert only.
BOTH_ROLES = [name for name, preset in PRESETS.items() if preset.off is not None]

CALL = {"id": "call_0123456789abcdefghijklmnopqrstuvwxyz.ABCDEFG:0", "type": "function"}
# What an agent sends after a few turns with other models: sampling, a small limit, foreign ids and foreign thinking.
AGENT: dict[str, Any] = {
    "model": "homework",
    "temperature": 0.7,
    "top_p": 0.9,
    "max_tokens": 50,
    "seed": 7,
    "user": "somebody",
    "messages": [
        {"role": "user", "content": "What is 6 * 7?"},
        {
            "role": "assistant",
            "content": "<think>I should calculate.</think>One moment.",
            "reasoning_content": "I should calculate.",
            "tool_calls": [{**CALL, "function": {"name": "times", "arguments": '{"a": 6, "b": 7}'}}],
        },
        {"role": "tool", "tool_call_id": CALL["id"], "content": "42"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "So 42.", "signature": "s"}]},
        {"role": "user", "content": "So?"},
    ],
}


def switches(on: bool) -> dict[str, Any]:
    """Every way in which a caller could try to turn thinking on or off."""
    return {
        "reasoning_effort": "high" if on else "none",
        "reasoning": {"effort": "high" if on else "none"},
        "thinking": {"type": "enabled", "budget_tokens": 9000} if on else {"type": "disabled"},
        "enable_thinking": on,
        "output_config": {"effort": "high" if on else "low"},
        "chat_template_kwargs": {"enable_thinking": on, "thinking": on},
        "extra_body": {"google": {"thinking_config": {"thinking_budget": 9000 if on else 0}}},
    }


def agent_of(name: str) -> dict[str, Any]:
    """What an agent sends to the vendor of a preset.

    One vendor's models cannot think while they go on with a turn that another model began: there the turn has ended.
    """
    if name != "anthropic-messages-4.5":
        return AGENT
    *before, last = AGENT["messages"]
    return {**AGENT, "messages": [*before, {"role": "assistant", "content": "So it is 42."}, last]}


def test_a_turn_that_the_draft_began_is_continued_without_thinking() -> None:
    """Its vendor refuses a budget for thinking there; the next turn is thought about again."""
    server = vendor("anthropic-messages-4.5")
    with Running(server, model=preset_of("anthropic-messages-4.5"), score="verbalized") as (gateway, _):
        for asked, thinks in ((AGENT, False), (agent_of("anthropic-messages-4.5"), True)):
            assert post(gateway.url, asked).status == 200
            gateway.idle()
            assert server.refusals == []
            assert server.thought == {"draft": False, "expert": thinks}


def preset_of(name: str, **more: Any) -> dict[str, Any]:
    """The settings of a model with a preset."""
    azure = {"api_key": "key", "query": {"api-version": "2024-10-21"}} if name == "azure" else {}
    return {"preset": name, **azure, **more}


def score_for(name: str) -> str:
    """A score that the vendor's drafts can have."""
    return "verbalized" if PRESETS[name].logprobs == "no" else "mean_token_probability"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", BOTH_ROLES)
def test_a_preset_makes_requests_acceptable(name: str, stream: bool) -> None:
    """Neither model refuses what an agent sends; the draft does not think, and the expert does and has room for it."""
    server = vendor(name)
    with Running(server, model=preset_of(name), score=score_for(name)) as (gateway, models):
        ask = agent_of(name) | ({"stream": True, "stream_options": {"include_usage": True}} if stream else {})
        got = post(gateway.url, ask)
        gateway.idle()
        assert server.refusals == []
        assert got.status == 200
        assert got.headers["x-bpac-answered-by"] == "expert"
        assert b"42" in got.body
        assert server.thought == {"draft": False, "expert": True}
        assert gateway.status()["steps"] == 1, "the draft had a score"
        assert len(models.requests) == 2


@pytest.mark.parametrize("name", BOTH_ROLES)
def test_callers_cannot_turn_thinking_off_or_on(name: str) -> None:
    """What makes a model the draft or the expert is the operator's; a caller who says otherwise is not refused."""
    server = vendor(name)
    with Running(server, model=preset_of(name), score=score_for(name)) as (gateway, _):
        for on in (False, True):
            assert post(gateway.url, agent_of(name) | switches(on)).status == 200
            gateway.idle()
            assert server.thought == {"draft": False, "expert": True}
        assert server.refusals == []
        assert gateway.status()["steps"] == 2


@pytest.mark.parametrize("name", BOTH_ROLES)
def test_without_the_preset_the_vendor_is_not_used_as_intended(name: str) -> None:
    """The imitation is strict: without a preset it refuses the request, or the draft thinks as the expert does."""
    server = vendor(name)
    with Running(server) as (gateway, _):
        post(gateway.url, AGENT)
        gateway.idle()
    assert server.refusals or server.thought["draft"]


def test_a_model_that_always_thinks_is_no_draft() -> None:
    """The error names the model, the preset and what to do."""
    config = settings("http://127.0.0.1:9/v1")
    config["models"]["small"]["preset"] = "glm-4.7"
    with pytest.raises(SettingsError, match=r"models\.small\.thinking: models of the preset glm-4\.7 cannot be set to"):
        Config.read(config)
    config["models"]["large"]["preset"] = "glm-4.7"
    del config["models"]["small"]["preset"]
    assert Config.read(config).models["large"].body == {"thinking": {"type": "enabled"}}


def test_one_model_in_both_roles_needs_two_tables() -> None:
    """Its role does not say whether it thinks; with two tables of the same model it does."""
    config = settings("http://127.0.0.1:9/v1")
    config["models"] = {"qwen": {"base_url": "http://127.0.0.1:9/v1", "model": "Qwen/Qwen3-8B", "preset": "qwen3-vllm"}}
    config["routes"]["homework"] |= {"draft": "qwen", "expert": "qwen"}
    with pytest.raises(SettingsError, match=r"models\.qwen\.thinking is missing.*two tables"):
        Config.read(config)
    config["models"]["instant"] = config["models"]["qwen"]
    config["routes"]["homework"]["draft"] = "instant"
    models = Config.read(config).models
    assert [models[name].thinking for name in ("instant", "qwen")] == ["off", "on"]
    assert models["instant"].body == {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"thinking": "on"}, {"thinking": "on", "least_max_tokens": 16_384}),
        ({"drop": []}, {"drop": (), "body": {"reasoning_effort": "none"}}),
        ({"token_limit": "max_completion_tokens"}, {"token_limit": "max_completion_tokens"}),
        ({"stream_options": True}, {"stream_options": True}),
        ({"tool_call_ids": "any"}, {"tool_call_ids": "any"}),
        ({"thinking_in_history": "keep"}, {"thinking_in_history": "keep"}),
        ({"rename": {}}, {"rename": {}}),
        ({"least_max_tokens": 5}, {"least_max_tokens": 5}),
        ({"body": {"reasoning_effort": "low"}}, {"body": {"reasoning_effort": "low"}}),
        ({"body": {"safe_prompt": True}}, {"body": {"reasoning_effort": "none", "safe_prompt": True}}),
        ({"drop": ["reasoning_effort"]}, {"body": {}, "drop": ("reasoning_effort",)}),
    ],
)
def test_explicit_keys_override_a_preset(given: dict[str, Any], expected: dict[str, Any]) -> None:
    """Each key replaces the preset's; fields of body are merged, and dropped fields are not added."""
    config = settings("http://127.0.0.1:9/v1")
    config["models"]["small"] |= {"preset": "mistral", **given}
    model = Config.read(config).models["small"]
    assert {key: getattr(model, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"preset": "qwen3vllm"}, r"models\.small\.preset: there is no preset 'qwen3vllm', did you mean qwen3-vllm\?"),
        ({"preset": 3}, r"models\.small\.preset: there is no preset 3"),
        ({"thinking": "off"}, r"models\.small\.thinking needs a preset"),
        ({"preset": "vllm", "thinking": "maybe"}, r"models\.small\.thinking: expected one of off, on"),
        ({"preset": "anthropic"}, r"routes\.homework\.score: mean_token_probability needs log-probabilities"),
        ({"drop": ["messages"]}, r"models\.small\.drop: every request needs messages"),
        ({"rename": {"n": "model"}}, r"models\.small\.rename: every request needs model"),
        ({"query": {"a": 1}}, r"models\.small\.query\.a: expected a string, got 1"),
        ({"query": {"a": "env:NO_SUCH_VARIABLE"}}, r"models\.small\.query\.a: .*NO_SUCH_VARIABLE"),
        ({"least_max_tokens": -1}, r"models\.small\.least_max_tokens"),
        ({"tool_call_ids": "short"}, r"models\.small\.tool_call_ids: expected one of anthropic, any, mistral, openai"),
    ],
)
def test_mistakes_are_explained(given: dict[str, Any], said: str) -> None:
    """Every message names the key and what may stand there."""
    config = settings("http://127.0.0.1:9/v1")
    config["models"]["small"] |= given
    with pytest.raises(SettingsError, match=said):
        Config.read(config)


def test_a_preset_is_a_term_of_the_game() -> None:
    """Other requests get other answers: a preset begins a new game, and a configuration without one keeps its terms."""

    def terms(**more: Any) -> str:
        config = settings("http://127.0.0.1:9/v1")
        config["models"]["small"] |= more
        route = Config.read(config).routes["homework"]
        return route.terms(route.new_router())

    off = {"chat_template_kwargs": {"enable_thinking": False}}
    assert '"draft": ["draft", {}]' in terms()
    assert terms(retries=1) == terms()
    assert len({terms(), terms(preset="qwen3-vllm"), terms(preset="vllm"), terms(drop=["temperature"])}) == 4
    same = {"body": off, "thinking_in_history": "drop", "drop": [*SWITCHES]}
    assert terms(preset="qwen3-vllm") == terms(**same), "a preset is the keys it sets"


def test_every_preset_is_documented() -> None:
    """The table of docs/providers.md has a row for each preset with the fields and the keys that it sets."""
    page = (Path(__file__).parents[3] / "docs" / "providers.md").read_text(encoding="utf-8")
    rows = {
        cells[0].strip("` "): cells for cells in (line.split("|")[1:-1] for line in page.splitlines() if "|" in line)
    }
    for name, preset in PRESETS.items():
        _, off, on, logprobs, more = rows[name]
        for cell, fields in ((off, preset.off), (on, preset.on)):
            written = set(re.findall(r"[a-z_]+(?= = )", cell))
            assert written >= set(fields or {}), name
        assert logprobs.strip() == preset.logprobs, name
        dropped = set(preset.drop + preset.drop_off + preset.drop_on)
        assert all(f"`{key}`" in more for key in dropped | set(preset.keys)), name


def test_the_example_of_the_page_is_valid() -> None:
    """Its two tables name the same model, once without thinking and once with it."""
    (block,) = re.findall(r"```toml\n(.*?)```", PROVIDERS, flags=re.DOTALL)
    models = Config.read(tomllib.loads(block)).models
    assert {name: model.thinking for name, model in models.items()} == {"instant": "off", "thinking": "on"}


def test_the_switches_that_presets_drop_are_documented() -> None:
    """A caller's own switch for thinking is not sent, and the page says which those are."""
    assert all(f"`{name}`" in PROVIDERS for name in SWITCHES)


def test_explicit_keys_need_no_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the wire: fields dropped, renamed and raised, and the query after the path, also the one of the address."""
    monkeypatch.setenv("VERSION", "2024-10-21")
    keys = {
        "drop": ["user", "metadata.tag"],
        "rename": {"seed": "random_seed"},
        "query": {"api-version": "env:VERSION"},
        "token_limit": "max_completion_tokens",
        "least_max_tokens": 100,
        "stream_options": False,
    }
    with ScriptedServer(Reply("42")) as models:
        with RunningGateway(settings(f"{models.base_url}/?tenant=a", model=keys)) as gateway:
            more = {"user": "u", "metadata": {"tag": "t", "b": "c"}, "seed": 7, "max_tokens": 5, "stream": True}
            assert post(gateway.url, ASK | more).status == 200
            gateway.idle()
        assert len(models.requests) == 2
        for request in models.requests:
            assert request.path == "/v1/chat/completions?tenant=a&api-version=2024-10-21"
            assert request.body["metadata"] == {"b": "c"}
            assert (request.body["random_seed"], request.body["max_completion_tokens"]) == (7, 100)
            assert not {"user", "seed", "max_tokens", "stream_options"} & request.body.keys()


def test_deployments_share_the_preset_and_have_their_own_query() -> None:
    """One model on two servers: requests to both are made acceptable, and each address keeps its query."""
    server = vendor("azure")
    with ScriptedServer(server) as models:
        config = settings(models.base_url, model=preset_of("azure"))
        for model in config["models"].values():
            address, version = model.pop("base_url"), model.pop("query")
            model["deployments"] = [
                {"name": "down", "base_url": "http://127.0.0.1:9/v1", "query": {"api-version": "1"}},
                {"name": "up", "base_url": address, "query": version},
            ]
        with RunningGateway(config) as gateway:
            assert post(gateway.url, AGENT).status == 200
            gateway.idle()
            assert server.refusals == []
            assert server.thought == {"draft": False, "expert": True}
            assert gateway.status()["steps"] == 1


def test_an_unchanged_request_passes_untouched() -> None:
    """Without these keys a model gets every field of the caller, as before."""
    server = vendor("vllm")
    unknown = ASK | {"top_k": 5, "max_tokens": 3000, "no_such_field": {"a": [1]}}
    with Running(server) as (gateway, models):
        post(gateway.url, unknown)
        gateway.idle()
    for request in models.requests:
        assert {key: request.body[key] for key in unknown} == unknown | {"model": request.body["model"]}
