"""Settings of a model: where it is and how it is asked."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bpac.arguments import positive, whole
from bpac.errors import SettingsError
from bpac.gateway.config.tables import Section
from bpac.models.fields import address, secret

# What HTTP allows in the name of a header, and those that say where a request begins and ends.
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = {"connection", "content-length", "expect", "transfer-encoding", "upgrade"}


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """One model on one server.

    Parameters
    ----------
    name: what the configuration calls it.
    base_url, model, api_key, headers, timeout, retries, backoff, body: as for ``ModelClient``.
    price: what a million generated tokens cost, in any currency; none if nobody said.
    """

    name: str
    base_url: str = field(repr=False)  # may hold a password
    model: str
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 600.0
    retries: int = 2
    backoff: float = 0.5
    body: Mapping[str, Any] = field(default_factory=dict)
    price: float | None = None

    @classmethod
    def read(cls, name: str, table: Section) -> "ModelSettings":
        """The settings in a table ``[models.NAME]``."""
        model = cls(
            name=name,
            base_url=address(table.take("base_url", str), table.at("base_url")),
            model=table.filled("model"),
            api_key=table.secret("api_key"),
            headers=_headers(table),
            timeout=positive(table.take("timeout", float, 600.0), table.at("timeout")),
            retries=whole(table.take("retries", int, 2), table.at("retries"), 0),
            backoff=positive(table.take("backoff", float, 0.5), table.at("backoff")),
            body=table.take("body", dict, {}),
            price=_price(table),
        )
        table.end()
        return model


def _headers(table: Section) -> dict[str, str]:
    headers = {}
    for name, text in table.texts("headers").items():
        place = table.at(f"headers.{name}")
        if not HEADER_NAME.fullmatch(name) or name.lower() in _OURS:
            raise SettingsError(f"{place} is no header that can be added: choose another name")
        headers[name] = secret(text, place)
    return headers


def _price(table: Section) -> float | None:
    price = table.take("price", float, None)
    if price is not None and not 0.0 <= price < math.inf:
        raise SettingsError(f"{table.at('price')} must be a number of at least 0, got {price!r}")
    return price
