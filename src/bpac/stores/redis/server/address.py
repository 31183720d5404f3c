"""Addresses of Redis servers: ``redis://``, ``rediss://``, ``redis+sentinel://`` and ``redis+cluster://``."""

import os
import re
from dataclasses import dataclass, field
from typing import Literal, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from bpac.errors import SettingsError

Kind = Literal["single", "sentinel", "cluster"]
KINDS: dict[str, Kind] = {
    "redis": "single",
    "rediss": "single",
    "redis+sentinel": "sentinel",
    "rediss+sentinel": "sentinel",
    "redis+cluster": "cluster",
    "rediss+cluster": "cluster",
}
PORTS = {"single": 6379, "sentinel": 26379, "cluster": 6379}
OPTIONS = ("name", "lease", "timeout", "wait", "ca")
FORMS = (
    "redis://HOST:PORT/DB, rediss://HOST:PORT/DB, redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB or "
    "redis+cluster://HOST:PORT,HOST:PORT"
)


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Where games are kept, and how replicas agree.

    Parameters
    ----------
    kind: one server, servers watched by Sentinel, or a cluster.
    hosts: hosts and ports; with Sentinel those of the sentinels.
    tls: whether connections are encrypted.
    service: the name by which Sentinel knows the servers.
    database: the number of the database.
    username, password: empty if none are needed.
    name: names the gateways that share games; gateways with another name share the server and nothing else.
    lease: seconds without a sign of life after which a replica or a folder counts as dead.
    timeout: seconds for which a call is repeated before Redis counts as gone.
    wait: servers that must have copied what was written before it counts as written.
    ca: a file with the certificates that are trusted; empty for those of the system.
    """

    kind: Kind
    hosts: tuple[tuple[str, int], ...]
    tls: bool = False
    service: str = ""
    database: int = 0
    username: str = ""
    password: str = field(default="", repr=False)
    name: str = "bpac"
    lease: float = 5.0
    timeout: float = 2.0
    wait: int = 0
    ca: str = ""

    @property
    def shown(self) -> str:
        """The address for messages, without user name and password."""
        return ",".join(f"{host}:{port}" for host, port in self.hosts)


def is_redis(address: str) -> bool:
    """Whether an address is one of a Redis server.

    >>> is_redis("redis://localhost"), is_redis("sqlite:///bpac.db")
    (True, False)
    """
    return address.partition("://")[0] in KINDS


def read_address(text: str) -> RedisAddress:
    """The parts of an address; ``SettingsError`` if it is none.

    Parameters
    ----------
    text: the address. A password may be ``env:NAME``, which reads an environment variable. After the ``?`` may stand
        ``name``, ``lease`` and ``timeout`` (seconds), ``wait`` (copies) and ``ca`` (a file).

    >>> read_address("redis+sentinel://a:26379,b/main?lease=2").hosts
    (('a', 26379), ('b', 26379))
    """
    parts = urlsplit(text)
    kind = KINDS.get(parts.scheme)
    user, _, hosts = parts.netloc.rpartition("@")
    if kind is None or not hosts:
        raise SettingsError(f"store must be {FORMS}; got an address of another form")
    username, _, password = user.partition(":")
    path = [piece for piece in parts.path.split("/") if piece]
    service = path.pop(0) if kind == "sentinel" and path else ""
    if kind == "sentinel" and not service:
        raise SettingsError("store: with redis+sentinel:// the name of the service follows the hosts: …/SERVICE")
    database = path.pop(0) if path else "0"
    if path or not database.isdecimal() or (kind == "cluster" and database != "0"):
        raise SettingsError(f"store must be {FORMS}; after the hosts there is something else: {parts.path!r}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise SettingsError(f"store: after the ? may stand {', '.join(OPTIONS)}; got {unknown[0]!r}")
    name = options.get("name", "bpac")
    if not re.fullmatch(r"[\w.-]{1,64}", name, re.ASCII):
        raise SettingsError(f"store: name must be up to 64 letters, digits, dots or dashes, got {name!r}")
    wait = int(_number(options, "wait", 0.0, 0.0, 100.0))
    if wait and kind == "cluster":
        raise SettingsError("store: wait goes with one server or Sentinel; a cluster has cluster-replica settings")
    return RedisAddress(
        kind,
        tuple(_host(host, PORTS[kind]) for host in hosts.split(",")),
        tls=parts.scheme.startswith("rediss"),
        service=service,
        database=int(database),
        username=unquote(username),
        password=_secret(unquote(password)),
        name=name,
        lease=_number(options, "lease", 5.0, 0.1, 3600.0),
        timeout=_number(options, "timeout", 2.0, 0.05, 3600.0),
        wait=wait,
        ca=options.get("ca", ""),
    )


def _host(text: str, port: int) -> tuple[str, int]:
    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]\s]+)(?::(\d{1,5}))?", text)
    if found is None or int(found[2] or port) > 65535:
        raise SettingsError(f"store: hosts are written HOST:PORT, separated by commas; got {text!r}")
    return cast(str, found[1]).strip("[]"), int(found[2] or port)


def _number(options: dict[str, str], name: str, default: float, least: float, most: float) -> float:
    try:
        value = float(options.get(name, default))
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise SettingsError(f"store: {name} must be a number from {least:g} to {most:g}, got {options[name]!r}")
    return value


def _secret(password: str) -> str:
    if not password.startswith("env:"):
        return password
    name = password.removeprefix("env:")
    if name not in os.environ:
        raise SettingsError(f"store: the environment variable {name} with the password is not set")
    return os.environ[name]
