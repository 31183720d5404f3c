"""A forward proxy for tests: plain requests and tunnels, all to one server, with or without a login."""

import base64
import socket
import threading
from contextlib import suppress
from typing import Self


class Proxy:
    """A proxy that forwards everything to one port of this machine, whatever host is asked for.

    Parameters
    ----------
    port: where it forwards to.
    login: the name and password that it requires, as ``name:password``; empty for none.

    Attributes
    ----------
    asked: the first lines of the requests it got.
    """

    def __init__(self, port: int, login: str = "") -> None:
        self._port = port
        self._login = base64.b64encode(login.encode()) if login else b""
        self.asked: list[str] = []
        self._threads: list[threading.Thread] = []

    @property
    def address(self) -> str:
        """Its host and port."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(60.0)
        for thread in self._threads:
            thread.join(60.0)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                thread = threading.Thread(target=self._serve, args=(connection,))
                thread.start()
                self._threads.append(thread)

    def _serve(self, caller: socket.socket) -> None:
        with caller, suppress(OSError):
            caller.settimeout(20.0)
            head = b""
            while b"\r\n\r\n" not in head:
                part = caller.recv(65_536)
                if not part:
                    return
                head += part
            line = head.partition(b"\r\n")[0]
            self.asked.append(line.decode())
            if self._login and b"proxy-authorization: basic " + self._login.lower() not in head.lower():
                caller.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            with socket.create_connection(("127.0.0.1", self._port), timeout=60.0) as server:
                if line.startswith(b"CONNECT "):
                    caller.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                else:
                    # One request per connection is enough: the server closes it after its response.
                    method, target, version = line.split(b" ")
                    path = b"/" + target.split(b"/", 3)[3]
                    rest = head.partition(b"\r\n")[2]
                    server.sendall(b" ".join((method, path, version)) + b"\r\nConnection: close\r\n" + rest)
                upstream = threading.Thread(target=_copy, args=(caller, server))
                upstream.start()
                _copy(server, caller)
                upstream.join(60.0)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65_536):
            target.sendall(part)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
