"""HTTP/1.1 on uvicorn and httptools, with limits that apply before a caller is authenticated.

httptools and uvicorn limit neither the size of a request's head, nor the time that it takes, nor the number of
connections per address. This module does:

1. A connection beyond the limit, in total or of its address, gets status 503 and is closed at once, unread.
2. Bytes are counted since the last complete unit: a head, or a part of a body. The parser keeps what is incomplete, so
   more than ``max_head`` bytes of it are refused, whether they are a head, a trailer or the size of a chunk.
3. A head and a body each have a deadline. One timer checks all connections once a second: a timer for every request
   would cost more than the rest of this file.
4. The connection of a caller who does not read the response is closed after ``send_timeout``.
5. When the gateway stops, a connection without a request stays open for a moment. A request that is on its way then is
   answered, and its connection is closed after the response, which says so.
6. A refused request gets OpenAI's error body unless a response has started. Its connection is then read, and the data
   dropped, for two seconds: if it were closed at once, callers who are still sending would lose the response.
"""

import asyncio
from itertools import chain
from typing import Any

from bpac.errors import MissingExtra
from bpac.gateway.auth.addresses import network_of
from bpac.gateway.http.connections.connections import Connections, Refusal

try:
    import httptools
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError as error:
    raise MissingExtra("uvicorn and httptools", "gateway") from error

# Seconds for which the connection of a refused request is still read.
LINGER = 2.0
# Seconds for which a connection without a request stays open when the gateway stops.
GRACE = 0.5
# Requests that a connection may send before the first of them is answered (HTTP pipelining).
MOST_AHEAD = 16

INVALID = Refusal(400, "invalid_http", "not an HTTP/1.1 request: check the address, and that it begins with http://")
LARGE_HEAD = Refusal(431, "head_too_large", "the head of the request is larger than allowed: send shorter headers")
MANY_HEADERS = Refusal(431, "too_many_headers", "the request has more headers than allowed: send fewer")
SLOW_HEAD = Refusal(408, "head_timeout", "the head of the request did not arrive in time")
SLOW_BODY = Refusal(408, "body_timeout", "the body of the request did not arrive in time")
SLOW_READER = Refusal(408, "send_timeout", "the response was not read in time")
FAR_AHEAD = Refusal(429, "pipeline", "too many requests were sent before the first was answered: wait for responses")


class LimitedProtocol(HttpToolsProtocol):
    """One connection of a caller.

    Parameters
    ----------
    connections: all connections of the gateway.
    uvicorns: what uvicorn passes to its protocols.
    """

    def __init__(self, connections: Connections, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._connections = connections
        self._limits = connections.limits
        self.network = ""
        # Bytes since the last complete head or part of a body.
        self._pending = 0
        self._in_head = True
        # The deadline of what is being received, and since when the caller has not read; none if neither applies.
        self._due: float | None = None
        self._unread_since: float | None = None
        self._refused = False
        self._stopping = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        self.network = network_of(self.client[0] if self.client else "")
        self._due = self.loop.time() + self._limits.head_timeout
        if (refusal := self._connections.opened(self)) is not None:
            # Closed at once: a flood of refused connections would use up the file descriptors that others need.
            self._refused = True
            self._count(refusal)
            transport.write(refusal.reply())
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, and check its size."""
        if self._refused:
            return
        self._unset_keepalive_if_required()
        self._pending += len(data)
        if self._due is None and (self.cycle is None or self.cycle.response_complete):
            # Also before a head begins: line breaks alone would keep an idle connection open forever.
            self._due = self.loop.time() + self._limits.head_timeout
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The request is answered as HTTP/1.1; what follows it would be in the other protocol, so it is not read.
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
        """A head begins."""
        self._in_head = True
        if self._due is None:
            self._due = self.loop.time() + self._limits.head_timeout
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Check the head and start to answer."""
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
        if self._stopping:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """A part of the body has arrived."""
        self._pending = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete; what follows belongs to the head of the next one."""
        self._in_head = True
        self._pending = 0
        self._due = None
        super().on_message_complete()

    def shutdown(self) -> None:
        """Close the connection after the request that is being answered, or after a moment if there is none."""
        self._stopping = True
        if self._has_request():
            self.cycle.keep_alive = False
        else:
            self.loop.call_later(GRACE, self._close_unused)

    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close_unused(self) -> None:
        if self._pending and not self._refused:
            self.loop.call_later(GRACE, self._close_unused)  # a head has begun; it has a deadline of its own
        elif not self._has_request():
            self.transport.close()

    def pause_writing(self) -> None:
        """The caller reads more slowly than the response is sent."""
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The caller has caught up."""
        self._unread_since = None
        super().resume_writing()

    def check_timeouts(self, now: float) -> None:
        """Close the connection, or refuse its request, if a deadline has passed."""
        if self._unread_since is not None and now - self._unread_since > self._limits.send_timeout:
            self._count(SLOW_READER)
            self.transport.abort()
        elif self._due is None or now < self._due:
            return
        elif self._refused:
            self.transport.abort()
        elif self.pipeline:
            # Reading is paused while earlier requests are answered: that time does not count against the caller.
            self._due = now + self._limits.body_timeout
        else:
            self._refuse(SLOW_HEAD if self._in_head else SLOW_BODY)

    def _refuse_now(self, refusal: Refusal) -> None:
        """Refuse from within a callback of the parser, which the error stops."""
        self._refuse(refusal)
        raise httptools.HttpParserError(refusal.reason)

    def _refuse(self, refusal: Refusal) -> None:
        self._refused = True
        self._count(refusal)
        self._unset_keepalive_if_required()
        cycle = self.cycle
        if cycle is not None and not (cycle.response_complete and self._in_head):
            # An earlier request is being answered, or this one was answered before it was complete, or is incomplete.
            answered = cycle.response_started or bool(self.pipeline) or self._in_head
            cycle.disconnected = True
            cycle.message_event.set()
            if answered:
                self.transport.abort()  # a reply now would be taken for a part of another response
                return
        self.transport.write(refusal.reply())
        self._due = self.loop.time() + LINGER
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _count(self, refusal: Refusal) -> None:
        self._connections.rejections.count(refusal.reason, self.network)
