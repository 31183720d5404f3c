"""Connections of callers: how many there are, whose they are, and which of them have taken too long."""

import asyncio
from collections import Counter
from typing import NamedTuple, Protocol

from bpac.errors import MissingExtra
from bpac.gateway.config.limits import Limits
from bpac.gateway.http.errors import error_body
from bpac.gateway.telemetry.rejections import Rejections
from bpac.wire.json import to_json

try:
    from uvicorn.protocols.http.httptools_impl import STATUS_LINE
except ImportError as error:
    raise MissingExtra("uvicorn and httptools", "gateway") from error

# Seconds between two looks at all connections.
LOOK_EVERY = 1.0


class Refusal(NamedTuple):
    """Why a connection is refused.

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
        """What the caller gets: OpenAI's error body, and the end of the connection."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        body = to_json(error_body(self.message, kind, code=self.reason))
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        return STATUS_LINE[self.status] + head + body


FULL = Refusal(503, "connections", "the gateway has too many open connections: try again later")
FULL_ADDRESS = Refusal(
    503, "connections_per_address", "there are too many open connections from this address: use fewer"
)


class Connection(Protocol):
    """A connection, as far as it is looked after here."""

    network: str
    loop: asyncio.AbstractEventLoop

    def look(self, now: float) -> None:
        """End what has taken too long."""


class Connections:
    """The open connections of a gateway, counted, and looked at once a second.

    Parameters
    ----------
    limits: what callers may do.
    refusals: counts those who do more.
    """

    def __init__(self, limits: Limits, refusals: Rejections) -> None:
        self.limits = limits
        self.refusals = refusals
        self._open: set[Connection] = set()
        self._of_network: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, connection: Connection) -> Refusal | None:
        """Take in a connection, or say why it must be closed, if it is one too many."""
        if len(self._open) >= self.limits.max_connections:
            return FULL
        if self._of_network[connection.network] >= self.limits.max_connections_per_address:
            return FULL_ADDRESS
        self._open.add(connection)
        self._of_network[connection.network] += 1
        if self._timer is None:
            self._look_later(connection.loop)
        return None

    def closed(self, connection: Connection) -> None:
        """Forget a connection; one that was not taken in was never counted."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        self._of_network[connection.network] -= 1
        if not self._of_network[connection.network]:
            del self._of_network[connection.network]

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(LOOK_EVERY, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, now = None, loop.time()
        for connection in list(self._open):
            connection.look(now)
        if self._open:
            self._look_later(loop)
