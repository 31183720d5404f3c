"""How long a dashboard takes to open on a long journal, and how many bytes it is.

    python -m benchmarks.dashboard [--rounds 1000000]

A journal of that many rounds is written through a live game of the gateway into a SQLite store in a temporary
directory, as a gateway that is stopped leaves it. Then ``bpac serve`` starts on it, and the page and its data are
fetched.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.processes import free_port, running
from bpac.gateway.config.file import load_config
from bpac.gateway.games.live_game import LiveGame
from bpac.replay.simulation.laws import PowerLaw
from bpac.stores import open_store

LAW = PowerLaw(most=0.5, power=1.5, crowding=2.0)
BLOCK = 10_000
CONFIG = """
[gateway]
listen = "127.0.0.1:{port}"
store = "sqlite:///{directory}/bpac.db"
[models.small]
base_url = "http://127.0.0.1:9/v1"
model = "small"
price = 0.5
[models.large]
base_url = "http://127.0.0.1:9/v1"
model = "large"
price = 8.0
[routes.homework]
draft = "small"
expert = "large"
epsilon = 0.05
"""


async def play(game: LiveGame, rounds: Iterable[tuple[float, float, int]]) -> None:
    """Play some rounds in one turn of the event loop, and so in one commit."""
    for uncertainty, loss, length in rounds:
        decision = game.decide(uncertainty, game.drafting.arrive(), {"draft_tokens": length // 5})
        if decision.call_expert:
            game.outcomes.resolve(decision, loss, {"expert_tokens": length})
    await game.store.durable()


def write_journal(config: Path, rounds: int) -> None:
    """Play so many rounds, each outcome known at once, and stop as a gateway stops."""
    settings = load_config(config)
    store = open_store(settings.store)
    route = settings.routes["homework"]
    game = LiveGame(store, route, "", route.alpha, settings.snapshot_every)
    rng = np.random.default_rng(0)
    for start in tqdm(range(0, rounds, BLOCK), desc="journal", unit="block", leave=False):
        count = min(BLOCK, rounds - start)
        uncertainties, losses = LAW.draw(count, rng)
        tokens = rng.integers(50, 2000, size=count).tolist()
        asyncio.run(play(game, zip(uncertainties.tolist(), losses.tolist(), tokens, strict=True)))
    game.stop()
    game.journal.snapshot()
    store.close()


def fetched(url: str) -> tuple[float, bytes]:
    """Seconds for a page, and the page."""
    started = time.perf_counter()
    with urllib.request.urlopen(url, timeout=60) as response:
        body: bytes = response.read()
    return time.perf_counter() - started, body


def opened(config: Path, port: int) -> dict[str, Any]:
    """Start a gateway, fetch everything that a dashboard opens with, and stop it."""
    url = f"http://127.0.0.1:{port}"
    started = time.perf_counter()
    bpac = Path(sys.executable).with_name("bpac")
    with running("gateway", [str(bpac), "serve", str(config), "--log-level", "warning"], port):
        ready = time.perf_counter() - started
        page, shell = fetched(f"{url}/dashboard")
        data, document = fetched(f"{url}/dashboard/data")
        again, _ = fetched(f"{url}/dashboard/data")
        game = json.loads(document)["games"][0]
        listed, _ = fetched(f"{url}/dashboard/decisions?game={game['game']}")
        middle = game["steps"] // 2
        deep, _ = fetched(f"{url}/dashboard/decisions?game={game['game']}&before={middle}&answered_by=expert")
        rare, _ = fetched(f"{url}/dashboard/decisions?game={game['game']}&state=forfeited")
    return {
        "rounds": game["steps"],
        "start_seconds": round(ready, 3),
        "page_seconds": round(page, 3),
        "data_seconds": round(data, 3),
        "data_again_seconds": round(again, 3),
        "open_seconds": round(ready + page + data, 3),
        "decisions_seconds": round(listed, 3),
        "decisions_in_the_middle_seconds": round(deep, 3),
        "rare_decisions_seconds": round(rare, 3),
        "page_bytes": len(shell),
        "data_bytes": len(document),
        "points": len(game["series"]["step"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    rounds = parser.parse_args().rounds
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "gateway.toml"
        config.write_text(CONFIG.format(port=port, directory=directory))
        started = time.perf_counter()
        write_journal(config, rounds)
        written = time.perf_counter() - started
        size = sum(file.stat().st_size for file in Path(directory).glob("bpac.db*"))
        result = opened(config, port)
        print(json.dumps(result | {"journal_bytes": size, "written_seconds": round(written, 1)}))


if __name__ == "__main__":
    main()
