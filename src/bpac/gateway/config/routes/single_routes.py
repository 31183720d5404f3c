"""Settings of a route with one model: a table ``[routes.NAME]`` with an expert and no draft."""

from collections.abc import Mapping
from typing import Any

from bpac.gateway.config.models.models import ModelSettings
from bpac.gateway.config.routes.losses import check_model
from bpac.gateway.config.toml_tables import ConfigTable, Seconds, as_table, read_table


class SingleRouteSettings(ConfigTable, frozen=True):
    """A route whose requests one model answers: nothing is decided, so there is no game and no promise.

    Parameters
    ----------
    name: the name of the table, which clients send as ``model``.
    expert: the model.
    deadline: seconds after which a stream that has not ended is given up.
    """

    name: str
    expert: ModelSettings
    deadline: Seconds = 3600.0


def separated(values: object, path: str = "routes") -> tuple[dict[str, Any], dict[str, Any]]:
    """The tables of routes that decide, and those of routes with one model.

    A table with any other key is one that decides: a forgotten draft must not end the promise silently.

    >>> separated({"a": {"expert": "large"}, "b": {"expert": "large", "epsilon": 0.1}})
    ({'b': {'expert': 'large', 'epsilon': 0.1}}, {'a': {'expert': 'large'}})
    """
    tables = as_table(values, path)
    known = set(SingleRouteSettings.__struct_fields__)
    single = {
        name for name, table in tables.items() if isinstance(table, Mapping) and "expert" in table.keys() <= known
    }
    return (
        {name: table for name, table in tables.items() if name not in single},
        {name: table for name, table in tables.items() if name in single},
    )


def read_single_routes(
    tables: Mapping[str, Any], models: Mapping[str, ModelSettings], path: str = "routes"
) -> dict[str, SingleRouteSettings]:
    """The routes with one model, by name."""
    routes = {}
    for name, table in tables.items():
        check_model(table, "expert", f"{path}.{name}", models)
        values = {**table, "expert": models[table["expert"]]}
        routes[name] = read_table(values, SingleRouteSettings, f"{path}.{name}", name=name)
    return routes
