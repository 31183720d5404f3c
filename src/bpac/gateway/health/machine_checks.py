"""Checks of what a gateway needs: a store that it can write, a free address, keys, and the prices of cascades."""

import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from bpac.errors import BpacError, StoreInUse
from bpac.gateway.auth.keys import Role
from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.cascades import CALL_PRICES_REMEDY, assumed_prices
from bpac.gateway.health.findings import Checked
from bpac.stores import open_store
from bpac.stores.private_files import place_of
from bpac.stores.redis.server.address import is_redis, read_address
from bpac.stores.sqlite.writing.connecting import connect
from bpac.stores.sqlite.writing.ownership import Ownership

# Bytes on the disk of the store below which an operator is warned.
LITTLE_SPACE = 256 * 2**20


def check_roles(config: Config) -> Iterator[Checked]:
    """Whether somebody may see the status, and report losses where they are reported from outside."""
    if not config.granted(Role.OPERATOR):
        remedy = 'add a key with roles = ["operator"] as [[gateway.keys]]'
        yield Checked("roles", "no key may use /v1/status, /metrics and /dashboard", "warning", remedy)
    external = [name for name, route in config.routes_with_games.items() if route.loss["name"] == "external"]
    if external and not config.granted(Role.FEEDBACK):
        remedy = 'add a key with roles = ["feedback"] as [[gateway.keys]]'
        message = f"no key may report losses for {', '.join(external)}, so every round would count as loss 1"
        yield Checked("roles", message, "error", remedy)


def check_call_prices(config: Config) -> Iterator[Checked]:
    """Whether the cascades know what their calls cost."""
    for message in assumed_prices(config.routes):
        yield Checked("prices", message, "warning", CALL_PRICES_REMEDY)


def check_store(address: str) -> Checked:
    """Whether the store can be written; nothing is created and nothing is changed.

    Parameters
    ----------
    address: the address of the store, as in the configuration.
    """
    if address == "memory://":
        remedy = 'set store = "sqlite:///bpac.db" in [gateway]'
        return Checked("store", "memory:// forgets every journal when the gateway stops", "warning", remedy)
    if is_redis(address):
        return _redis(address)
    place = place_of(urlsplit(address).path[1:])
    directory = os.path.dirname(place)
    try:
        if os.path.lexists(place):
            _try_writing(place)
            open_store(address, read_only=True).close()
        else:
            with tempfile.TemporaryFile(dir=directory):
                pass
        free = shutil.disk_usage(directory).free
    except (sqlite3.Error, OSError, BpacError) as error:
        return _unusable_store(error, place)
    if free < LITTLE_SPACE:
        remedy = "make room: without space the gateway answers with status 503"
        return Checked("store", f"only {free // 2**20} MiB are free on the disk of {place}", "warning", remedy)
    return Checked("store", f"{place} can be written")


def _redis(address: str) -> Checked:
    """Whether Redis answers and can keep games; nothing is changed."""
    from bpac.stores.redis.server.connecting import BlockingRedisClient  # noqa: PLC0415  # redis-py is optional
    from bpac.stores.redis.server.server_checks import check_server  # noqa: PLC0415  # as above

    try:
        where = read_address(address)
        with closing(BlockingRedisClient(where)) as client:
            client.command("PING")
            check_server(client)
    except BpacError as error:
        remedy = getattr(error, "remedy", "") or "correct store in [gateway]"
        return Checked("store", getattr(error, "cause", "") or str(error), "error", remedy)
    return Checked("store", f"Redis at {where.shown} answers")


def _unusable_store(error: Exception, place: str) -> Checked:
    directory = os.path.dirname(place)
    if isinstance(error, StoreInUse):
        message = str(error).partition(": ")[0]
        return Checked("store", message, "warning", "a second gateway on this file will not start")
    if isinstance(error, OSError):
        remedy = f"create {directory} and give this user the right to write there, or set another store in [gateway]"
        return Checked("store", f"{directory} cannot be written ({error.strerror})", "error", remedy)
    remedy = "check the owner and the mode of the file, restore it from a copy, or set another store in [gateway]"
    return Checked("store", f"{place} cannot be used: {error}", "error", remedy)


def _try_writing(place: str) -> None:
    owned = Ownership(place)
    owned.take()
    try:
        with closing(connect(place)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    finally:
        owned.release()


def check_address(config: Config) -> Checked:
    """Whether the gateway can listen on its address."""
    host, port = config.host, config.port
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(where)
    except OSError as error:
        if _gateway_listens(config):
            message = f"a gateway listens on {config.listen} already"
            return Checked("listen", message, "warning", "stop it before another one is started")
        remedy = "stop what listens there, or set another address as listen in [gateway]"
        return Checked("listen", f"cannot listen on {config.listen} ({error.strerror})", "error", remedy)
    return Checked("listen", f"{config.listen} is free")


def _gateway_listens(config: Config) -> bool:
    host = f"[{config.host}]" if ":" in config.host else config.host
    # Not through a proxy: it is on this machine.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"http://{host}:{config.port}/healthz", timeout=2.0) as response:
            return bool(response.read(100) == b'{"status":"ok"}')
    except (URLError, OSError, ValueError):
        return False
