"""Killed under load and restarted: nothing is lost, nothing counts twice, nothing goes uncharged."""

import asyncio
import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import count, takewhile
from pathlib import Path

from bpac.routing.journal.entries import Resolved
from bpac.routing.router import Router
from bpac.testing import ScriptedServer
from tests.gateway.configured import get_json
from tests.gateway.law import KnownPair, Question, Seen, crowd
from tests.gateway.served import journal_at, steps_served
from tests.gateway.serving import ManyLives, Process

KILLS = int(os.environ.get("BPAC_KILLS", "25"))


def test_no_served_decision_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    """Every answer that a client saw has its decision in the journal; after each restart the state is the journal's."""
    rng = random.Random(11)
    seen: list[Seen] = []
    numbers = count()
    with (
        ScriptedServer(KnownPair(delay=0.002, delay_of_loss=0.05)) as models,
        closing(ManyLives(tmp_path, models.base_url)) as gateway,
    ):
        for _ in range(KILLS):
            gateway.start()
            _check_restarted(gateway)
            stop = threading.Event()
            load = threading.Thread(target=_ask_until, args=(stop, gateway.url, numbers, seen))
            load.start()
            threading.Event().wait(rng.uniform(0.02, 0.4))
            assert gateway.end(signal.SIGKILL) == -signal.SIGKILL
            stop.set()
            load.join()
        gateway.start()
        _check_restarted(gateway)
        assert gateway.end(signal.SIGTERM) == 0
    assert len(steps_served(gateway.store, seen)) == len(seen) > 5 * KILLS


def _ask_until(stop: threading.Event, url: str, numbers: Iterator[int], seen: list[Seen]) -> None:
    questions = map(Question, takewhile(lambda _: not stop.is_set(), numbers))
    asyncio.run(crowd(url, questions, 16, seen))


def _check_restarted(gateway: Process) -> None:
    """The state is that of the journal; rounds that the crash cut off are forfeited, and so stay charged."""
    (reported,) = get_json(f"{gateway.url}/v1/status")["routes"]["homework"]
    entries = journal_at(gateway.store)
    router = Router.rebuild(entries)
    folded = json.loads(json.dumps(router.summary().to_json()))
    assert {name: reported[name] for name in folded} == folded
    assert router.owed == ()
    unknown = [entry for entry in entries if isinstance(entry, Resolved) and entry.loss is None]
    assert reported["forfeits"] == ({"restart": len(unknown)} if unknown else {})
