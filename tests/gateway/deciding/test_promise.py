"""The promise for callers that ask their models themselves: many at once, and losing drafts take longest."""

import asyncio
import math
from typing import Any

import numpy as np
import pytest

from bpac.gateway.auth.keys import ANONYMOUS
from bpac.gateway.deciding.caller_rounds import Asker, CallerRounds
from bpac.gateway.deciding.requests import DraftReport
from bpac.gateway.games.rounds.reported import Reported
from bpac.gateway.games.segment_names import Caller
from bpac.replay.simulation.laws import PowerLaw
from bpac.testing import Reply
from tests.gateway.deciding.own_route import own
from tests.gateway.virtual import JumpingLoop, repeat_coins, virtual

STREAMS, QUERIES, AT_ONCE = 20, 250, 64
EPSILON, ALPHA = 0.2, 0.1
LAW = PowerLaw(most=1.0, power=1.0)
# The largest threshold whose risk is at most ε, with an exploration floor of 0.05.
SAFE = math.sqrt(2.0 * EPSILON / 0.95)
ROUTE: dict[str, Any] = {
    "gateway": {"max_in_flight": 10**6},
    "epsilon": EPSILON,
    "alpha": ALPHA,
    "memory": "latched",
    "segment_by": "header:x-stream",
    "most_segments": STREAMS + 1,
    "max_tickets": 10**6,
}


async def one_query(
    rounds: CallerRounds, report: Any, stream: int, query: tuple[float, float], on_arrival: bool
) -> float:
    """The threshold on which one query is decided; a losing draft takes three times as long."""
    uncertainty, loss = query
    asker = Asker("", Caller("", [(b"x-stream", b"%d" % stream)]))
    draft = DraftReport(uncertainty, None, None)
    given = await rounds.arrive("own", {}, asker) if on_arrival else None
    await asyncio.sleep(0.003 if loss else 0.001)
    if given is not None:
        reply = await rounds.decide(given.text, None, "", draft)
    else:
        reply = await rounds.decide_at_once("own", {}, asker, draft)
    if reply["call_expert"]:
        await report(reply["decision"], Reported(loss), ANONYMOUS)
    return float(reply["threshold"])


async def unsafe_streams(patch: pytest.MonkeyPatch, *, on_arrival: bool) -> int:
    """The number of streams in which a threshold above the largest safe one was ever in force."""
    repeat_coins(patch)
    unsafe: set[int] = set()
    async with virtual(own(**ROUTE), lambda _: Reply("nobody asks"), patch) as gateway:
        service = gateway.service

        async def worker(stream: int, waiting: Any) -> None:
            for query in waiting:
                used = await one_query(service.caller_rounds, service.decisions.report, stream, query, on_arrival)
                if used > SAFE:
                    unsafe.add(stream)

        work = []
        for stream in range(STREAMS):
            scores, losses = LAW.draw(QUERIES, np.random.default_rng(stream))
            queries = iter([(float(score), float(loss)) for score, loss in zip(scores, losses, strict=True)])
            work += [worker(stream, queries) for _ in range(AT_ONCE)]
        await asyncio.gather(*work)
        for game in service.live_games():
            assert game.router.step == QUERIES
            if game.router.threshold > SAFE:
                unsafe.add(int(game.segment))
    return len(unsafe)


@pytest.mark.parametrize("on_arrival", [True, False])
def test_the_promise_holds_only_with_tickets_on_arrival(on_arrival: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With them more than 6 of 20 streams are unsafe with chance 0.003; the control decides when the draft is there."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        unsafe = runner.run(unsafe_streams(monkeypatch, on_arrival=on_arrival))
    assert unsafe <= 6 if on_arrival else unsafe >= 12, unsafe
