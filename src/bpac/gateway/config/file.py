"""The configuration file: from one TOML file to one frozen value; a key that is not known is an error."""

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, field

from bpac.errors import SettingsError
from bpac.gateway.auth.keys import KeySettings, Role
from bpac.gateway.auth.proxies import TrustedProxies
from bpac.gateway.config.archives import ArchiveSettings
from bpac.gateway.config.limits import Limits
from bpac.gateway.config.models.adapting import with_roles
from bpac.gateway.config.models.models import ModelSettings, read_models
from bpac.gateway.config.origins import ANY, Origin
from bpac.gateway.config.routes.decide_routes import DecideRouteSettings, decide_only, read_decide_routes
from bpac.gateway.config.routes.route_tables import read_routes
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.config.routes.single_routes import SingleRouteSettings, read_single_routes, separated
from bpac.gateway.config.secrets import ApiKey, Url
from bpac.gateway.config.store_outage import StoreOutage
from bpac.gateway.config.toml_tables import ConfigTable, Count, Seconds, as_table, check_keys, read_table
from bpac.stores.redis.server.address import is_redis

# A path without characters that would have to be escaped.
_ROOT_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")


class Config(ConfigTable, frozen=True):
    """A configuration file: the keys of ``[gateway]``, and all models and routes.

    Parameters
    ----------
    models, routes: by name.
    single_routes: routes with one model, by name.
    decide_routes: routes that decide only, because their callers ask the models, by name.
    listen: address and port that the gateway listens on, as ``HOST:PORT``.
    store: address of the store that keeps the journals.
    api_keys: keys without a name, with which completions can be requested and nothing else.
    keys: keys with a name and roles. A gateway without keys of either kind is open: every caller has every role.
    root_path: prefix of the paths of requests, for a proxy that serves the gateway under a sub-path and keeps it.
    trusted_proxies: addresses and networks of reverse proxies, which say whether callers used HTTPS.
    limits: limits on what callers and models may send.
    max_in_flight: largest number of requests in progress, their audits included; more get status 429.
    drain: seconds for which the gateway waits for requests in progress when it is stopped.
    snapshot_every: number of journal entries between two snapshots.
    archive: where old entries of games in Redis are archived; none to leave that to ``bpac archive``.
    traces: whether requests are traced with OpenTelemetry.
    probe: whether every model is asked a small question when the gateway starts.
    probe_timeout: seconds that a model has to answer such a question.
    currency: the currency of all prices, for display.
    cors_origins: origins of the web pages that may use the API from a browser; ``*`` for all of them.
    store_outage: what is served while Redis is gone; without it, the expert's answers.
    stream_keep_alive: seconds after which a stream without an event gets a comment, before its first event; 0: never.
    """

    models: dict[str, ModelSettings]
    routes: dict[str, RouteSettings]
    single_routes: dict[str, SingleRouteSettings] = field(default_factory=dict)
    decide_routes: dict[str, DecideRouteSettings] = field(default_factory=dict)
    listen: str = "127.0.0.1:8800"
    store: Url = Url("sqlite:///bpac.db")
    api_keys: tuple[ApiKey, ...] = ()
    keys: tuple[KeySettings, ...] = ()
    root_path: str = ""
    trusted_proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    limits: Limits = Limits()
    max_in_flight: Count = 1024
    drain: Seconds = 30.0
    snapshot_every: Count = 10_000
    archive: ArchiveSettings | None = None
    traces: bool = False
    probe: bool = True
    probe_timeout: Seconds = 30.0
    currency: str = ""
    cors_origins: tuple[Origin, ...] = ()
    store_outage: StoreOutage | None = None
    stream_keep_alive: Annotated[float, Meta(ge=0, le=86_400)] = 15.0

    def __post_init__(self) -> None:
        host, colon, port = self.listen.rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            raise SettingsError(f"listen must be HOST:PORT, got {self.listen!r}")
        if self.open and not _is_loopback(self.host):
            raise SettingsError(
                f"api_keys: a gateway without keys can be used by everyone who can reach {self.host}: add keys, or "
                "listen on 127.0.0.1"
            )
        if self.open and ANY in self.cors_origins:
            raise SettingsError(
                'cors_origins: with "*", every web page in a browser on this machine could use a gateway without keys: '
                "add keys, or list the origins"
            )
        if self.root_path and not _ROOT_PATH.fullmatch(self.root_path):
            raise SettingsError(
                f"root_path must begin with / and not end with it, such as /bpac, got {self.root_path!r}"
            )
        if self.archive is not None and not is_redis(self.store):
            raise SettingsError(
                "archive: only games in Redis are archived while gateways run; with SQLite, run bpac archive before "
                "each start"
            )
        if self.store_outage is not None and "redis" not in self.store.partition("://")[0]:
            raise SettingsError("store_outage is for games in Redis: without their own store, nothing can be decided")
        TrustedProxies(self.trusted_proxies)
        names: dict[str, str] = {}
        for number, key in enumerate(self.keys):
            if key.key in names:
                raise SettingsError(
                    f"keys[{number}].key is also the key of {names[key.key]}: list each key once, with all its roles"
                )
            names[key.key] = key.name

    @property
    def host(self) -> str:
        """The name or address that the gateway listens on."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port that the gateway listens on; 0 for any free port."""
        return int(self.listen.rpartition(":")[2])

    @property
    def routes_with_games(self) -> dict[str, RouteSettings]:
        """All routes that have a promise, by name: with models of the gateway, and of callers."""
        return {**self.routes, **self.decide_routes}

    def expert_api(self, route: str) -> str:
        """The API of the model that can answer every request on a route; empty if there is no such route.

        Parameters
        ----------
        route: the name of the route, as callers write it.
        """
        for name in (route, route.partition(":")[0]):
            if (found := self.single_routes.get(name) or self.routes.get(name)) is not None:
                return found.expert.api
        return ""

    @property
    def open(self) -> bool:
        """Whether there are no keys, so that every caller may do everything."""
        return not self.api_keys and not self.keys

    def granted(self, role: Role) -> bool:
        """Whether any caller has a role."""
        return self.open or any(role in key.roles for key in self.keys) or (role is Role.CALL and bool(self.api_keys))

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Config":
        """The configuration in a parsed TOML file."""
        check_keys(data, ("gateway", "models", "routes"), "")
        if "routes" not in data:
            raise SettingsError("routes is missing: add a table [routes.NAME]")
        with_models, without = decide_only(data["routes"])
        if "models" not in data and (with_models or not without):
            raise SettingsError("models is missing: add a table [models.NAME]")
        gateway = dict(as_table(data.get("gateway", {}), "gateway"))
        check_keys(gateway, KEYS, "gateway")
        limits = {key: gateway.pop(key) for key in Limits.__struct_fields__ if key in gateway}
        if isinstance(gateway.get("keys"), list):
            gateway["keys"] = [
                read_table(key, KeySettings, f"gateway.keys[{number}]") for number, key in enumerate(gateway["keys"])
            ]
        if "archive" in gateway:
            gateway["archive"] = read_table(gateway["archive"], ArchiveSettings, "gateway.archive")
        if "store_outage" in gateway:
            gateway["store_outage"] = read_table(gateway["store_outage"], StoreOutage, "gateway.store_outage")
        decided, single = separated(with_models)
        currency = gateway.get("currency")
        models = read_models(
            with_roles(data.get("models", {}), with_models), currency=currency if isinstance(currency, str) else ""
        )
        return read_table(
            gateway,
            cls,
            "gateway",
            models=models,
            routes=read_routes(decided, models) if decided or not (single or without) else {},
            single_routes=read_single_routes(single, models),
            decide_routes=read_decide_routes(without),
            limits=read_table(limits, Limits, "gateway"),
        )


# The keys of the table [gateway].
KEYS = {*Config.__struct_fields__, *Limits.__struct_fields__} - {
    "models", "routes", "single_routes", "decide_routes", "limits",
}  # fmt: skip


def load_config(path: str | Path, *, secrets: bool = True) -> Config:
    """The configuration in a file, or an error that names the file and the path of the mistake.

    Parameters
    ----------
    path: the file.
    secrets: whether keys are needed; commands that only read the store work without them in the environment.
    """
    return read_config(path, secrets=secrets)[0]


def read_config(path: str | Path, *, secrets: bool = True) -> tuple[Config, bytes]:
    """The configuration in a file, and the bytes that it was read from.

    Parameters
    ----------
    path, secrets: as for ``load_config``.
    """
    try:
        text = Path(path).read_bytes()
        values = tomllib.loads(text.decode())
        return Config.read(values if secrets else _without_secrets(values)), text
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not TOML: {error}") from error
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def _without_secrets(values: Any) -> Any:
    """The same values with a placeholder for each secret that is in the environment."""
    if isinstance(values, dict):
        return {name: _without_secrets(value) for name, value in values.items()}
    if isinstance(values, list):
        return [_without_secrets(value) for value in values]
    if isinstance(values, str) and values.startswith("env:"):
        return "unknown " + values.removeprefix("env:")  # different variables stay different keys
    return values


def _is_loopback(host: str) -> bool:
    # Any other name could lead to another machine.
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
