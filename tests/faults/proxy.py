"""A TCP proxy between one gateway and Redis that can lose, or hold back, what passes through it."""

import selectors
import socket
import threading
from types import TracebackType
from typing import Literal

# Nothing is lost; all is lost; only replies are lost; all is held back and delivered in the end.
Mode = Literal["pass", "lose all", "lose replies", "hold back"]
PARTITIONS: tuple[Mode, ...] = ("lose all", "lose replies", "hold back")


class _End:
    """One end of a connection: what comes in here goes out at the other one."""

    def __init__(self, plug: socket.socket, *, asks: bool) -> None:
        self.plug = plug
        self.asks = asks
        self.other: _End
        self.held = b""
        self.lost = False


class DroppingProxy:
    """A proxy, from the beginning of a block to its end.

    Parameters
    ----------
    port: of the server behind it.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._mode: Mode = "pass"
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._stops = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "DroppingProxy":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stops = True
        self._wake.send(b"x")
        self._thread.join()

    def set(self, mode: Mode) -> None:
        """Pass on, or stop to. Connections that lost something are closed when all passes again."""
        self._mode = mode
        self._wake.send(b"x")

    def _run(self) -> None:
        self._selector.register(self._listening, selectors.EVENT_READ, "new")
        self._selector.register(self._woken, selectors.EVENT_READ, "mode")
        while not self._stops:
            for key, _ in self._selector.select():
                if key.data == "new":
                    self._accept()
                elif key.data == "mode":
                    self._woken.recv(100)
                    self._changed()
                elif key.data.plug.fileno() >= 0:
                    self._moved(key.data)
        for end in self._ends():
            end.plug.close()
        self._selector.close()
        for plug in (self._listening, self._wake, self._woken):
            plug.close()

    def _ends(self) -> list[_End]:
        return [key.data for key in list(self._selector.get_map().values()) if isinstance(key.data, _End)]

    def _accept(self) -> None:
        front, _ = self._listening.accept()
        try:
            back = socket.create_connection(("127.0.0.1", self._to), 1.0)
        except OSError:
            front.close()
            return
        one, two = _End(front, asks=True), _End(back, asks=False)
        one.other, two.other = two, one
        for end in (one, two):
            end.plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(end.plug, selectors.EVENT_READ, end)

    def _moved(self, end: _End) -> None:
        try:
            data = end.plug.recv(1 << 16)
        except OSError:
            data = b""
        # A partition also hides that the other side has closed; what it sent before is delivered all the same.
        if not data and self._mode == "hold back" and end.asks:
            self._selector.unregister(end.plug)
            end.plug.close()
        elif not data:
            self._close(end)
        elif self._mode == "pass":
            self._send(end.other, data)
        elif self._mode == "hold back":
            end.other.held += data
        elif self._mode == "lose replies" and end.asks:
            end.lost = True
            self._send(end.other, data)
        else:
            end.lost = True

    def _changed(self) -> None:
        if self._mode != "pass":
            return
        for end in self._ends():
            if end.lost or end.other.lost:
                self._close(end)
            elif end.held:
                held, end.held = end.held, b""
                self._send(end, held)
                if end.other.plug.fileno() < 0:
                    self._close(end)

    def _send(self, end: _End, data: bytes) -> None:
        try:
            end.plug.sendall(data)
        except OSError:
            self._close(end)

    def _close(self, end: _End) -> None:
        for one in (end, end.other):
            if one.plug.fileno() >= 0:
                self._selector.unregister(one.plug)
                one.plug.close()
