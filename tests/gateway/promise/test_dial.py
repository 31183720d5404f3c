"""The promise through a gateway with an effort dial: no rule and threshold is in force whose risk exceeds ε.

Questions are of a few kinds, so that the risk of every rule at every threshold is known exactly.
"""

import asyncio
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from bpac.answer import Token
from bpac.gateway.games.rounds.outcomes import OpenOutcomes
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.cascade.rules import Rule
from bpac.routing.decision import Decision
from bpac.testing import Reply, Request
from tests.gateway.configured import settings
from tests.gateway.virtual import JumpingLoop, ask, repeat_coins, virtual
from tests.promise.test_cascade import Kind
from tests.promise.test_promise import explained

STREAMS, REQUESTS, AT_ONCE = 8, 220, 8
EPSILON, ALPHA = 0.2, 0.1
EFFORTS = ("none", "low", "high")
# Without thinking, a third of the questions is answered right and surely, and the others often wrong. Short thinking is
# sure of some that it gets wrong.
LAW = (
    Kind(0.35, (0.10, 0.05), (0.02, 0.01)),
    Kind(0.15, (0.50, 0.15), (0.20, 0.40)),
    Kind(0.30, (0.30, 0.40), (0.70, 0.10)),
    Kind(0.20, (0.70, 0.60), (0.90, 0.50)),
)
# Besides its uncertainty, the gateway knows the length of an answer: "right" and "wrong" have the same.
LENGTH = math.log1p(len("right"))


def risk(rule: Rule, threshold: float, kept_share: float) -> float:
    """The true risk of a rule at a threshold."""
    total = 0.0
    for kind in LAW:
        answers: list[StageAnswer] = [(uncertainty, LENGTH) for uncertainty in kind.uncertainties]
        for index, stage in enumerate(rule.stages):
            if rule.value(index, answers) < threshold:
                total += kind.share * kind.wrong[stage - 1]
                break
    return kept_share * total


def dial() -> dict[str, Any]:
    """A configuration with one route: one model at three efforts."""
    config = settings("http://127.0.0.1:9/v1")
    ours = config["models"]["small"]
    config["models"] = {effort: {**ours, "model": effort, "body": {"reasoning_effort": effort}} for effort in EFFORTS}
    route = {"models": list(EFFORTS), "call_prices": [1, 4, 20], "epsilon": EPSILON, "alpha": ALPHA}
    config["routes"] = {"homework": {**route, "memory": "latched"}}
    return config


def model(request: Request) -> Reply:
    """All efforts; the request contains its kind and which of the first two lose, and a losing one takes longer."""
    kind, *losses = map(int, request.question.split())
    stage = EFFORTS.index(request.body["model"])
    if stage == 2:
        return Reply("right", delay=0.002)
    uncertainty, loss = LAW[kind].uncertainties[stage], losses[stage]
    text = "wrong" if loss else "right"
    return Reply(tokens=(Token(text, math.log(1.0 - uncertainty)),), delay=0.003 if loss else 0.001)


async def play(stream: int, patch: pytest.MonkeyPatch) -> tuple[bool, set[str]]:
    """Whether a rule and threshold were ever in force whose risk exceeds ε, and which efforts answered."""
    rng, efforts = np.random.default_rng(stream), set[str]()
    true_risk: Any = lru_cache(maxsize=None)(risk)
    unsafe = False
    async with virtual(dial(), model, patch) as gateway:
        (game,) = gateway.service.live_games()
        router = game.router
        assert isinstance(router, CascadeRouter)
        kept_share = router.settings.terms.kept_share
        waiting = iter(range(REQUESTS))

        async def worker() -> None:
            nonlocal unsafe
            for _ in waiting:
                kind = int(rng.choice(len(LAW), p=[kind.share for kind in LAW]))
                luck = rng.random()
                losses = [int(luck < wrong) for wrong in LAW[kind].wrong]
                content = " ".join(map(str, [kind, *losses]))
                body = {"model": "homework", "messages": [{"role": "user", "content": content}]}
                got = await ask(gateway, body | {"reasoning_effort": "auto"}, {})
                assert got["status"] == "200"
                efforts.add(got["x-bpac-model"])
                bets = router.bettor
                rule = bets.rules[bets.active]
                unsafe |= bets.threshold > 0.0 and true_risk(rule, bets.threshold, kept_share) > EPSILON + 1e-9

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
        assert router.step == REQUESTS
    return unsafe, efforts


def unsafe_streams(answered: list[set[str]]) -> Iterator[bool]:
    """Whether each stream breaks the promise; adds which efforts answered."""
    for stream in range(STREAMS):
        with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=JumpingLoop) as runner:
            repeat_coins(patch)
            unsafe, efforts = runner.run(play(stream, patch))
            answered.append(efforts)
            yield unsafe


def test_the_promise_holds_with_the_effort_dial() -> None:
    """In no more streams than α explains the dial stops too early; and cheaper efforts answer."""
    answered: list[set[str]] = []
    assert explained(unsafe_streams(answered), STREAMS, ALPHA)
    assert {"none", "low", "high"} == set.union(*answered)


def test_the_promise_breaks_if_losses_are_booked_for_another_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: an audit gives the losses of the efforts in the wrong order."""
    resolve = OpenOutcomes.resolve_stages

    def mixed_up(self: OpenOutcomes, decision: Decision, answers: Any, losses: Any, note: dict[str, Any]) -> None:
        resolve(self, decision, answers, losses if None in losses else losses[::-1], note)

    monkeypatch.setattr(OpenOutcomes, "resolve_stages", mixed_up)
    assert not explained(unsafe_streams([]), STREAMS, ALPHA)
