"""Processes of a gateway are killed under load: nothing that was served is lost, nothing counts twice."""

import asyncio
import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import count, takewhile
from pathlib import Path
from statistics import median

from bpac.routing.router import Router
from bpac.testing import ScriptedServer
from tests.gateway.configured import get_json, wait_for
from tests.gateway.law import KnownPair, Question, Seen, crowd
from tests.gateway.served import journal_at, steps_served
from tests.gateway.workers.crew import Crew

KILLS = int(os.environ.get("BPAC_WORKER_KILLS", "2"))
VICTIMS = ("owner", "front 0", "owner", "front 1")


def test_nothing_served_is_lost_when_processes_are_killed(tmp_path: Path) -> None:
    """Fronts and owner in turn: every answer has its decision in the journal, every audit exactly one outcome."""
    rng = random.Random(7)
    seen: list[Seen] = []
    stop = threading.Event()
    recovered: dict[str, list[float]] = {}
    with (
        ScriptedServer(KnownPair(delay=0.002, delay_of_loss=0.05)) as models,
        closing(Crew(tmp_path, models.base_url)) as gateway,
    ):
        gateway.start()
        load = threading.Thread(target=_ask_until, args=(stop, gateway.url, count(), seen))
        load.start()
        try:
            for kill in range(KILLS):
                threading.Event().wait(rng.uniform(0.1, 0.4))
                before = len(seen)
                victim = VICTIMS[kill % len(VICTIMS)]
                recovered.setdefault(victim.split()[0], []).append(gateway.killed(victim))
                workers = get_json(f"{gateway.url}/dashboard/data")["workers"]
                ends = {"owner": workers["owner"]} | {f"front {one['front']}": one for one in workers["lost_fronts"]}
                assert ends[victim]["restarts"] >= ends[victim]["lately"] >= 1
                wait_for(lambda before=before: len(seen) > before + 20)  # type: ignore[misc]
        finally:
            stop.set()
            load.join()
        wait_for(lambda: gateway.game()["owed"] == 0)
        reported = gateway.game()
        assert gateway.end(signal.SIGTERM) == 0
    for process, seconds in recovered.items():
        times = f"killed {len(seconds)} times, back after {median(seconds):.2f} s, at most {max(seconds):.2f} s"
        sys.stdout.write(f"{process}: {times}\n")
    assert len(steps_served(gateway.store, seen)) > 5 * KILLS
    router = Router.rebuild(journal_at(gateway.store))
    assert (router.step, router.threshold) == (reported["steps"], reported["threshold"])


def _ask_until(stop: threading.Event, url: str, numbers: Iterator[int], seen: list[Seen]) -> None:
    questions = map(Question, takewhile(lambda _: not stop.is_set(), numbers))
    asyncio.run(crowd(url, questions, 16, seen))
