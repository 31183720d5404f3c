"""HTTP as the gateway speaks it: uvicorn's protocol on httptools, with limits that hold before anybody is known.

httptools and uvicorn have no limit on the size of a request's head, on the time it takes or on the connections of one
address. Here is how they are kept:

1. A connection beyond the limit of all, or of its address, gets status 503 and is closed at once, unread.
2. Bytes are counted since the last thing that was complete: a head, or a part of a body. What is not complete is kept
   by the parser, so more than ``max_head`` of it is refused, be it a head, a trailer or the size of a chunk.
3. A head or a body has a time by which it must be there. One timer for all connections looks once a second: a timer
   for every request would cost more than the rest of this file.
4. A caller who does not read its answer is cut off after a while.
5. What is refused gets OpenAI's error body where nothing has been answered yet. Then its connection is read, and what
   comes is dropped, for a moment: closed at once, it would lose the reply to callers who are still sending.
"""

import asyncio
from itertools import chain
from typing import Any

from bpac.errors import MissingExtra
from bpac.gateway.auth.addresses import network_of
from bpac.gateway.http.connections import Connections, Refusal

try:
    import httptools
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError as error:
    raise MissingExtra("uvicorn and httptools", "gateway") from error

# Seconds for which a refused caller may go on sending.
LINGER = 2.0
# Requests that one connection may send ahead of their answers.
MOST_AHEAD = 16

INVALID = Refusal(
    400, "invalid_http", "this is no HTTP/1.1 request: check the address, and that it begins with http://"
)
LARGE_HEAD = Refusal(431, "head_too_large", "the head of the request is larger than allowed: send shorter headers")
MANY_HEADERS = Refusal(431, "too_many_headers", "the request has more headers than allowed: send fewer")
SLOW_HEAD = Refusal(408, "head_timeout", "the head of the request did not arrive in time")
SLOW_BODY = Refusal(408, "body_timeout", "the body of the request did not arrive in time")
SLOW_READER = Refusal(408, "send_timeout", "the answer was not read in time")
FAR_AHEAD = Refusal(429, "pipeline", "too many requests were sent ahead of their answers: wait for some")


class LimitedProtocol(HttpToolsProtocol):
    """One connection of a caller.

    Parameters
    ----------
    connections: of the gateway.
    config, server_state, app_state: uvicorn's own.
    """

    def __init__(self, connections: Connections, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._connections = connections
        self._limits = connections.limits
        self.network = ""
        # Bytes since the last head, or part of a body, that was complete.
        self._pending = 0
        self._in_head = True
        # When what is being sent must be there, and when the caller stopped reading; none if neither is so.
        self._due: float | None = None
        self._unread_since: float | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless there are too many already."""
        super().connection_made(transport)
        self.network = network_of(self.client[0] if self.client else "")
        self._due = self.loop.time() + self._limits.head_timeout
        if (refusal := self._connections.opened(self)) is not None:
            # Not for a moment longer: a flood of them would use up the files that others need.
            self._refused = True
            self._count(refusal)
            transport.write(refusal.reply())
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self._refused:
            return
        self._unset_keepalive_if_required()
        self._pending += len(data)
        if self._due is None and (self.cycle is None or self.cycle.response_complete):
            # Also before there is a head: line breaks alone would keep an idle connection open for ever.
            self._due = self.loop.time() + self._limits.head_timeout
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # It is answered as if it had not asked for another protocol; what follows would be in that one.
            if self.cycle is not None:
                self.cycle.keep_alive = False
        except httptools.HttpParserError:
            if not self._refused:
                self._refuse(INVALID)
            return
        if self._pending > self._limits.max_head:
            self._refuse(LARGE_HEAD)
        elif len(self.headers or ()) > self._limits.max_headers:  # trailers are added to them
            self._refuse(MANY_HEADERS)

    def on_message_begin(self) -> None:
        """Begin with a head."""
        self._in_head = True
        if self._due is None:
            self._due = self.loop.time() + self._limits.head_timeout
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Check the head and begin to answer."""
        limits = self._limits
        if len(self.headers) > limits.max_headers:
            self._refuse_now(MANY_HEADERS)
        if len(self.url) + sum(map(len, chain.from_iterable(self.headers))) > limits.max_head:
            self._refuse_now(LARGE_HEAD)
        if len(self.pipeline) >= MOST_AHEAD:
            self._refuse_now(FAR_AHEAD)
        self._in_head = False
        self._pending = 0
        self._due = self.loop.time() + limits.body_timeout
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take in a part of the body."""
        self._pending = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there; what follows belongs to the head of another."""
        self._in_head = True
        self._pending = 0
        self._due = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The caller reads more slowly than it is answered."""
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The caller has caught up."""
        self._unread_since = None
        super().resume_writing()

    def look(self, now: float) -> None:
        """End what has taken too long."""
        if self._unread_since is not None and now - self._unread_since > self._limits.send_timeout:
            self._count(SLOW_READER)
            self.transport.abort()
        elif self._due is None or now < self._due:
            return
        elif self._refused:
            self.transport.abort()
        elif self.pipeline:
            # It is not read on as long as earlier requests are answered: that is our time, not the caller's.
            self._due = now + self._limits.body_timeout
        else:
            self._refuse(SLOW_HEAD if self._in_head else SLOW_BODY)

    def _refuse_now(self, refusal: Refusal) -> None:
        """Refuse from within the parser, which must not go on."""
        self._refuse(refusal)
        raise httptools.HttpParserError(refusal.reason)

    def _refuse(self, refusal: Refusal) -> None:
        self._refused = True
        self._count(refusal)
        self._unset_keepalive_if_required()
        cycle = self.cycle
        if cycle is not None and not (cycle.response_complete and self._in_head):
            # An earlier request is being answered, or this one was before all of it came, or waits for its rest.
            answered = cycle.response_started or bool(self.pipeline) or self._in_head
            cycle.disconnected = True
            cycle.message_event.set()
            if answered:
                self.transport.abort()  # a reply now would be taken for a part, or the answer, of another
                return
        self.transport.write(refusal.reply())
        self._due = self.loop.time() + LINGER
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _count(self, refusal: Refusal) -> None:
        self._connections.rejections.count(refusal.reason, self.network)
