"""docs/gateway.md is true: it lists every setting with its default, every metric and every response header."""

import inspect
import re
import tomllib
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bpac.gateway.auth.keys import KeySettings
from bpac.gateway.config.file import KEYS, Config
from bpac.gateway.config.limits import Limits
from bpac.gateway.config.models.models import ModelSettings
from bpac.gateway.config.routes.losses import LOSSES
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.http.openapi.openapi import document
from bpac.gateway.telemetry.metrics import game_metrics
from bpac.gateway.telemetry.metrics.counters import COUNTERS
from bpac.losses import ToolCallLoss
from bpac.models.client import ModelClient
from bpac.models.judging import Judge
from bpac.routing.router import Router
from bpac.scores import SCORES
from bpac.testing import Reply
from tests.gateway.configured import settings
from tests.gateway.raw import post
from tests.gateway.running import Running, pair

PAGE = (Path(__file__).parents[3] / "docs" / "gateway.md").read_text(encoding="utf-8")
REQUIRED = object()


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    section = PAGE.split(f"\n{heading}\n")[1]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table is not None
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def parsed(cell: str) -> Any:
    """A default as the page gives it: TOML in backticks, ``none`` or ``required``."""
    if cell in ("none", "required"):
        return None if cell == "none" else REQUIRED
    return tomllib.loads(f"value = {cell.strip('`')}")["value"]


def defaults(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The keys of a table with their defaults."""
    found = {}
    for field in msgspec.structs.fields(kind):
        value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        found[field.encode_name] = REQUIRED if value is msgspec.NODEFAULT else value
    return found


def gateway_defaults() -> dict[str, Any]:
    """The keys of ``[gateway]`` with their defaults."""
    return {key: value for key, value in {**defaults(Config), **defaults(Limits)}.items() if key in KEYS}


TABLES = {
    "### `[gateway]`": gateway_defaults(),
    "### `[[gateway.keys]]`": defaults(KeySettings),
    "### `[models.NAME]`": {key: value for key, value in defaults(ModelSettings).items() if key != "name"},
    "### `[routes.NAME]`": {
        key: value for key, value in defaults(RouteSettings).items() if key not in ("name", "judge")
    },
}


@pytest.mark.parametrize("heading", TABLES)
def test_documented_settings_and_defaults_are_those_of_the_code(heading: str) -> None:
    """Every key of a table is on the page, no other is, and its default is right."""
    documented = {key.strip("`"): parsed(default) for key, default, _ in rows(heading)}
    for key, value in TABLES[heading].items():
        default = value["name"] if key == "loss" else list(value) if isinstance(value, tuple) else value
        assert documented[key] == default, key
    assert documented.keys() == TABLES[heading].keys()


def test_documented_scores_and_defaults_are_those_of_the_code() -> None:
    """Every score is on the page, with all settings that a configuration file can give."""
    documented: dict[str, dict[str, Any]] = {}
    name = ""
    for score, setting, default, _ in rows("### Scores"):
        name = score.strip("`") or name
        documented.setdefault(name, {})
        if setting:
            documented[name][setting.strip("`")] = parsed(default)
    coded = {
        name: {field.name: field.default for field in dataclass_fields(kind) if isinstance(field.default, int | str)}  # type: ignore[arg-type]
        for name, kind in SCORES.items()
    }
    assert documented == coded


def test_documented_losses_and_defaults_are_those_of_the_code() -> None:
    """Every loss is on the page, with all settings; graders hold the defaults."""
    documented: dict[str, dict[str, Any]] = {}
    name = ""
    for loss, setting, default, _ in rows("### Losses"):
        name = loss.strip("`") or name
        documented.setdefault(name, {})
        if setting:
            documented[name][setting.strip("`")] = parsed(default)
    assert {name: set(found) for name, found in documented.items()} == {
        name: set(kind.__struct_fields__) for name, kind in LOSSES.items()
    }
    not_configured = {"client", "new_code"}
    judge = {field.name: field.default for field in dataclass_fields(Judge) if field.name not in not_configured}
    assert documented["judge"] == {"judge": REQUIRED, **judge}
    assert documented["tool_call"]["ordered"] is inspect.signature(ToolCallLoss).parameters["ordered"].default
    assert documented["answer"]["equal"] == "final"


def test_defaults_of_the_configuration_are_those_of_the_library() -> None:
    """A route without settings is a router without arguments, and a model is a client without arguments."""
    router = {name: one.default for name, one in inspect.signature(Router).parameters.items()}
    for name in ("alpha", "policy", "memory", "assume", "explore", "alpha_epochs", "max_owed"):
        assert defaults(RouteSettings)[name] == router[name], name
    client = {name: one.default for name, one in inspect.signature(ModelClient).parameters.items()}
    for name in ("api_key", "timeout", "retries", "backoff"):
        assert defaults(ModelSettings)[name] == client[name], name


def test_every_metric_is_documented_with_its_labels() -> None:
    """Those of a gateway that has served requests, and every counter that it may have."""
    documented: dict[str, set[str]] = {}
    for names, labels, _ in rows("### Metrics"):
        documented |= {name.strip(" `"): set(labels.split(", ")) - {""} for name in names.split(",")}
    assert documented.keys() >= {*game_metrics.GAMES, *COUNTERS}
    with Running(pair(Reply("41"), Reply("42")), model={"price": 1.0}) as (gateway, _):
        for more in ({}, {"n": 2}, {"metadata": {"a": "b"}}):
            post(gateway.url, {"model": "homework", "messages": [{"role": "user", "content": "?"}], **more})
        gateway.idle()
        page = post(gateway.url, b"", "/metrics", method="GET").body.decode()
    for name, labels in re.findall(r"^(bpac_\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? ", page, re.MULTILINE):
        assert documented[name] == set(re.findall(r"(\w+)=\"", labels)) - {"le"}, name


def test_every_response_header_is_documented() -> None:
    """The page lists the headers of the OpenAPI document, and no others."""
    operations = [one for methods in document(["homework"])["paths"].values() for one in methods.values()]
    headers = {name for one in operations for name in one["responses"]["200"].get("headers", {})}
    assert {name.strip("`") for name, _ in rows("### Response headers")} == headers


def test_the_example_configurations_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each TOML block of the page is a configuration, together with models and routes where it has none."""
    for name in ("THINKING_KEY", "BPAC_KEY", "BPAC_OPERATOR_KEY"):
        monkeypatch.setenv(name, f"value of {name}")
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        Config.read({**settings("http://127.0.0.1:9/v1"), **tomllib.loads(block)})
