"""Real Redis servers for tests: started on a free port, in a directory of their own, and stopped after them."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.ports import free_port

SERVER = shutil.which("redis-server") or shutil.which("valkey-server")


class RedisServer:
    """A server.

    Parameters
    ----------
    directory: where its files are.
    options: of the command line, without their dashes.
    environment: variables that it gets in addition (default: none).
    """

    def __init__(self, directory: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        if SERVER is None:
            pytest.fail("redis-server is missing: make test installs it, or apt-get install redis-server")
        self.directory = directory
        self.options = options
        self._environment = environment or {}
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def address(self, name: str, **options: object) -> str:
        """The address of a store on it.

        Parameters
        ----------
        name: of the gateways that share games; tests with different names do not meet.
        options: what stands after the name.
        """
        rest = "".join(f"&{key}={value}" for key, value in options.items())
        return f"redis://127.0.0.1:{self.port}/0?name={name}{rest}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        variables = {**os.environ, **self._environment}
        self.process = subprocess.Popen(
            self._command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables
        )
        for _ in range(6000):
            with socket.socket() as asking:
                asking.settimeout(60.0)
                try:
                    asking.connect(("127.0.0.1", self.port))
                    asking.sendall(b"PING\r\n")
                    if asking.recv(16).startswith(b"+PONG"):
                        return
                except OSError:
                    pass
            time.sleep(0.01)
        raise AssertionError("redis-server does not answer")

    def _command(self) -> list[str]:
        plain = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory), "--save", "")
        return [str(SERVER), *plain, *self.options]

    def command(self, *words: str) -> bytes:
        """The reply to a command, as it comes."""
        with socket.create_connection(("127.0.0.1", self.port), 60.0) as asking:
            asking.sendall(" ".join(words).encode() + b"\r\n")
            return asking.recv(1 << 16)

    def has_copy(self) -> bool:
        """Whether a write is acknowledged by a copy, so that ``WAIT 1`` is satisfied.

        A copy that is online has not acknowledged anything yet: for a moment, ``WAIT 1`` would fail.
        """
        with socket.create_connection(("127.0.0.1", self.port), 60.0) as asking:
            asking.sendall(b"SET copied 1\r\nWAIT 1 1000\r\n")
            got = b""
            while got.count(b"\r\n") < 2 and (part := asking.recv(64)):
                got += part
            return got == b"+OK\r\n:1\r\n"

    def kill(self) -> None:
        """End it at once, as a power failure would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


# Milliseconds without an answer after which a server counts as down: one that lives never does, however busy the
# machine is; one that was killed does soon. Sentinel promotes only copies that lost their main server at most ten times
# as long before it noticed, so that a much shorter time can leave it without any.
NEVER_DOWN, SOON_DOWN = 600_000, 1000


class RedisSentinel(RedisServer):
    """A sentinel that watches a server by the name ``main``, and alone decides on a failover.

    Parameters
    ----------
    directory: where its files are.
    watched: the server.
    """

    def __init__(self, directory: Path, watched: RedisServer) -> None:
        super().__init__(directory)
        self._config = directory / "sentinel.conf"
        self._config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {directory}\n"
            f"sentinel monitor main 127.0.0.1 {watched.port} 1\n"
            f"sentinel down-after-milliseconds main {NEVER_DOWN}\nsentinel failover-timeout main 2000\n"
        )

    def main_port(self) -> int:
        """The port of the server that it takes for the main one."""
        found = re.search(rb"address=127\.0\.0\.1:(\d+),", self.command("INFO sentinel"))
        assert found is not None
        return int(found[1])

    def watch(self, down_after: int) -> None:
        """Set how long a server may be silent, in milliseconds."""
        assert self.command(f"SENTINEL SET main down-after-milliseconds {down_after}").startswith(b"+OK")

    def fail_over(self, main: RedisServer, copy: RedisServer, options: Sequence[str]) -> None:
        """Kill the main server, wait until its copy has taken over, and start the one that was killed as its copy.

        Parameters
        ----------
        main, copy: the servers.
        options: with which the old main server starts.
        """
        main.kill()
        self.watch(SOON_DOWN)
        for _ in range(6000):
            if self.main_port() == copy.port and b"role:master" in copy.command("INFO replication"):
                break
            time.sleep(0.01)
        else:
            raise AssertionError("Sentinel promotes no copy")
        self.watch(NEVER_DOWN)
        main.options = (*options, "--replicaof", "127.0.0.1", str(copy.port))
        main.start()

    def _command(self) -> list[str]:
        return [str(SERVER), str(self._config), "--sentinel"]


@contextmanager
def redis_server(directory: Path, *options: str) -> Iterator[RedisServer]:
    """A server that ends with the block."""
    with RedisServer(directory, *options) as server:
        yield server
