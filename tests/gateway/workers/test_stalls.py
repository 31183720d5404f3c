"""Processes that hang for longer than anybody waits for them: the long version, for ``make faults``."""

import asyncio
import os
import signal
import threading
import time
from contextlib import closing
from itertools import count, takewhile
from pathlib import Path

import pytest

from bpac.routing.router import Router
from bpac.testing import ScriptedServer
from tests.gateway.configured import wait_for
from tests.gateway.law import KnownPair, Question, Seen, crowd
from tests.gateway.served import journal_at, steps_served
from tests.gateway.workers.crew import Crew
from tests.gateway.workers.test_kills import KILLS

pytestmark = pytest.mark.skipif(not os.environ.get("BPAC_STALLS"), reason="takes minutes: set BPAC_STALLS=1")

# Longer than a request waits for the owner; and until the supervisor kills a process.
LATE, HUNG = 12.0, 40.0


@pytest.mark.parametrize(("name", "seconds"), [("owner", LATE), ("owner", HUNG), ("front 0", LATE), ("front 0", HUNG)])
def test_a_process_that_hangs_loses_nothing(tmp_path: Path, name: str, seconds: float) -> None:
    """SIGSTOP under load, and SIGCONT or the end: every answer is in the journal once, every audit has an outcome."""
    seen: list[Seen] = []
    stop = threading.Event()
    with (
        ScriptedServer(KnownPair(delay=0.002, delay_of_loss=0.05)) as models,
        closing(Crew(tmp_path, models.base_url)) as gateway,
    ):
        gateway.start()
        numbers = count()

        def ask() -> None:
            asyncio.run(crowd(gateway.url, map(Question, takewhile(lambda _: not stop.is_set(), numbers)), 16, seen))

        load = threading.Thread(target=ask)
        load.start()
        try:
            wait_for(lambda: len(seen) > 50)
            pid = gateway.pid(name)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            if seconds == LATE:
                os.kill(pid, signal.SIGCONT)
            wait_for(gateway.complete)
            before = len(seen)
            wait_for(lambda: len(seen) > before + 50)
        finally:
            stop.set()
            load.join()
        wait_for(lambda: gateway.game()["owed"] == 0)
        reported = gateway.game()
        assert (gateway.pid(name) == pid) == (seconds == LATE)
        assert gateway.end(signal.SIGTERM) == 0
    assert len(steps_served(gateway.store, seen)) > 5 * KILLS
    router = Router.rebuild(journal_at(gateway.store))
    assert (router.step, router.threshold) == (reported["steps"], reported["threshold"])
