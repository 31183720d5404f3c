"""Servers in processes of their own, whose processor time and memory are read from outside."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class Server:
    """A running server.

    Parameters
    ----------
    name: its name in the results.
    port: the port it listens on.
    process: its process; those of its children are added to it.
    key: the API key it requires (default: none).
    """

    name: str
    port: int
    process: psutil.Process
    key: str = ""

    def cpu(self) -> float:
        """Seconds of processor time used so far."""
        every = [self.process, *self.process.children(recursive=True)]
        return float(sum(times.user + times.system for times in (one.cpu_times() for one in every)))

    def megabytes(self) -> float:
        """Memory in use."""
        every = [self.process, *self.process.children(recursive=True)]
        return float(sum(one.memory_info().rss for one in every)) / 2**20


def free_port() -> int:
    """A port that no server listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(
    name: str,
    command: list[str],
    port: int,
    environment: Mapping[str, str] | None = None,
    *,
    key: str = "",
    start_timeout: float = 30.0,
) -> Iterator[Server]:
    """A server, from its first answer to the end of the block."""
    process = subprocess.Popen(command, env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL)
    try:
        _wait_for(process, port, start_timeout)
        yield Server(name, port, psutil.Process(process.pid), key)
    finally:
        process.terminate()
        process.wait()


def upstream(**environment: str) -> AbstractContextManager[Server]:
    """A model server."""
    port = free_port()
    return running("upstream", [sys.executable, "-m", "benchmarks.scripted_upstream", str(port)], port, environment)


def pass_through(name: str, url: str) -> AbstractContextManager[Server]:
    """A proxy that only passes bytes on."""
    port = free_port()
    return running(name, [sys.executable, "-m", "benchmarks.pass_through", name, str(port), url], port)


GATEWAY = """
[gateway]
listen = "127.0.0.1:{port}"
store = "sqlite:///{directory}/bpac.db"
[models.m]
base_url = "{upstream}"
model = "m"
[routes.m]
draft = "m"
expert = "m"
epsilon = 0.2
policy = "{policy}"
"""


def gateway(
    name: str, upstream: str, directory: Path, policy: str, *, workers: int = 0
) -> AbstractContextManager[Server]:
    """``bpac serve`` in front of an upstream, with its journal in a directory; 0 workers for one process."""
    home, port = directory / policy, free_port()
    home.mkdir()
    config = home / "gateway.toml"
    config.write_text(GATEWAY.format(port=port, directory=home, upstream=upstream, policy=policy))
    command = [
        sys.executable,
        "-c",
        "from bpac.cli.program import main; main()",
        "serve",
        str(config),
        "--log-level",
        "warning",
        *(["--workers", str(workers)] if workers else []),
    ]
    return running(name, command, port)


def _wait_for(process: "subprocess.Popen[bytes]", port: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with exit code {process.returncode}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} gave no answer in {seconds:.0f} seconds")
