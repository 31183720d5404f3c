"""Open connections of callers: counted, limited, and checked for timeouts once a second."""

import asyncio
from collections import Counter
from http import HTTPStatus
from typing import NamedTuple, Protocol

from bpac.gateway.config.limits import Limits
from bpac.gateway.http.errors import error_body
from bpac.gateway.telemetry.failures.rejections import Rejections
from bpac.gateway.telemetry.request_ids import new_request_id
from bpac.wire.json import to_json

# Seconds between two checks of all connections.
LOOK_EVERY = 1.0


class Refusal(NamedTuple):
    """The reason why a connection or a request is refused.

    Parameters
    ----------
    status: the HTTP status.
    reason: a word for metrics and programs.
    message: what to do about it.
    """

    status: int
    reason: str
    message: str

    def reply(self) -> bytes:
        """The response that the caller gets: OpenAI's error body, after which the connection is closed."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        body = to_json(error_body(self.message, kind, code=self.reason))
        first_line = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n".encode()
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
        return first_line + head + b"x-request-id: %b\r\n\r\n" % new_request_id() + body


FULL = Refusal(503, "connections", "the gateway has too many open connections: try again later")
FULL_ADDRESS = Refusal(
    503, "connections_per_address", "there are too many open connections from this address: use fewer"
)


class Connection(Protocol):
    """What is needed of a connection here."""

    network: str
    loop: asyncio.AbstractEventLoop

    def check_timeouts(self, now: float) -> None:
        """Close the connection if a timeout has passed."""


class Connections:
    """The open connections of a gateway, counted, and checked for timeouts once a second.

    Parameters
    ----------
    limits: the largest number of connections, in total and per address.
    rejections: counts connections that are refused.
    """

    def __init__(self, limits: Limits, rejections: Rejections) -> None:
        self.limits = limits
        self.rejections = rejections
        self._open: set[Connection] = set()
        self._of_network: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, connection: Connection) -> Refusal | None:
        """Register a connection; the reason to refuse it if there are too many."""
        if len(self._open) >= self.limits.max_connections:
            return FULL
        if self._of_network[connection.network] >= self.limits.max_connections_per_address:
            return FULL_ADDRESS
        self._open.add(connection)
        self._of_network[connection.network] += 1
        if self._timer is None:
            self._check_later(connection.loop)
        return None

    def closed(self, connection: Connection) -> None:
        """Unregister a connection; one that was refused is not registered."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        self._of_network[connection.network] -= 1
        if not self._of_network[connection.network]:
            del self._of_network[connection.network]

    def _check_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(LOOK_EVERY, self._check, loop)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, now = None, loop.time()
        for connection in list(self._open):
            connection.check_timeouts(now)
        if self._open:
            self._check_later(loop)
