"""The configuration file: every key is known, or an error names the path of the mistake, the value and the remedy."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from bpac.errors import SettingsError
from bpac.gateway.auth.keys import Role
from bpac.gateway.config.file import Config, load_config
from tests.gateway.configured import settings
from tests.gateway.serving import to_toml

KEY = {"name": "a", "key": "k", "roles": ["call"]}
EXAMPLE = """
[gateway]
listen = "127.0.0.1:8800"
store = "sqlite:///bpac.db"
api_keys = ["env:BPAC_KEY"]

[models.instruct]
base_url = "http://127.0.0.1:8001/v1"
model = "Qwen/Qwen3-4B-Instruct-2507"
price = 0.1

[models.thinking]
base_url = "http://127.0.0.1:8002/v1/"
model = "Qwen/Qwen3-4B-Thinking-2507"
api_key = "env:THINKING_KEY"
headers = { x-team = "env:THINKING_KEY" }
timeout = 60
retries = 1
body = { chat_template_kwargs = { enable_thinking = true } }

[routes.homework]
draft = "instruct"
expert = "thinking"
epsilon = 0.05
alpha = 0.1
score = { name = "entropy", top = 5, first_tokens = 16 }
loss = { name = "judge", judge = "thinking", votes = 2 }
explore = "shadow"
segment_by = "header:x-tenant"
memory = "latched"
"""


def test_a_file_is_read_without_showing_its_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys come from the environment; a route has the settings of its table, and printing them shows no secret."""
    monkeypatch.setenv("BPAC_KEY", "secret-one")
    monkeypatch.setenv("THINKING_KEY", "secret-two")
    (tmp_path / "gateway.toml").write_text(EXAMPLE)
    config = load_config(tmp_path / "gateway.toml")
    route = config.routes["homework"]
    assert (config.host, config.port, config.api_keys) == ("127.0.0.1", 8800, ("secret-one",))
    assert (route.expert.api_key, route.expert.headers) == ("secret-two", {"x-team": "secret-two"})
    assert (route.expert.base_url, route.expert.timeout) == ("http://127.0.0.1:8002/v1", 60.0)
    assert (route.first_tokens, route.explore, route.judge) == (16, "shadow", route.expert)
    assert "secret" not in repr(config)
    assert "secret" not in route.terms(route.new_router())


def test_reading_a_store_needs_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that only read the store work without the keys in the environment; serving does not."""
    monkeypatch.delenv("BPAC_KEY", raising=False)
    monkeypatch.delenv("THINKING_KEY", raising=False)
    (tmp_path / "gateway.toml").write_text(EXAMPLE)
    assert load_config(tmp_path / "gateway.toml", secrets=False).store == "sqlite:///bpac.db"
    with pytest.raises(SettingsError, match="that environment variable is not set"):
        load_config(tmp_path / "gateway.toml")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("gateway.colour", "red", "gateway.colour: unknown key; known keys: api_keys, archive, body_timeout, "),
        ("gateway.max_bodies", 1, "gateway.max_bodies: unknown key, did you mean max_body"),
        ("colour", {}, "colour: unknown key; known keys: gateway, models, routes"),
        ("route", {}, "route: unknown key, did you mean routes"),
        ("models.small.colour", "red", "models.small.colour: unknown key; known keys: api, api_key, backoff, balance"),
        ("models.small.name", "red", "models.small.name: unknown key"),
        ("routes.homework.colour", "red", "routes.homework.colour: unknown key"),
        ("routes.homework.name", "red", "routes.homework.name: unknown key"),
        ("routes.homework.judge", "small", "routes.homework.judge: unknown key"),
        ("routes.homework.epsilom", 0.1, "routes.homework.epsilom: unknown key, did you mean epsilon"),
        ("routes.homework.score", {"name": "entropy", "tops": 5}, r"routes.homework.score: .* no setting 'tops'"),
        ("routes.homework.score", "colour", "routes.homework.score: score must be one of .*; got 'colour'"),
        ("routes.homework.score", {"name": "verbalized", "first_tokens": 3}, "first_tokens does not fit"),
        ("routes.homework.score", 3, "routes.homework.score: expected a string or a table, got 3"),
        ("routes.homework.loss", "colour", "routes.homework.loss: name must be one of answer, .*; got 'colour'"),
        ("routes.homework.loss", 3, "routes.homework.loss: expected a table, got 3"),
        ("routes.homework.loss", {"name": "answer", "colour": 1}, "routes.homework.loss.colour: unknown key; .* equal"),
        (
            "routes.homework.loss",
            {"name": "answer", "equal": "colour"},
            "routes.homework.loss.equal: expected one of final, mathematics, text; got 'colour'",
        ),
        (
            "routes.homework.loss",
            {"name": "judge", "judge": "nobody"},
            "routes.homework.loss.judge: there is no model 'nobody'; the models are small, large",
        ),
        ("routes.homework.loss", "judge", "routes.homework.loss.judge is missing: .* one of small, large"),
        (
            "routes.homework.loss",
            {"name": "judge", "judge": "small", "votes": 0},
            "routes.homework.loss.votes: expected an integer >= 1, got 0",
        ),
        (
            "routes.homework.loss",
            {"name": "judge", "judge": "small", "votes": "3"},
            "routes.homework.loss.votes: expected an integer, got '3'",
        ),
        (
            "routes.homework.loss",
            {"name": "judge", "judge": "small", "timeout": -1},
            "routes.homework.loss.timeout: expected a number > 0.0, got -1",
        ),
        (
            "routes.homework.loss",
            {"name": "tool_call", "ordered": "no"},
            "routes.homework.loss.ordered: expected true or false, got 'no'",
        ),
        (
            "routes.homework.loss",
            {"name": "embedding", "top": 1},
            "routes.homework.loss.top: unknown key; known keys: none",
        ),
        ("routes.homework.epsilon", 0, "routes.homework.epsilon must lie strictly between 0 and 1, got 0"),
        ("routes.homework.epsilon", "much", "routes.homework.epsilon: expected a number, got 'much'"),
        ("routes.homework.epsilon", True, "routes.homework.epsilon: expected a number, got True"),
        ("routes.homework.alpha", 1.5, "routes.homework.alpha must lie strictly between 0 and 1, got 1.5"),
        (
            "routes.homework.draft",
            "nobody",
            "routes.homework.draft: there is no model 'nobody'; the models are small, large",
        ),
        ("routes.homework.draft", ["small"], "routes.homework.draft: there is no model"),
        ("routes.homework.policy", "best", "routes.homework.policy must be one of .*; got 'best'"),
        ("routes.homework.memory", "short", "routes.homework.memory must be one of .*; got 'short'"),
        ("routes.homework.explore", "never", "routes.homework.explore: expected one of serve, shadow; got 'never'"),
        ("routes.homework.segment_by", "moon", "routes.homework.segment_by must be header:NAME.* got 'moon'"),
        ("routes.homework.segment_by", "username", "routes.homework.segment_by must be header:NAME"),
        ("routes.homework.segment_by", "header:", "routes.homework.segment_by must be header:NAME"),
        ("routes.homework.segment_by", "metadata:", "routes.homework.segment_by must be header:NAME"),
        ("routes.homework.segment_by", "", "routes.homework.segment_by must be header:NAME"),
        ("routes.homework.deadline", 0, "routes.homework.deadline: expected a number > 0.0, got 0"),
        ("routes.homework.deadline", math.inf, "routes.homework.deadline: expected a number <= .*, got inf"),
        ("routes.homework.deadline", math.nan, "routes.homework.deadline: expected a number > 0.0, got nan"),
        ("routes.homework.draft_deadline", 0, "routes.homework.draft_deadline: expected a number > 0.0, got 0"),
        ("routes.homework.alpha_epochs", "none", "routes.homework.alpha_epochs: expected one of all, each; got 'none'"),
        ("models.small.base_url", "ftp://x", "models.small.base_url: .* must start with http"),
        ("models.small.base_url", "http://", "models.small.base_url: .* no address"),
        ("models.small.base_url", "http://host:99999/v1", "models.small.base_url: .* no address"),
        ("models.small.model", " ", "models.small.model must not be empty"),
        ("routes.homework.policy", "oracle", "routes.homework.policy: the oracle"),
        ("routes.homework.segment_by", "header:bad name", "routes.homework.segment_by must be header:NAME"),
        ("models.small.api_key", "env:NO_SUCH_NAME", "models.small.api_key: .* env:NO_SUCH_NAME, but"),
        ("models.small.headers", {"x": 1}, "models.small.headers: header x: expected a string, got 1"),
        ("models.small.headers", {"x y": "1"}, "models.small.headers: header x y cannot be added"),
        ("models.small.headers", {"Content-Length": "1"}, "headers: header Content-Length cannot be added"),
        ("models.small.headers", {"x": "1\r\ny: 2"}, "models.small.headers: header x: .* line break"),
        ("models.small.headers", "x", "models.small.headers: expected a table, got 'x'"),
        ("models.small.api_key", "1\n2", "models.small.api_key: .* line break"),
        ("models.small.timeout", -1, "models.small.timeout: expected a number > 0.0, got -1"),
        ("models.small.retries", 1.5, "models.small.retries: expected an integer, got 1.5"),
        ("models.small.price", -1, "models.small.price: expected a number >= 0.0, or a table .* got -1"),
        ("models.small.price", "free", "models.small.price: expected a number >= 0.0, or a table .* got 'free'"),
        ("models.small.price", True, "models.small.price: expected a number >= 0.0, or a table .* got True"),
        ("models.small.price", {"output": 1}, "models.small.price: input is missing: give the price of a million"),
        ("models.small.price", {"input": 1}, "models.small.price: output is missing: give the price of a million"),
        ("models.small.price", {"input": -1, "output": 1}, "small.price: expected input to be a number >= 0.0, got -1"),
        ("models.small.price", {"in": 1}, "models.small.price: unknown key 'in'; known keys: input, cached_input, out"),
        (
            "models.small.price",
            {"input": 1, "cached_input": 2, "output": 1},
            "models.small.price: cached_input must not be larger than input",
        ),
        ("routes.homework.minimise", "time", "routes.homework.minimise: expected one of calls, money; got 'time'"),
        ("routes.homework.minimise", "money", "minimise: money needs the prices of models.small: give price = "),
        ("gateway.currency", 1, "gateway.currency: expected a string, got 1"),
        ("models.small", "text", "models.small: expected a table, got 'text'"),
        ("gateway.listen", "8800", "gateway.listen must be HOST:PORT, got '8800'"),
        ("gateway.listen", "127.0.0.1:99999", "gateway.listen must be HOST:PORT"),
        ("gateway.listen", "0.0.0.0:8800", "gateway.api_keys: a gateway without keys .* 0.0.0.0: add keys, or listen"),
        ("gateway.listen", "example.org:8800", "gateway.api_keys: a gateway without keys .* example.org: add keys"),
        ("gateway.api_keys", [1], r"gateway.api_keys\[0\]: expected a string, got 1"),
        ("gateway.api_keys", ["one", ""], r"gateway.api_keys\[1\]: the key must not be empty"),
        ("gateway.api_keys", "one", "gateway.api_keys: expected a list, got 'one'"),
        ("gateway.max_in_flight", 0, "gateway.max_in_flight: expected an integer >= 1, got 0"),
        ("gateway.max_head", 10, "gateway.max_head: expected an integer >= 1024, got 10"),
        ("gateway.max_headers", 1, "gateway.max_headers: expected an integer >= 10, got 1"),
        ("gateway.head_timeout", 0, "gateway.head_timeout: expected a number > 0.0, got 0"),
        ("gateway.max_depth", 501, "gateway.max_depth: expected an integer <= 500, got 501"),
        ("gateway.max_answer", "much", "gateway.max_answer: expected an integer, got 'much'"),
        ("gateway.keys", "one", "gateway.keys: expected a list, got 'one'"),
        ("gateway.keys", [1], r"gateway.keys\[0\]: expected a table, got 1"),
        ("gateway.keys", [KEY | {"colour": "red"}], r"gateway.keys\[0\].colour: unknown key"),
        ("gateway.keys", [{"name": "a", "key": "k"}], r"gateway.keys\[0\].roles is missing"),
        ("gateway.keys", [KEY | {"name": "a b"}], r"gateway.keys\[0\].name must be 1 to 64 letters.* got 'a b'"),
        ("gateway.keys", [KEY | {"name": "#a"}], r"gateway.keys\[0\].name must be 1 to 64 letters"),
        ("gateway.keys", [KEY | {"key": " "}], r"gateway.keys\[0\].key: the key must not be empty"),
        ("gateway.keys", [KEY | {"key": "env:NO_SUCH_NAME"}], r"gateway.keys\[0\].key: .* env:NO_SUCH_NAME, but"),
        ("gateway.keys", [KEY | {"roles": []}], r"gateway.keys\[0\].roles is empty.* call, feedback, operator"),
        (
            "gateway.keys",
            [KEY | {"roles": ["call", "root"]}],
            r"gateway.keys\[0\].roles\[1\]: expected one of call, feedback, operator; got 'root'",
        ),
        ("gateway.keys", [KEY | {"roles": [["call"]]}], r"gateway.keys\[0\].roles\[0\]: expected one of call, "),
        ("gateway.keys", [KEY, KEY | {"name": "b"}], r"gateway.keys\[1\].key is also the key of a: list each key once"),
        ("routes", {}, r"routes: there is no route; add a table \[routes.NAME\]"),
    ],
)
def test_an_error_names_the_path_the_value_and_the_remedy(path: str, value: Any, message: str) -> None:
    """Each mistake is rejected with a message that an operator can act on."""
    data = settings("http://127.0.0.1:1/v1")
    *tables, key = path.split(".")
    table = data
    for name in tables:
        table = table[name]
    table[key] = value
    with pytest.raises(SettingsError, match=message):
        Config.read(data)


@pytest.mark.parametrize(
    "path",
    ["models.small.base_url", "models.small.model", "routes.homework.draft", "routes.homework.epsilon", "models"],
)
def test_keys_without_a_default_are_required(path: str) -> None:
    """A missing one is named with its path."""
    data = settings("http://127.0.0.1:1/v1")
    *tables, key = path.split(".")
    table = data
    for name in tables:
        table = table[name]
    del table[key]
    with pytest.raises(SettingsError, match=f"{path} is missing"):
        Config.read(data)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Be it missing, not TOML, or with a mistake in it."""
    with pytest.raises(SettingsError, match=r"missing.toml: cannot be read"):
        load_config(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("[gateway\n")
    with pytest.raises(SettingsError, match=r"bad.toml: not TOML"):
        load_config(tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_text(to_toml(settings("http://127.0.0.1:1/v1", colour="red")))
    with pytest.raises(SettingsError, match=r"bad.toml: routes.homework.colour"):
        load_config(tmp_path / "bad.toml")


def test_named_keys_have_roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their values come from the environment, and are not needed by commands that only read the store."""
    data = to_toml(settings("http://x/v1", gateway={"listen": "0.0.0.0:1"}))
    data += "".join(
        f'[[gateway.keys]]\nname = "team"\nkey = "env:KEY_{number}"\nroles = ["call", "operator"]\n'
        for number in range(2)
    )
    (tmp_path / "gateway.toml").write_text(data)
    assert len(load_config(tmp_path / "gateway.toml", secrets=False).keys) == 2
    with pytest.raises(SettingsError, match=r"keys\[0\].key: .* env:KEY_0, but"):
        load_config(tmp_path / "gateway.toml")
    monkeypatch.setenv("KEY_0", "first")
    monkeypatch.setenv("KEY_1", "second")
    config = load_config(tmp_path / "gateway.toml")
    assert [(key.name, key.key) for key in config.keys] == [("team", "first"), ("team", "second")]
    assert (config.open, config.granted(Role.OPERATOR), config.granted(Role.FEEDBACK)) == (False, True, False)


def test_a_gateway_without_keys_listens_on_loopback_only() -> None:
    """With keys it may listen on any address."""
    for listen in ("127.0.0.1:1", "localhost:1", "[::1]:1", "127.8.8.8:1"):
        assert not Config.read(settings("http://x/v1", gateway={"listen": listen})).api_keys
    assert Config.read(settings("http://x/v1", gateway={"listen": "0.0.0.0:1", "api_keys": ["k"]})).host == "0.0.0.0"


def test_another_choice_of_alpha_epochs_begins_another_game() -> None:
    """Alpha is for all epochs together by default; the choice is a part of the terms of a game."""
    each = {"alpha_epochs": "each"}
    routes = [Config.read(settings("http://127.0.0.1:9/v1", **more)).routes["homework"] for more in ({}, each)]
    routers = [route.new_router() for route in routes]
    assert [router.settings.alpha_epochs for router in routers] == ["all", "each"]
    assert routes[0].terms(routers[0]) != routes[1].terms(routers[1])


def test_a_table_without_a_name_has_the_default_name() -> None:
    """A table of settings for the default score or loss need not name it; the dashboard shows the name."""
    data = settings("http://127.0.0.1:9/v1", score={"first_tokens": 4}, loss={"equal": "text"})
    route = Config.read(data).routes["homework"]
    assert (route.score_name, route.first_tokens) == ("mean_token_probability", 4)
    assert route.loss == {"name": "answer", "equal": "text"}
    assert json.loads(route.terms(route.new_router()))["score"] == {"first_tokens": 4}, (
        "as written: or the game changes"
    )


def test_the_terms_of_a_game_are_those_of_earlier_versions() -> None:
    """A gateway that is updated goes on with its games: their terms are compared as text."""
    route = Config.read(settings("http://127.0.0.1:9/v1", loss={"name": "judge", "judge": "large", "votes": 1}))
    terms = json.loads(route.routes["homework"].terms(route.routes["homework"].new_router()))
    del terms["router"], terms["verdicts"]
    assert terms == {
        "draft": ["draft", {}],
        "expert": ["expert", {}],
        "judge": ["expert", {}],
        "score": "mean_token_probability",
        "loss": {"name": "judge", "judge": "large", "votes": 1},
    }


def test_values_cannot_be_changed() -> None:
    """A configuration is frozen, with all that is in it."""
    config = Config.read(settings("http://127.0.0.1:9/v1"))
    for value, name in ((config, "drain"), (config.limits, "max_body"), (config.routes["homework"], "alpha")):
        with pytest.raises(AttributeError):
            setattr(value, name, 1)
