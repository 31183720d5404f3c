"""A plain HTTP client for the tests: complete answers, streamed answers, errors and disconnects."""

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator, Iterable
from typing import Any


def post(url: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Post a JSON body; returns the status and the JSON body of the response, also for errors."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120.0) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def get(url: str) -> Any:
    """The JSON body of a GET request."""
    with urllib.request.urlopen(url, timeout=60.0) as response:
        return json.loads(response.read())


def chat(text: str, thinking: bool | None = None, **more: Any) -> dict[str, Any]:
    """The body of a request with one question."""
    switch = {} if thinking is None else {"chat_template_kwargs": {"enable_thinking": thinking}}
    return {"messages": [{"role": "user", "content": text}], "temperature": 0, **switch, **more}


def streamed(base_url: str, body: dict[str, Any]) -> Generator[dict[str, Any]]:
    """The chunks of a streamed answer; closes the connection if the caller stops reading."""
    parts = urllib.parse.urlsplit(base_url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=120.0)
    try:
        headers = {"content-type": "application/json"}
        connection.request("POST", f"{parts.path}/chat/completions", json.dumps({**body, "stream": True}), headers)
        with connection.getresponse() as response:
            for line in response:
                if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
                    yield json.loads(line[6:])
    finally:
        connection.close()


def joined(chunks: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The text of a streamed answer and its reasoning."""
    found = {"content": "", "reasoning_content": ""}
    for chunk in chunks:
        for choice in chunk["choices"]:
            for name in found:
                found[name] += choice["delta"].get(name) or ""
    return found


def busy_slots(address: str) -> int:
    """The number of busy slots."""
    return sum(slot["is_processing"] for slot in get(f"{address}/slots"))


def soon_idle(address: str, seconds: float = 60.0) -> bool:
    """Whether all slots become free within a time limit."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if busy_slots(address) == 0:
            return True
        time.sleep(0.05)
    return False
