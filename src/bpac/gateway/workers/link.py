"""A connection between two processes of a gateway, over a Unix socket: messages in batches.

1. A message is a list of plain values. What is sent within one turn of the event loop goes out as one frame: the length
   in four bytes, and a list of messages in MessagePack.
2. A frame that cannot be read ends the connection: nothing that follows it could be trusted. So does one that is larger
   than ``LARGEST``.
3. Nothing is dropped: what the other side does not read waits in memory. Whoever sends must limit what is under way,
   and can ask ``is_full`` whether the other side has stopped reading.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

import msgspec

log = logging.getLogger("bpac.gateway")

# Bytes of the largest frame: a batch of requests, a few of which may carry two whole answers.
LARGEST = 256 * 2**20
# Bytes that may wait for the other side to read them before new requests are refused.
FULL = 8 * 2**20
_HEAD = 4

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[list[Any]]).decode

Message = list[Any]


def _encodable(value: Any) -> Any:
    """The same value, where halves of surrogate pairs are replaced and numbers beyond 64 bits cut."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int):
        return max(-(2**63), min(value, 2**63 - 1))
    if isinstance(value, dict):
        return {_encodable(key): _encodable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(one) for one in value]
    return value


class ProcessLink(asyncio.Protocol):
    """One side of a connection.

    Parameters
    ----------
    receive: called with each batch of messages.
    lost: called once when the connection has ended, with the reason.

    Attributes
    ----------
    ended: whether nothing can be sent any more.
    fault: whether the other side sent something that cannot be read.
    """

    def __init__(self, receive: Callable[[list[Message]], None], lost: Callable[[str], None]) -> None:
        self._receive = receive
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._arrived = bytearray()
        self._out: list[Message] = []
        self._reason = ""
        self._loop = asyncio.get_running_loop()
        self.ended = False
        self.fault = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=FULL)

    @property
    def is_full(self) -> bool:
        """Whether more waits for the other side than it seems to read."""
        return self._transport is not None and self._transport.get_write_buffer_size() > FULL

    def send(self, message: Message) -> None:
        """Send a message at the end of this turn of the event loop; nothing happens if the connection has ended."""
        if self.ended:
            return
        self._out.append(message)
        if len(self._out) == 1:
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send what waits for the end of the turn."""
        if self._out and self._transport is not None and not self.ended:
            messages, self._out = self._out, []
            try:
                frame = _encode(messages)
            except (UnicodeError, OverflowError):
                frame = _encode([_encodable(message) for message in messages])
            self._transport.write(len(frame).to_bytes(_HEAD, "big") + frame)

    def data_received(self, data: bytes) -> None:
        """Read whole frames."""
        if self.ended:
            return
        arrived = self._arrived
        arrived += data
        start = 0
        while len(arrived) >= start + _HEAD:
            end = start + _HEAD + int.from_bytes(arrived[start : start + _HEAD], "big")
            if end - start > LARGEST:
                self._fail(f"a frame of {end - start} bytes is too large")
                return
            if len(arrived) < end:
                break
            try:
                messages = _decode(memoryview(arrived)[start + _HEAD : end])
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                self._fail(f"a frame cannot be read ({error})")
                return
            start = end
            self._receive(messages)
            if self.ended:
                return
        if start:
            del arrived[:start]

    def _fail(self, reason: str) -> None:
        self.fault = True
        self.close(reason)

    def close(self, reason: str) -> None:
        """End the connection.

        Parameters
        ----------
        reason: why; it is passed to ``lost``.
        """
        if not self.ended:
            self.flush()
            self.ended = True
            self._reason = reason
            if self._transport is not None:
                self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end."""
        self.ended = True
        if self._transport is not None:
            self._transport = None
            self._lost(self._reason or (str(error) if error is not None else "the other process closed it"))
