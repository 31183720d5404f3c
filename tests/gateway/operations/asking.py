"""Requests to a running gateway, of which all headers matter."""

import json
import urllib.error
import urllib.request
from typing import Any

from tests.gateway.configured import bearer
from tests.gateway.running import ASK

# The gateway is on this machine: a proxy of the environment is for its models.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(
    url: str, key: str = "", headers: dict[str, str] | None = None, **fields: Any
) -> tuple[int, dict[str, str], Any]:
    """Status, headers and body of the response to a chat request."""
    sent = {**(bearer(key) if key else {}), **(headers or {})}
    return post(f"{url}/v1/chat/completions", {**ASK, **fields}, sent)


def post(url: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], Any]:
    """Status, headers and body of the response to a POST request."""
    sent = {"Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, json.dumps(body).encode(), sent)
    try:
        with _OPENER.open(request, timeout=60) as response:
            data = response.read()
            streamed = response.headers["content-type"].startswith("text/event-stream")
            return response.status, dict(response.headers), data.decode() if streamed else json.loads(data)
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), json.load(error)
