"""The configuration file: one TOML file to one frozen value, with nothing in it that is not understood."""

import ipaddress
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bpac.arguments import positive, whole
from bpac.errors import SettingsError
from bpac.gateway.auth.keys import KeySettings, Role, read_keys
from bpac.gateway.config.limits import Limits
from bpac.gateway.config.models import ModelSettings
from bpac.gateway.config.routes import RouteSettings
from bpac.gateway.config.tables import Section
from bpac.models.fields import secret


@dataclass(frozen=True, slots=True)
class Config:
    """All of a configuration file.

    Parameters
    ----------
    host, port: where to listen.
    store: the address of the store.
    api_keys: keys without a name, which may ask for completions and nothing else.
    keys: keys with a name and roles. Without keys of either kind a gateway is open, and everybody has every role.
    limits: what callers and models may send.
    max_in_flight: requests under way and audits behind them; more get status 429.
    drain: seconds that requests under way may take when the gateway is stopped.
    snapshot_every: entries of a journal between two snapshots.
    traces: whether requests are traced for OpenTelemetry.
    models, routes: by name.
    """

    host: str
    port: int
    store: str = field(repr=False)  # its address may hold a password
    models: Mapping[str, ModelSettings]
    routes: Mapping[str, RouteSettings]
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    keys: tuple[KeySettings, ...] = ()
    limits: Limits = Limits()
    max_in_flight: int = 1024
    drain: float = 30.0
    snapshot_every: int = 10_000
    traces: bool = False

    @property
    def open(self) -> bool:
        """Whether there are no keys, so that everybody on this machine may do everything."""
        return not self.api_keys and not self.keys

    def granted(self, role: Role) -> bool:
        """Whether anybody has a role."""
        return self.open or any(role in key.roles for key in self.keys) or (role is Role.CALL and bool(self.api_keys))

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Config":
        """The configuration in a parsed TOML file."""
        whole_file = Section(data, "")
        gateway = Section(whole_file.take("gateway", dict, {}), "gateway")
        host, port = _listen(gateway)
        keys = gateway.take("api_keys", list, [])
        for number, key in enumerate(keys):
            if not isinstance(key, str) or not key:
                raise SettingsError(f"gateway.api_keys[{number}] must be a text, got {key!r}")
        named = read_keys(gateway.take("keys", list, []), "gateway.keys")
        if not keys and not named and not _is_loopback(host):
            raise SettingsError(
                f"gateway.api_keys: a gateway without keys is open to all who reach {host}; give keys, or listen on "
                "127.0.0.1"
            )
        models = {
            name: ModelSettings.read(name, Section(table, f"models.{name}"))
            for name, table in whole_file.take("models", dict).items()
        }
        routes = {
            name: RouteSettings.read(name, Section(table, f"routes.{name}"), models)
            for name, table in whole_file.take("routes", dict).items()
        }
        if not routes:
            raise SettingsError("routes: there is none; add a table [routes.NAME]")
        config = cls(
            host=host,
            port=port,
            store=gateway.take("store", str, "sqlite:///bpac.db"),
            models=models,
            routes=routes,
            api_keys=tuple(secret(key, f"gateway.api_keys[{number}]") for number, key in enumerate(keys)),
            keys=named,
            limits=Limits.read(gateway),
            max_in_flight=whole(gateway.take("max_in_flight", int, 1024), "gateway.max_in_flight", 1),
            drain=positive(gateway.take("drain", float, 30.0), "gateway.drain"),
            snapshot_every=whole(gateway.take("snapshot_every", int, 10_000), "gateway.snapshot_every", 1),
            traces=gateway.take("traces", bool, False),
        )
        gateway.end()
        whole_file.end()
        return config


def load_config(path: str | Path, *, secrets: bool = True) -> Config:
    """The configuration in a file, or an error that names the file and the path of the mistake.

    Parameters
    ----------
    path: the file.
    secrets: whether keys are needed; who only looks into the store need not have them in the environment.
    """
    try:
        with Path(path).open("rb") as file:
            values = tomllib.load(file)
        return Config.read(values if secrets else _without_secrets(values))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not TOML: {error}") from error
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def _without_secrets(values: Any) -> Any:
    """The same, with other keys in the place of those that stand in the environment."""
    if isinstance(values, dict):
        return {name: _without_secrets(value) for name, value in values.items()}
    if isinstance(values, list):
        return [_without_secrets(value) for value in values]
    if isinstance(values, str) and values.startswith("env:"):
        return "unknown " + values.removeprefix("env:")  # two keys stay two
    return values


def _listen(table: Section) -> tuple[str, int]:
    listen = table.take("listen", str, "127.0.0.1:8800")
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"{table.at('listen')} must be HOST:PORT, got {listen!r}")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    # Of names only this one is sure to stay on the machine.
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
