"""Decisions on the last terms while Redis is gone: when they may be used, what they risk, and how they are counted."""

import asyncio
import os
import random
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from bpac.betting.bounds.fixed_sample import binomial_cdf
from bpac.errors import SettingsError, StoreError
from bpac.gateway.config.file import Config
from bpac.gateway.config.store_outage import StoreOutage
from bpac.gateway.shared.outages.outage_terms import OVER, OutageServing, OutageTerms, check_outage
from bpac.gateway.shared.outages.outside_game import OutsideGame
from bpac.gateway.shared.outages.outside_log import OutsideLog
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.routing.recorded_terms import DecisionRules
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.messages import ReplicaMessages, SharedTicket
from tests.gateway.configured import settings

RULES = DecisionRules.of(Router(0.1, 0.1).settings)
EPSILON, RATE, THRESHOLD, REQUESTS = 0.1, 0.2, 0.5, 20_000
# The probability that a draft below the threshold loses: with the coin, the risk is ε and not less.
LOSES = EPSILON / (THRESHOLD * (1.0 - RATE))


class Unwritten:
    """Counts drafts in memory."""

    path = Path("nowhere")

    def __init__(self) -> None:
        self.drafts = 0

    async def add(self, _: str) -> None:
        """Count one."""
        self.drafts += 1


def terms(serving: OutageServing, rate: float, draw: Any, answered_at: float | None = None) -> OutageTerms:
    """Terms with a threshold that is just safe."""
    ticket = SharedTicket(1, Ticket(0, 1, THRESHOLD, rate, 0, 0), ())
    heard = time.monotonic() if answered_at is None else answered_at
    return OutageTerms(serving, "homework", "bpac:1", RULES, ticket, answered_at=lambda: heard, draw=draw)


def served_losses(rate: float) -> tuple[int, int]:
    """Losses that callers were served in many requests, and how many drafts were counted."""
    dice, drafts = random.Random(7), Unwritten()
    outage = StoreOutage("last-threshold", "nowhere", 3600.0)
    serving = OutageServing(outage, cast(OutsideLog, drafts), Metrics())
    on_last = terms(serving, rate, dice.random)

    async def run() -> int:
        losses = 0
        for _ in range(REQUESTS):
            if await on_last.decide(dice.random(), None) is not None:
                losses += dice.random() < LOSES
        return losses

    return asyncio.run(run()), drafts.drafts


def test_the_risk_that_was_certified_is_that_of_requests_outside_the_game() -> None:
    """The coin is thrown although nothing is graded. Negative control: without it, the same threshold is not safe."""
    losses, counted = served_losses(RATE)
    assert binomial_cdf(losses - 1, REQUESTS, EPSILON) < 1.0 - 1e-6
    assert counted > 0.9 * REQUESTS * THRESHOLD * (1.0 - RATE)
    assert binomial_cdf(served_losses(1e-9)[0] - 1, REQUESTS, EPSILON) >= 1.0 - 1e-6


def test_the_last_terms_end_by_the_clock(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is served on them later than the operator allowed after Redis was last heard of; the log says so once."""
    serving = OutageServing(StoreOutage("last-threshold", "x", 5.0), cast(OutsideLog, Unwritten()), Metrics())
    gone = StoreError("gone")
    now = time.monotonic()
    assert serving.is_allowed(now, gone)
    assert [serving.is_allowed(now - 5.1, gone) for _ in range(3)] == [False] * 3
    assert [record.message for record in caplog.records].count(OVER) == 1
    assert asyncio.run(terms(serving, RATE, lambda: 0.99, now - 5.1).decide(0.01, None)) is None
    assert asyncio.run(terms(serving, RATE, lambda: 0.99).decide(0.01, None)) is not None


def test_only_an_outage_is_an_outage() -> None:
    """While Redis answers, after the game was lost, and before anything was published, the last terms are not used."""
    serving = OutageServing(StoreOutage("last-threshold", "x", 5.0), cast(OutsideLog, Unwritten()), Metrics())
    names = GameNames("bpac", 1)
    side = SimpleNamespace(down=None, ended=None, answered_at=time.monotonic())
    side.messages = ReplicaMessages("a", names, RULES)
    game = OutsideGame(serving, cast(Any, None), names, "homework", cast(Any, side))
    assert game.last_terms() is None
    side.down = StoreError("gone")
    found = game.last_terms()
    assert found is not None
    assert asyncio.run(found.decide(0.0, None)) is None  # nothing was published: the threshold is 0
    side.ended = StoreError("lost")
    assert game.last_terms() is None


def test_what_was_counted_is_there_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts survive without a word of farewell, a torn line and a full disk; one file serves one gateway."""
    path = tmp_path / "outside.log"

    async def served(drafts: OutsideLog, count: int) -> None:
        await asyncio.gather(*(drafts.add("bpac:1") for _ in range(count)))

    first = OutsideLog(path)
    asyncio.run(served(first, 30))
    with pytest.raises(SettingsError, match="used by another gateway"):
        OutsideLog(path)
    first.close()
    with path.open("ab") as file:
        file.write(b'{"bpac:1":4')
    second = OutsideLog(path)
    assert (second.identity, second.totals) == (first.identity, {"bpac:1": 30})
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:5]))
    with pytest.raises(OSError, match="full"):
        asyncio.run(served(second, 1))
    monkeypatch.undo()

    def no_thread(*_: object) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asyncio, "to_thread", no_thread)
    with pytest.raises(OSError, match="new thread"):
        asyncio.run(asyncio.wait_for(served(second, 1), 60))
    monkeypatch.undo()
    asyncio.run(served(second, 2))
    second.close()
    third = OutsideLog(path)
    assert third.totals == {"bpac:1": 32}
    third.close()
    path.write_bytes(b"{}\nnonsense\n{}\n")
    with pytest.raises(SettingsError, match="damaged"):
        OutsideLog(path)


def test_a_draft_that_cannot_be_counted_is_not_served() -> None:
    """The disk is full: the expert answers."""

    class Full(Unwritten):
        async def add(self, _: str) -> None:
            raise OSError("full")

    serving = OutageServing(StoreOutage("last-threshold", "x", 5.0), cast(OutsideLog, Full()), Metrics())
    assert asyncio.run(terms(serving, RATE, lambda: 0.99).decide(0.01, None)) is None


@pytest.mark.parametrize("route", [{"assume": "any"}, {"policy": "paper-prior"}, {"policy": "budget"}])
def test_promises_that_are_about_rounds_alone_are_refused(route: dict[str, Any]) -> None:
    """On any traffic, a certified threshold says nothing about a request outside the game."""
    config = Config.read(settings("http://127.0.0.1:9/v1", **route))
    with pytest.raises(SettingsError, match=r"routes.homework: the promise with .* is about the rounds of its game"):
        check_outage(config.routes["homework"])
    check_outage(Config.read(settings("http://127.0.0.1:9/v1")).routes["homework"])


@pytest.mark.parametrize(
    ("outage", "why"),
    [
        ({"serve": "drafts", "file": "x"}, "gateway.store_outage.serve"),
        ({"serve": "last-threshold"}, "gateway.store_outage.file is missing"),
        ({"serve": "last-threshold", "file": "x", "seconds": 0}, "gateway.store_outage.seconds"),
        ({"serve": "last-threshold", "file": "x"}, "store_outage is for games in Redis"),
    ],
)
def test_settings_that_cannot_be_used_are_named(outage: dict[str, Any], why: str) -> None:
    """The choice, the file and the time must be there, and the store must be one that can be gone."""
    with pytest.raises(SettingsError, match=why):
        Config.read(settings("http://127.0.0.1:9/v1", gateway={"store_outage": outage}))
