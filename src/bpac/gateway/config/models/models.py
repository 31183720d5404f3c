"""Settings of a model: the table ``[models.NAME]``."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, field
from msgspec.structs import replace

from bpac.errors import SettingsError
from bpac.gateway.config.models.adapting import AdaptationSettings, expanded
from bpac.gateway.config.models.certificates import CaFile
from bpac.gateway.config.models.deployments import Deployment, read_deployments
from bpac.gateway.config.models.prices import Price
from bpac.gateway.config.secrets import BaseUrl, Secret
from bpac.gateway.config.toml_tables import Seconds, as_table, read_table

# The characters that HTTP allows in the name of a header.
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Headers that say where a request begins and ends: the HTTP client sets them.
_RESERVED = {"connection", "content-length", "expect", "transfer-encoding", "upgrade"}


class Headers(dict[str, Secret]):
    """Headers that are added to every request to a model server."""

    @classmethod
    def read(cls, value: object) -> Self:
        """The headers in a setting; values may be ``env:NAME``."""
        if not isinstance(value, Mapping):
            raise SettingsError(f"expected a table, got {value!r}")
        headers = cls()
        for name, text in value.items():
            if not HEADER_NAME.fullmatch(name) or name.lower() in _RESERVED:
                raise SettingsError(f"header {name} cannot be added: choose another name")
            try:
                headers[name] = Secret.read(text)
            except SettingsError as error:
                raise SettingsError(f"header {name}: {error}") from error
        return headers


class ModelSettings(AdaptationSettings, frozen=True):
    """One model on one server; what is changed in requests to it comes from ``AdaptationSettings``.

    Parameters
    ----------
    name: the name of the table.
    base_url, model, api_key, headers, timeout, retries, backoff, body: as for ``ModelClient``.
    breaker: failed attempts in a row after which the server is suspected to be down; 0 for never.
    deployments: several servers of the model, with the settings of requests to each; empty if there is one server.
    balance: which deployment is tried first: the first that is listed (``order``), or the one with the fewest requests
        under way (``least_load``).
    ca_file: file with certificates that are trusted in addition to those of the system; None for none.
    price: prices of a million tokens, see ``Price``; None if they are not known.
    """

    name: str
    base_url: BaseUrl
    model: str
    api_key: Secret | None = None
    headers: Headers = field(default_factory=Headers)
    timeout: Seconds = 600.0
    retries: Annotated[int, Meta(ge=0)] = 2
    backoff: Seconds = 0.5
    body: dict[str, Any] = field(default_factory=dict)
    breaker: Annotated[int, Meta(ge=0)] = 5
    deployments: tuple[Deployment, ...] = ()
    balance: Literal["order", "least_load"] = "order"
    ca_file: CaFile | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.model.strip():
            raise SettingsError("model must not be empty: give the name of the model on its server")

    def servers(self) -> "dict[str, ModelSettings]":
        """The settings of requests to each server of the model, by the name that operators see."""
        return {f"{self.name}/{one.name}": one.settings for one in self.deployments} or {self.name: self}

    @property
    def first_server(self) -> "ModelSettings":
        """The settings of requests to its server, or to its first deployment."""
        return next(iter(self.servers().values()))

    @property
    def other_names(self) -> list[str]:
        """Names of the model on its deployments that differ from its own: perhaps another model, so a new game."""
        return sorted({one.settings.model for one in self.deployments} - {self.model})

    @property
    def effort(self) -> str | None:
        """The ``reasoning_effort`` that is added to every request to it; none if callers set it."""
        template = self.body.get("chat_template_kwargs")
        inner = template.get("reasoning_effort") if isinstance(template, Mapping) else None
        effort = self.body.get("reasoning_effort", inner)
        return effort if isinstance(effort, str) else None

    @property
    def terms(self) -> list[Any]:
        """What the terms of a game say about the model: if any of it changes, its answers may change."""
        return [self.model, self.body, *self.other_names, *self.adaptation_terms]


def read_models(values: object, path: str = "models", currency: str = "") -> dict[str, ModelSettings]:
    """All models of a configuration file, by name.

    Parameters
    ----------
    values: the table of models.
    path: where it is in the file, for error messages.
    currency: the currency of the prices.
    """
    models = {name: _read_model(name, table, f"{path}.{name}") for name, table in as_table(values, path).items()}
    return {
        name: replace(model, price=model.price.in_currency(currency)) if model.price and currency else model
        for name, model in models.items()
    }


def _read_model(name: str, table: object, path: str) -> ModelSettings:
    def read(values: Mapping[str, Any], path: str) -> ModelSettings:
        return read_table(expanded(values, path), ModelSettings, path, name=name)

    common, deployments = read_deployments(table, path, read)
    return replace(read(common, path), deployments=deployments)
