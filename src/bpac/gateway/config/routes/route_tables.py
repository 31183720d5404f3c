"""Routes as the configuration file has them: tables by name, whose models are defined elsewhere in the file."""

from collections.abc import Mapping
from typing import Any

from bpac.errors import SettingsError
from bpac.gateway.config.models.models import ModelSettings
from bpac.gateway.config.routes.losses import check_model, read_loss
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.config.toml_tables import as_table, read_table


def read_routes(values: object, models: Mapping[str, ModelSettings], path: str = "routes") -> dict[str, RouteSettings]:
    """All routes of a configuration file, by name."""
    routes = {
        name: _read_route(name, dict(as_table(table, f"{path}.{name}")), models, f"{path}.{name}")
        for name, table in as_table(values, path).items()
    }
    if not routes:
        raise SettingsError(f"{path}: there is no route; add a table [{path}.NAME]")
    return routes


def _read_route(name: str, table: dict[str, Any], models: Mapping[str, ModelSettings], path: str) -> RouteSettings:
    if "models" in table:
        table = _with_cascade(table, models, path)
    for key in ("draft", "expert"):
        check_model(table, key, path, models)
        table[key] = models[table[key]]
    judge = None
    if "loss" in table:
        table["loss"] = read_loss(table["loss"], f"{path}.loss", models)
        judge = models.get(table["loss"].get("judge"))
    return read_table(table, RouteSettings, path, name=name, judge=judge)


def _with_cascade(table: dict[str, Any], models: Mapping[str, ModelSettings], path: str) -> dict[str, Any]:
    """The table of a route that lists its models: the first is its draft and the last its expert."""
    for key in ("draft", "expert"):
        if key in table:
            raise SettingsError(f"{path}.{key}: models lists all models of the route, so leave {key} out")
    names = table["models"]
    if not isinstance(names, list) or len(names) < 2 or not all(isinstance(name, str) for name in names):
        raise SettingsError(f"{path}.models must list the names of at least two models, got {names!r}")
    for name in names:
        if name not in models:
            raise SettingsError(f"{path}.models: there is no model {name!r}; known: {', '.join(models)}")
    if len(set(names)) < len(names):
        raise SettingsError(f"{path}.models lists a model twice: {', '.join(names)}")
    found = {**table, "draft": names[0], "expert": names[-1]}
    # Two models are a pair, as draft and expert are.
    found["models"] = tuple(models[name] for name in names) if len(names) > 2 else ()
    return found
