"""Configurations for tests, and helpers to wait and to fetch JSON."""

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

OPERATOR: dict[str, Any] = {"name": "ops", "key": "ops-key", "roles": ["operator"]}
ALL_ROLES = ["call", "feedback", "operator"]


def bearer(key: str) -> dict[str, str]:
    """The header that carries an API key."""
    return {"Authorization": f"Bearer {key}"}


def settings(base_url: str, *, gateway: Any = None, model: Any = None, **route: Any) -> dict[str, Any]:
    """A configuration with one route, ``homework``, whose two models are on one scripted server.

    Models are not probed at the start, so that scripts and counts of requests see those of callers only.
    """
    ours = {"base_url": base_url, "timeout": 60.0, "retries": 0, "backoff": 0.01, **(model or {})}
    return {
        "gateway": {"listen": "127.0.0.1:0", "store": "memory://", "probe": False, **(gateway or {})},
        "models": {"small": {**ours, "model": "draft"}, "large": {**ours, "model": "expert"}},
        "routes": {"homework": {"draft": "small", "expert": "large", "epsilon": 0.2, **route}},
    }


def wait_for(what: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


def get_json(url: str, key: str = "") -> Any:
    """The JSON that an endpoint returns, perhaps only to the owner of a key."""
    request = urllib.request.Request(url, headers=bearer(key) if key else {})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)
