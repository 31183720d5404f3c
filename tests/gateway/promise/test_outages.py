"""Restarts under load, and outages of the expert, the draft and the grader: charged, noticed, and not a drift."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from bpac.answer import Token
from bpac.gateway.app import Gateway
from bpac.routing.journal.entries import Started, Stopped
from bpac.stores import MemoryStore
from bpac.testing import Reply, Request
from tests.gateway.configured import settings
from tests.gateway.law import Question
from tests.gateway.virtual import JumpingLoop, ask, repeat_coins, virtual

Work = Callable[["Traffic", Gateway], Awaitable[Any]]


class StillOpen(MemoryStore):
    """A store that a stopped gateway leaves open for the next one."""

    def close(self) -> None:
        """Nothing."""


class Traffic:
    """A gateway that can be restarted, and requests to it; ``down`` names what is out of order."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.down: set[str] = set()
        self._config = settings("http://127.0.0.1:9/v1", gateway={"drain": 0.001}, epsilon=0.3)
        self._patch = patch
        self._store = StillOpen()
        self._numbers = count()
        self._under_way: list[asyncio.Task[Any]] = []
        repeat_coins(patch)

    def script(self, request: Request) -> Reply:
        """Both models; of the questions one in ten is lost, whatever its uncertainty."""
        name = request.body["model"]
        if name in self.down:
            return Reply("out of order", status=500)
        question = Question(int(request.question))
        lost = question.number % 10 == 0 or "quality" in self.down
        if name == "draft":
            text = "wrong" if lost else "right"
            return Reply(tokens=(Token(text, math.log(1.0 - question.uncertainty)),), delay=0.01 + 0.03 * lost)
        # With an answer that says nothing no grader can compare a draft.
        return Reply(tokens=(Token("", 0.0),), delay=0.02) if "grader" in self.down else Reply("right", delay=0.02)

    async def life(self, work: Work) -> dict[str, Any]:
        """One life of the gateway; returns the status of the game at its end."""
        async with virtual(self._config, self.script, self._patch, self._store) as gateway:
            await work(self, gateway)
            (game,) = gateway.service.status().routes["homework"]
            # As the server does with what does not end in time, before it stops the service.
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way)
        return game.to_json()

    async def asked(self, gateway: Gateway, requests: int) -> list[dict[str, str]]:
        """The headers of the answers to a number of requests, 32 at once, with their audits done."""
        waiting = iter(range(requests))

        async def worker() -> list[dict[str, str]]:
            return [await self._ask(gateway) for _ in waiting]

        got = [each for some in await asyncio.gather(*(worker() for _ in range(32))) for each in some]
        while gateway.service.busy:
            await asyncio.sleep(0.01)
        return got

    async def cut_off(self, gateway: Gateway) -> None:
        """32 requests that are under way when the gateway stops, waiting for a draft or for the expert."""
        self._under_way = [asyncio.create_task(self._ask(gateway)) for _ in range(32)]
        await asyncio.sleep(0.015)

    async def _ask(self, gateway: Gateway) -> dict[str, str]:
        return await ask(gateway, Question(next(self._numbers)).body, {})

    def journal(self) -> list[object]:
        """All entries of the game."""
        (game,) = self._store.games()
        return [kept.entry for kept in self._store.entries(game)]


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> Traffic:
    """A gateway with the same coins in every run."""
    return Traffic(monkeypatch)


def lives(traffic: Traffic, *works: Work) -> list[dict[str, Any]]:
    """The status of the game after each life, in an event loop whose clock jumps."""

    async def play() -> list[dict[str, Any]]:
        return [await traffic.life(work) for work in works]

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(play())


async def learn(traffic: Traffic, gateway: Gateway) -> None:
    """Requests until every draft is accepted."""
    await traffic.asked(gateway, 600)


async def load(traffic: Traffic, gateway: Gateway) -> None:
    """Some requests, and 32 that are cut off."""
    await traffic.asked(gateway, 40)
    await traffic.cut_off(gateway)


def test_restarts_under_load_forget_nothing(traffic: Traffic) -> None:
    """Audits that a restart cuts off are forfeited and charged; the alarm does not ring, and no epoch ends."""
    first, *_, last = lives(traffic, learn, *[load] * 20, learn)
    assert first["threshold"] == 1.0
    assert last["forfeits"]["restart"] >= 10
    assert (last["epoch"], last["threshold"]) == (1, 1.0)
    kinds = [type(entry) for entry in traffic.journal()]
    # The first and the last stop were clean; twenty cut requests off, for which the next start was charged.
    assert (kinds.count(Started), kinds.count(Stopped)) == (22, 2)
    # With verdicts again the doubt has gone.
    assert (last["state"], last["doubt"]) == ("routing", 1.0)


def test_a_stop_that_ends_drafts_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the service and not the server cuts the drafts off: they do not count as failed."""
    score = {"name": "perplexity", "first_tokens": 1}
    config, store = settings("http://127.0.0.1:9/v1", gateway={"drain": 0.001}, score=score), StillOpen()

    async def play() -> None:
        async with virtual(config, lambda _: Reply(), monkeypatch, store) as gateway:
            request = asyncio.create_task(ask(gateway, Question(1).body | {"stream": True}, {}))
            await asyncio.sleep(0.01)
        request.cancel()
        await request

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(play())
    (game,) = store.games()
    assert not any(isinstance(kept.entry, Stopped) for kept in store.entries(game))


@pytest.mark.parametrize("part", ["expert", "grader"])
def test_an_outage_is_not_a_drift(traffic: Traffic, part: str) -> None:
    """While audits have no verdict all drafts are audited in the end; nothing is forgotten, and then it routes."""

    async def outage(traffic: Traffic, gateway: Gateway) -> None:
        traffic.down.add(part)
        await traffic.asked(gateway, 300)

    async def after(traffic: Traffic, gateway: Gateway) -> None:
        traffic.down.clear()
        await traffic.asked(gateway, 300)

    _, during, last = lives(traffic, learn, outage, after)
    assert (during["epoch"], during["state"], during["threshold"]) == (1, "alarmed", 1.0)
    assert during["forfeit_share"] > 0.5
    assert sum(during["forfeits"].values()) > 20
    assert (last["epoch"], last["state"], last["threshold"]) == (1, "routing", 1.0)
    assert last["forfeit_share"] < during["forfeit_share"]


def test_a_drift_behind_an_outage_is_noticed(traffic: Traffic) -> None:
    """Without verdicts all drafts are audited, so bad ones are not served; with verdicts again the alarm rings."""
    served: list[str] = []

    async def hidden(traffic: Traffic, gateway: Gateway) -> None:
        traffic.down |= {"grader", "quality"}
        await traffic.asked(gateway, 200)
        served.extend(got["x-bpac-answered-by"] for got in await traffic.asked(gateway, 100))
        traffic.down.discard("grader")
        await traffic.asked(gateway, 100)

    _, last = lives(traffic, learn, hidden)
    assert set(served) == {"expert"}
    assert last["epoch"] == 2
    assert last["threshold"] < 0.3 / 0.95  # now that every draft is lost, this is the largest safe one


def test_an_outage_of_the_draft_changes_nothing(traffic: Traffic) -> None:
    """Requests without a draft are not rounds: the game stays where it was, and its state says so."""

    async def outage(traffic: Traffic, gateway: Gateway) -> None:
        traffic.down.add("draft")
        got = await traffic.asked(gateway, 300)
        assert {answer["x-bpac-unscored"] for answer in got} == {"draft-failed"}

    before, during = lives(traffic, learn, outage)
    assert during["state"] == "not_routing"
    assert during["unscored"] == {"requests": 300, "share": 300 / 900, "reasons": {"draft-failed": 300}}
    same = ("steps", "threshold", "alarm", "doubt", "certificate", "expert_calls")
    assert {name: during[name] for name in same} == {name: before[name] for name in same}
