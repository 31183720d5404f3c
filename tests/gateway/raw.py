"""Requests byte by byte: what no well-behaved client would send, and clients that disconnect."""

import http.client
import json
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple

CHAT = "/v1/chat/completions"


class Got(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.body)


def post(url: str, body: Any, path: str = CHAT, headers: Mapping[str, str] | None = None, method: str = "POST") -> Got:
    """Send a body, JSON or not, and read the whole response."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
    response = connection.getresponse()
    got = Got(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    connection.close()
    return got


def open_chat(url: str, body: Any, headers: Mapping[str, str] | None = None, path: str = CHAT) -> socket.socket:
    """Send a request and leave the response unread; closing the socket disconnects the caller."""
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    data = json.dumps(body).encode()
    sent = {"Host": host, "Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
    connection.sendall("\r\n".join(lines).encode() + data)
    return connection
