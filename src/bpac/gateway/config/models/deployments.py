"""Several deployments of a model: the tables ``[[models.NAME.deployments]]``."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bpac.errors import SettingsError
from bpac.gateway.config.toml_tables import as_table, check_keys

# What a deployment may have of its own. All else is the model's: what a draft costs and how it answers must not depend
# on the server that happens to generate it.
KEYS = ("name", "base_url", "model", "api_key", "headers", "query", "timeout")
# What can be sent as the value of a header.
_NAME = re.compile(r"[!-~]+")

Table = Mapping[str, Any]


class Deployment(NamedTuple):
    """One of several servers of a model.

    Parameters
    ----------
    name: its name.
    settings: the ``ModelSettings`` of requests to it.
    """

    name: str
    settings: Any


def read_deployments(
    table: object, path: str, read: Callable[[Table, str], Any]
) -> tuple[Table, tuple[Deployment, ...]]:
    """The table of a model without its deployments, and the deployments.

    Parameters
    ----------
    table: the table.
    path: where it is in the file, for error messages.
    read: reads a table as the settings of a model on one server.
    """
    values = as_table(table, path)
    if "deployments" not in values:
        return values, ()
    common = {key: value for key, value in values.items() if key != "deployments"}
    listed = values["deployments"]
    if not isinstance(listed, list | tuple) or not listed:
        raise SettingsError(f"{path}.deployments: expected tables [[{path}.deployments]], got {listed!r}")
    if "base_url" in common:
        raise SettingsError(f"{path}.base_url: each of the deployments has its own, so remove this one")
    found: dict[str, Any] = {}
    for number, item in enumerate(listed):
        where = f"{path}.deployments[{number}]"
        own = dict(as_table(item, where))
        check_keys(own, KEYS, where)
        name = own.pop("name", None)
        # Each is tried once before any of them is tried again.
        settings = read({**common, **own, "retries": 0}, where)
        name = _host(settings.base_url) if name is None else name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SettingsError(f"{where}.name must be letters, digits and marks without spaces, got {name!r}")
        if name in found:
            raise SettingsError(f"{where}.name: two deployments are called {name}: give each a name of its own")
        found[name] = settings
    first = next(iter(found.values()))
    return {**common, "base_url": str(first.base_url)}, tuple(Deployment(*one) for one in found.items())


def _host(base_url: str) -> str:
    return urlsplit(base_url).netloc.rpartition("@")[2]
