"""What the gateway adds to a request: direct calls, a bare pass-through and the gateway on the same upstream."""

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil  # type: ignore[import-untyped]

PATH = "/v1/chat/completions"
CONFIG = """
[gateway]
listen = "127.0.0.1:{port}"
store = "sqlite:///{directory}/bpac.db"
[models.m]
base_url = "http://127.0.0.1:{upstream}/v1"
model = "m"
[routes.m]
draft = "m"
expert = "m"
epsilon = 0.2
policy = "{policy}"
{score}
"""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(arguments: list[str], port: int) -> Iterator[psutil.Process]:
    process = subprocess.Popen([sys.executable, *arguments])
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1).close()
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.05)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


async def load(port: int, requests: int, at_once: int, stream: bool) -> tuple[float, list[float]]:
    """Seconds in all, and of each request."""
    body = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "x" * 200}]})
    times: list[float] = []
    left = iter(range(requests))

    async def ask(session: aiohttp.ClientSession) -> None:
        for _ in left:
            started = time.perf_counter()
            async with session.post(f"http://127.0.0.1:{port}{PATH}", data=body) as response:
                await response.read()
                if response.status != 200:
                    raise RuntimeError(f"status {response.status}")
            times.append(time.perf_counter() - started)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        started = time.perf_counter()
        await asyncio.gather(*(ask(session) for _ in range(at_once)))
        return time.perf_counter() - started, times


def measure(place: tuple[str, int, psutil.Process], requests: int, at_once: int, stream: bool) -> dict[str, Any]:
    name, port, process = place
    asyncio.run(load(port, max(50, at_once), at_once, stream))
    before = process.cpu_times()
    seconds, times = asyncio.run(load(port, requests, at_once, stream))
    after = process.cpu_times()
    cpu = (after.user + after.system - before.user - before.system) / requests
    return {
        "server": name,
        "at_once": at_once,
        "stream": stream,
        "median_ms": round(1000 * statistics.median(times), 3),
        "per_second": round(requests / seconds, 1),
        "cpu_us": round(1e6 * cpu),
        "megabytes": round(process.memory_info().rss / 2**20, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--streams", choices=("whole", "streamed", "both"), default="both")
    options = parser.parse_args()
    kinds = {"whole": [False], "streamed": [True], "both": [False, True]}[options.streams]
    upstream_port, bare_port = free_port(), free_port()
    servers = "benchmarks.gateway_servers"
    with (
        tempfile.TemporaryDirectory() as directory,
        running(["-m", servers, "upstream", str(upstream_port)], upstream_port) as up,
    ):
        places: list[tuple[str, int, psutil.Process]] = [("direct", upstream_port, up)]
        url = f"http://127.0.0.1:{upstream_port}{PATH}"
        with running(["-m", servers, "pass-through", str(bare_port), url], bare_port) as bare:
            places.append(("pass-through", bare_port, bare))
            _compare(places, options, kinds)
        for name, policy, score in (
            ("gateway, drafts kept", "never", ""),
            ("gateway, experts called", "always", ""),
            ("gateway, 16 tokens", "never", 'score = { name = "perplexity", first_tokens = 16 }'),
        ):
            port, home = free_port(), Path(directory) / name
            home.mkdir()
            config = home / "gateway.toml"
            config.write_text(
                CONFIG.format(port=port, directory=home, upstream=upstream_port, policy=policy, score=score)
            )
            with running(
                ["-m", "tests.gateway.serving", "serve", str(config), "--log-level", "warning"], port
            ) as gateway:
                _compare([(name, port, gateway)], options, kinds)


def _compare(places: list[tuple[str, int, psutil.Process]], options: argparse.Namespace, kinds: list[bool]) -> None:
    for place in places:
        for stream in kinds:
            for at_once in options.at_once:
                requests = max(200, options.requests // 3) if at_once == 1 else options.requests
                print(json.dumps(measure(place, requests, at_once, stream)), flush=True)


if __name__ == "__main__":
    main()
