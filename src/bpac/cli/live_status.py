"""What only a running gateway knows: which models answer, and whether its store can be written."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bpac.errors import SettingsError
from bpac.gateway.auth.keys import Role
from bpac.gateway.config.file import Config, load_config

# Seconds in which a gateway on this machine answers.
TIMEOUT = 3.0
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # the gateway listens there, nothing here does


def live_status(path: Path) -> dict[str, Any] | None:
    """What ``/v1/status`` of the gateway with this configuration says; none if it does not answer or has no key for it.

    Parameters
    ----------
    path: the configuration file; a key with the role operator in it is used, if its value is known here.
    """
    try:
        config = load_config(path)
    except SettingsError:  # a secret that is not in this environment
        return None
    key = next((key.key for key in config.keys if Role.OPERATOR in key.roles), None)
    if config.port == 0 or (key is None and not config.open):
        return None
    request = urllib.request.Request(f"{_address(config)}/v1/status")
    if key is not None:
        request.add_header("Authorization", f"Bearer {key}")
    # Not through a proxy: the gateway is on this machine, or at the address that is configured.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT) as response:
            status = json.load(response)
    except (OSError, urllib.error.URLError, ValueError):
        return None
    return status if isinstance(status, dict) else None


def _address(config: Config) -> str:
    host = ANY_ADDRESS.get(config.host, config.host)
    return f"http://[{host}]:{config.port}" if ":" in host else f"http://{host}:{config.port}"


def live_lines(status: Mapping[str, Any]) -> Iterator[str]:
    """What an operator should know of it, in lines.

    >>> list(live_lines({"models": {"small": {"health": {"ok": False, "error": "no answer", "failures": 3}}}}))
    ['MODEL small: fails (3 failed attempts): no answer']
    >>> warning = {"route": "letters", "what": "all prose", "cost": "no draft is kept", "remedy": "set loss"}
    >>> list(live_lines({"warnings": [warning]}))
    ['WARNING route letters: all prose; no draft is kept. What to do: set loss']
    """
    store = status.get("store") or {}
    if store.get("ok") is False:
        yield f"STORE: failed, {store.get('cause')}. What to do: {store.get('remedy')}"
    for one in status.get("warnings") or ():
        yield f"WARNING route {one['route']}: {one['what']}; {one['cost']}. What to do: {one['remedy']}"
    for one in status.get("upkeep") or ():
        yield f"UPKEEP: {one['what']}; {one['cost']}. What to do: {one['remedy']}"
    for name, model in (status.get("models") or {}).items():
        health = model.get("health") or {}
        failures = f"{health.get('failures', 0):,} failed attempts"
        if health.get("ok") is False:
            yield f"MODEL {name}: fails ({failures}): {health.get('error')}"
        elif health.get("failures"):
            last = health.get("last") or {}
            yield f"model {name}: answers, after {failures}; the latest: {last.get('error')}"
    failed = (status.get("configuration") or {}).get("failed_reload")
    if failed:
        yield f"CONFIGURATION: not reloaded, the old one stays in use: {failed.get('error')}"
    if workers := status.get("workers"):
        yield _processes(workers)


def _processes(workers: Mapping[str, Any]) -> str:
    """The processes of a gateway with several, in one line.

    >>> _processes({"wanted": 2, "fronts": [{}], "lost": 3, "owner": {"restarts": 1}})
    'PROCESSES: 1 of 2 fronts are connected; ended and started again: 3 times a front, 1 times the owner'
    """
    wanted, there = workers["wanted"], len(workers["fronts"])
    label = "processes" if there >= wanted else "PROCESSES"
    again = f"{workers['lost']} times a front, {workers['owner']['restarts']} times the owner"
    return f"{label}: {there} of {wanted} fronts are connected; ended and started again: {again}"
