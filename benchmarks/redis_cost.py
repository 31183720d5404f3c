"""What a request costs a gateway whose games are in Redis, and what it costs Redis."""

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from benchmarks.load import send
from benchmarks.processes import GATEWAY, Server, free_port, gateway, running, upstream

TURNS = 6


@dataclass(frozen=True, slots=True)
class RedisCost:
    """The cost of requests to a gateway that keeps its games in Redis.

    Parameters
    ----------
    more: microseconds of the gateway's processor time per request beyond those with SQLite, folding included; 0 if it
        takes no more.
    redis: microseconds of the Redis server's processor time per request.
    bytes: memory of the Redis server per request, until its entries are archived.
    """

    more: float
    redis: float
    bytes: float


def redis_cost(requests: int = 6000, at_once: int = 64) -> RedisCost:
    """Measure a gateway and a Redis server with an append-only file, beside the same gateway with SQLite.

    The draft is as good as the expert, so that after some requests nearly all drafts are kept.
    """
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        base = f"http://127.0.0.1:{stack.enter_context(upstream()).port}/v1"
        server = stack.enter_context(redis(directory))
        shared = stack.enter_context(shared_gateway(directory, base, server.port))
        alone = stack.enter_context(gateway("SQLite", base, directory, "portfolio"))
        for one in (shared, alone):
            send(one.port, max(1000, requests // 4), at_once, stream=False)
        cpu = {one.name: 0.0 for one in (server, shared, alone)}
        memory = server.megabytes()
        for _ in range(TURNS):  # in turns, so that what else the machine does falls on both
            for one in (shared, alone):
                before = {each.name: each.cpu() for each in (server, one)}
                send(one.port, requests // TURNS, at_once, stream=False)
                for each in (server, one):
                    cpu[each.name] += each.cpu() - before[each.name]
        per_request = {name: 1e6 * used / requests for name, used in cpu.items()}
        more = max(0.0, per_request[shared.name] - per_request[alone.name])
        return RedisCost(more, per_request[server.name], 2**20 * (server.megabytes() - memory) / requests)


@contextmanager
def redis(directory: Path) -> Iterator[Server]:
    """A Redis server with an append-only file."""
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("redis-server is not installed: run make deploy-tools")
    port = free_port()
    command = [program, "--port", str(port), "--dir", str(directory), "--appendonly", "yes", "--save", ""]
    process = psutil.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield Server("the Redis server", port, process)
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    give_up = time.monotonic() + 30.0
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.02)


@contextmanager
def shared_gateway(directory: Path, models: str, redis: int, name: str = "Redis") -> Iterator[Server]:
    """``bpac serve`` in front of a model server, with its games in the Redis server on a port."""
    port, config = free_port(), directory / "gateway.toml"
    text = GATEWAY.format(port=port, directory=directory, upstream=models, policy="portfolio")
    config.write_text(text.replace(f"sqlite:///{directory}/bpac.db", f"redis://127.0.0.1:{redis}/0"))
    serve = "from bpac.cli.program import main; main()"
    with running(name, [sys.executable, "-c", serve, "serve", str(config), "--log-level", "error"], port) as ours:
        yield ours
