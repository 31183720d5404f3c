"""What a request costs in a game that gateways share through Redis: calls, their time, and processor time.

A real redis-server is started for it. Requests do nothing but arrive, be decided and get an outcome, as many at once as
are said; a folder turns them into a journal in the same process.
"""

import argparse
import asyncio
import secrets
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

import psutil  # type: ignore[import-untyped]

from bpac.routing.journal.entries import Opened
from bpac.routing.recorded_terms import DecisionRules, draft_scores
from bpac.routing.router import Router
from bpac.stores.redis.folding.folder import Folder
from bpac.stores.redis.journal import PlainRestoring
from bpac.stores.redis.messages import resolving
from bpac.stores.redis.replicas.replica import GameReplica
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.server.connecting import RedisClient
from bpac.stores.redis.store import RedisStore

AT_ONCE = (1, 16, 64, 256)
SETTINGS = Router(0.1, 0.1).settings
RULES = DecisionRules.of(SETTINGS)


async def measured(address: str, at_once: int, requests: int, server: psutil.Process) -> str:
    """One line of figures."""
    # A server with an append-only file has the games of the one before: each line has its own.
    where = read_address(f"{address}?name=bench-{secrets.token_hex(8)}")
    store, client = RedisStore(where), RedisClient(where)
    game = store.open_game("bench", "", "{}")
    folder = Folder(
        client, store.of(game), game, replica="", settings=Opened(SETTINGS.to_json()), restoring=PlainRestoring()
    )
    side = GameReplica(client, store.of(game), RULES, where.timeout, lambda name: setattr(folder, "replica", name))
    await side.join()
    times: dict[str, list[float]] = {"arrival": [], "decision": []}
    folding = True

    async def fold() -> None:
        while folding:
            if not await folder.step():
                await asyncio.sleep(0.002)

    async def caller(count: int) -> None:
        for number in range(count):
            began = time.perf_counter()
            ticket = await side.arrive()
            arrived = time.perf_counter()
            decision = await side.decide(ticket, draft_scores(RULES, number % 100 / 100, 0.0), {"at": 1.0})
            times["arrival"].append(arrived - began)
            times["decision"].append(time.perf_counter() - arrived)
            if decision is not None and decision.call_expert:
                side.tell(resolving(decision.step, 0.0, {}))

    task = asyncio.create_task(fold())
    await caller(5)
    calls, used, ours = side.calls, sum(server.cpu_times()[:2]), time.process_time()
    began = time.perf_counter()
    await asyncio.gather(*(caller(requests // at_once) for _ in range(at_once)))
    seconds, done = time.perf_counter() - began, requests // at_once * at_once
    calls, used, ours = side.calls - calls, sum(server.cpu_times()[:2]) - used, time.process_time() - ours
    while folder.state is None or folder.state.route.step < done:
        await asyncio.sleep(0.01)
    behind = time.perf_counter() - began - seconds
    folding = False
    await task
    await side.leave()
    await client.close()
    store.close()
    medians = ", ".join(f"{name} {1e3 * statistics.median(found):5.2f} ms" for name, found in times.items())
    return (
        f"{at_once:4} at once: {done / seconds:6.0f} requests/s, {calls / done:5.2f} calls of Redis per request, "
        f"{medians}; processor time: Redis {1e6 * used / done:4.0f} µs, this process {1e6 * ours / done:4.0f} µs "
        f"with folding; {1e3 * behind:4.0f} ms until all was folded"
    )


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4000, help="requests for each line (default: 4000)")
    options = parser.parse_args()
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        print("redis-server is not installed: nothing to measure")
        return
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        for fsync in ("no", "everysec", "always"):
            words = [program, "--port", str(port), "--dir", directory, "--save", "", "--bind", "127.0.0.1"]
            words += ["--appendonly", "yes", "--appendfsync", fsync] if fsync != "no" else []
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
            try:
                time.sleep(0.5)
                print(f"appendfsync {fsync}" if fsync != "no" else "no append-only file")
                for at_once in AT_ONCE:
                    requests = options.requests if at_once > 1 else options.requests // 8
                    line = measured(f"redis://127.0.0.1:{port}", at_once, requests, psutil.Process(process.pid))
                    print(asyncio.run(line), flush=True)
            finally:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
