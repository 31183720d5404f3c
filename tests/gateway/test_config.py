"""The configuration file: all of it is understood, or refused with the path of the mistake."""

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


def test_a_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys come from the environment; a route has what was written, and nothing secret is shown."""
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


def test_who_only_looks_needs_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store can be looked into where the keys are not known; to serve, they must be."""
    monkeypatch.delenv("BPAC_KEY", raising=False)
    monkeypatch.delenv("THINKING_KEY", raising=False)
    (tmp_path / "gateway.toml").write_text(EXAMPLE)
    assert load_config(tmp_path / "gateway.toml", secrets=False).store == "sqlite:///bpac.db"
    with pytest.raises(SettingsError, match="that environment variable is not set"):
        load_config(tmp_path / "gateway.toml")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("gateway.colour", "red", "gateway.colour: unknown key"),
        ("colour", {}, "colour: unknown key; known here: gateway, models, routes"),
        ("models.small.colour", "red", "models.small.colour: unknown key"),
        ("routes.homework.colour", "red", "routes.homework.colour: unknown key"),
        ("routes.homework.score", {"name": "entropy", "tops": 5}, r"routes.homework.score: .* no setting 'tops'"),
        ("routes.homework.score", "colour", "routes.homework.score: score must be one of"),
        ("routes.homework.score", {"name": "verbalized", "first_tokens": 3}, "first_tokens does not fit"),
        ("routes.homework.loss", "colour", "routes.homework.loss: name must be one of"),
        ("routes.homework.loss", {"name": "answer", "colour": 1}, "routes.homework.loss: .* no setting 'colour'"),
        ("routes.homework.loss", {"name": "answer", "equal": "colour"}, "routes.homework.loss: equal must be one of"),
        ("routes.homework.loss", {"name": "judge", "judge": "nobody"}, "judge must be the name of a model"),
        ("routes.homework.loss", "judge", "judge must be the name of a model"),
        ("routes.homework.loss", {"name": "judge", "judge": "small", "votes": 0}, "routes.homework.loss: votes"),
        ("routes.homework.loss", {"name": "judge", "judge": "small", "votes": "3"}, "routes.homework.loss: votes"),
        ("routes.homework.loss", {"name": "judge", "judge": "small", "timeout": -1}, "routes.homework.loss: timeout"),
        ("routes.homework.loss", {"name": "tool_call", "ordered": "no"}, "loss: ordered must be true or false"),
        ("routes.homework.loss", {"name": "embedding", "top": 1}, "no setting 'top'; it has none"),
        ("routes.homework.epsilon", 0, "routes.homework: epsilon must lie strictly between 0 and 1"),
        ("routes.homework.epsilon", "much", "routes.homework.epsilon must be a number, got 'much'"),
        ("routes.homework.alpha", 1.5, "routes.homework: alpha"),
        (
            "routes.homework.draft",
            "nobody",
            "routes.homework.draft: there is no model 'nobody'; there are small, large",
        ),
        ("routes.homework.policy", "best", "routes.homework: policy must be one of"),
        ("routes.homework.memory", "short", "routes.homework: memory must be one of"),
        ("routes.homework.explore", "never", "routes.homework.explore must be one of serve, shadow"),
        ("routes.homework.segment_by", "moon", "routes.homework.segment_by must be header:NAME"),
        ("routes.homework.segment_by", "username", "routes.homework.segment_by must be header:NAME"),
        ("routes.homework.segment_by", "header:", "routes.homework.segment_by must be header:NAME"),
        ("routes.homework.segment_by", "", "routes.homework.segment_by must be header:NAME"),
        ("routes.homework.deadline", 0, "routes.homework.deadline must be a finite number above 0"),
        ("routes.homework.draft_deadline", 0, "routes.homework.draft_deadline must be a finite number above 0"),
        ("routes.homework.alpha_epochs", "none", "routes.homework.alpha_epochs must be one of all, each"),
        ("models.small.base_url", "ftp://x", "models.small.base_url must start with http"),
        ("models.small.base_url", "http://", "models.small.base_url is no address"),
        ("models.small.base_url", "http://host:99999/v1", "models.small.base_url is no address"),
        ("models.small.model", " ", "models.small.model must not be empty"),
        ("routes.homework.policy", "oracle", "routes.homework.policy: the oracle"),
        ("routes.homework.segment_by", "header:bad name", "routes.homework.segment_by must be header:NAME"),
        ("models.small.api_key", "env:NO_SUCH_NAME", "models.small.api_key is env:NO_SUCH_NAME, but"),
        ("models.small.headers", {"x": 1}, "models.small.headers.x must be a text"),
        ("models.small.headers", {"x y": "1"}, "models.small.headers.x y is no header that can be added"),
        ("models.small.headers", {"Content-Length": "1"}, "headers.Content-Length is no header that can be added"),
        ("models.small.headers", {"x": "1\r\ny: 2"}, "models.small.headers.x has a line break in it"),
        ("models.small.api_key", "1\n2", "models.small.api_key has a line break in it"),
        ("models.small.timeout", -1, "models.small.timeout"),
        ("models.small.retries", 1.5, "models.small.retries must be a whole number"),
        ("models.small.price", -1, "models.small.price must be"),
        ("models.small", "text", "models.small must be a table"),
        ("gateway.listen", "8800", "gateway.listen must be HOST:PORT"),
        ("gateway.listen", "127.0.0.1:99999", "gateway.listen must be HOST:PORT"),
        ("gateway.listen", "0.0.0.0:8800", "gateway.api_keys: a gateway without keys is open to all"),
        ("gateway.listen", "example.org:8800", "gateway.api_keys: a gateway without keys is open to all"),
        ("gateway.api_keys", [1], r"gateway.api_keys\[0\] must be a text"),
        ("gateway.api_keys", [""], r"gateway.api_keys\[0\] must be a text"),
        ("gateway.max_in_flight", 0, "gateway.max_in_flight must be at least 1"),
        ("gateway.max_head", 10, "gateway.max_head must be at least 1024"),
        ("gateway.max_headers", 1, "gateway.max_headers must be at least 10"),
        ("gateway.head_timeout", 0, "gateway.head_timeout must be a finite number above 0"),
        ("gateway.max_depth", 501, "gateway.max_depth must be at least 1 and at most 500"),
        ("gateway.max_answer", "much", "gateway.max_answer must be a whole number"),
        ("gateway.keys", [1], r"gateway.keys\[0\] must be a table"),
        ("gateway.keys", [KEY | {"colour": "red"}], r"gateway.keys\[0\].colour: unknown key"),
        ("gateway.keys", [{"name": "a", "key": "k"}], r"gateway.keys\[0\].roles is missing"),
        ("gateway.keys", [KEY | {"name": "a b"}], r"gateway.keys\[0\].name must be 1 to 64 letters"),
        ("gateway.keys", [KEY | {"name": "#a"}], r"gateway.keys\[0\].name must be 1 to 64 letters"),
        ("gateway.keys", [KEY | {"key": " "}], r"gateway.keys\[0\].key must not be empty"),
        ("gateway.keys", [KEY | {"key": "env:NO_SUCH_NAME"}], r"gateway.keys\[0\].key is env:NO_SUCH_NAME, but"),
        ("gateway.keys", [KEY | {"roles": []}], r"gateway.keys\[0\].roles is empty"),
        (
            "gateway.keys",
            [KEY | {"roles": ["root"]}],
            r"gateway.keys\[0\].roles must be some of call, feedback, operator",
        ),
        ("gateway.keys", [KEY | {"roles": [["call"]]}], r"gateway.keys\[0\].roles must be some of"),
        ("gateway.keys", [KEY, KEY | {"name": "b"}], r"gateway.keys\[1\].key is also that of a: list each key once"),
        ("routes", {}, "routes: there is none"),
    ],
)
def test_mistakes(path: str, value: Any, said: str) -> None:
    """Each is refused, and its path is named."""
    data = settings("http://127.0.0.1:1/v1")
    *tables, key = path.split(".")
    table = data
    for name in tables:
        table = table[name]
    table[key] = value
    with pytest.raises(SettingsError, match=said):
        Config.read(data)


@pytest.mark.parametrize("path", ["models.small.base_url", "models.small.model", "routes.homework.epsilon", "models"])
def test_what_must_be_there(path: str) -> None:
    """Nothing is guessed that cannot be."""
    data = settings("http://127.0.0.1:1/v1")
    *tables, key = path.split(".")
    table = data
    for name in tables:
        table = table[name]
    del table[key]
    with pytest.raises(SettingsError, match=f"{path} is missing"):
        Config.read(data)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, one that is no TOML, and one with a mistake are named."""
    with pytest.raises(SettingsError, match=r"missing.toml: cannot be read"):
        load_config(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("[gateway\n")
    with pytest.raises(SettingsError, match=r"bad.toml: not TOML"):
        load_config(tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_text(to_toml(settings("http://127.0.0.1:1/v1", colour="red")))
    with pytest.raises(SettingsError, match=r"bad.toml: routes.homework.colour"):
        load_config(tmp_path / "bad.toml")


def test_keys_with_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a name and roles; who only looks into the store needs none of them in the environment."""
    data = to_toml(settings("http://x/v1", gateway={"listen": "0.0.0.0:1"}))
    data += "".join(
        f'[[gateway.keys]]\nname = "team"\nkey = "env:KEY_{number}"\nroles = ["call", "operator"]\n'
        for number in range(2)
    )
    (tmp_path / "gateway.toml").write_text(data)
    assert len(load_config(tmp_path / "gateway.toml", secrets=False).keys) == 2
    with pytest.raises(SettingsError, match=r"keys\[0\].key is env:KEY_0, but"):
        load_config(tmp_path / "gateway.toml")
    monkeypatch.setenv("KEY_0", "first")
    monkeypatch.setenv("KEY_1", "second")
    config = load_config(tmp_path / "gateway.toml")
    assert [(key.name, key.key) for key in config.keys] == [("team", "first"), ("team", "second")]
    assert (config.open, config.granted(Role.OPERATOR), config.granted(Role.FEEDBACK)) == (False, True, False)


def test_open_on_loopback_only() -> None:
    """Without keys only addresses of this machine will do; with keys any."""
    for listen in ("127.0.0.1:1", "localhost:1", "[::1]:1", "127.8.8.8:1"):
        assert not Config.read(settings("http://x/v1", gateway={"listen": listen})).api_keys
    assert Config.read(settings("http://x/v1", gateway={"listen": "0.0.0.0:1", "api_keys": ["k"]})).host == "0.0.0.0"


def test_one_alpha_for_all_epochs_or_one_for_each() -> None:
    """The promise of a route is over all epochs unless the operator says otherwise; another choice is another game."""
    each = {"alpha_epochs": "each"}
    routes = [Config.read(settings("http://127.0.0.1:9/v1", **more)).routes["homework"] for more in ({}, each)]
    routers = [route.new_router() for route in routes]
    assert [router.settings.alpha_epochs for router in routers] == ["all", "each"]
    assert routes[0].terms(routers[0]) != routes[1].terms(routers[1])
