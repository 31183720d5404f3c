"""A disk that is full now and then, under load: every answer that was served is a round of the journal, once."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from bpac.gateway.http.dashboard.dashboard import SIGNED_IN as OPERATOR
from bpac.testing import Reply, Request
from tests.gateway.configured import settings, wait_for
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running
from tests.gateway.serving import main, to_toml
from tests.gateway.store.disks import decided, fill_disk, ready

OUTAGES = 3
CALLERS = 6


def script(request: Request) -> Reply:
    """Drafts that take a moment, so that requests are under way when the disk is full; one in eight is wrong."""
    text = str(request.number % 8) if request.body["model"] == "draft" else "1"
    return Reply(text, delay=0.002 * (request.number % 5), probability=0.5 + 0.05 * (request.number % 8))


@pytest.mark.parametrize("sync", ["", "?sync=full"])
def test_what_was_served_is_durable(tmp_path: Path, small_disk: Path, sync: str) -> None:
    """Answers are errors or rounds; the journal has no gap, and an audit finds no difference."""
    store = f"sqlite:///{small_disk}/bpac.db{sync}"
    served: list[str] = []
    statuses: set[int] = set()
    stopping = threading.Event()

    def call(stream: bool) -> None:
        while not stopping.is_set():
            got = post(gateway.url, ASK | {"stream": stream})
            statuses.add(got.status)
            if got.status == 200:
                served.append(got.headers["x-bpac-decision"])

    with Running(script, gateway={"store": store}, epsilon=0.3) as (gateway, models):
        callers = [threading.Thread(target=call, args=(number % 2 == 0,)) for number in range(CALLERS)]
        for caller in callers:
            caller.start()
        try:
            for _ in range(OUTAGES):
                filler = fill_disk(small_disk)
                wait_for(lambda: ready(gateway.url)[0] == 503, 60.0)
                filler.unlink()
                wait_for(lambda: ready(gateway.url)[0] == 200, 60.0)
                before = len(served)
                wait_for(lambda seen=before: len(served) > seen + 20, 60.0)  # type: ignore[misc]
        finally:
            stopping.set()
            for caller in callers:
                caller.join()
        gateway.idle()
        game = gateway.status()
        assert game["game"] == 1
        find = gateway.service.decisions.find
        known: Any = {decision: asyncio.run(find(decision, OPERATOR))[1] for decision in served}
        config = settings(models.base_url, gateway={"store": store}, epsilon=0.3)
    assert statuses == {200, 503}
    steps = decided(store)
    assert steps == list(range(1, len(steps) + 1))
    assert len(set(known.values())) == len(served), "no decision was served twice"
    assert set(known.values()) <= set(steps)
    (tmp_path / "gateway.toml").write_text(to_toml(config))
    assert main(["export", str(tmp_path / "gateway.toml"), "--out", str(tmp_path / "journal.jsonl")]) == 0
    assert main(["audit", str(tmp_path / "journal.jsonl")]) == 0
