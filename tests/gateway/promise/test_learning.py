"""The promise through a gateway whose routes learn scores on the way, and a way of learning that breaks it.

Drafts are of a few kinds, so that the risk of every threshold of any score is known exactly. What the gateway knows of
them says nothing about their losses: whatever it learns is noise.
"""

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bpac.answer import Token
from bpac.gateway.games.live_game import LiveGame
from bpac.routing.decision import Decision
from bpac.routing.learning.features import Feature, Features
from bpac.routing.learning.fit import fit
from bpac.routing.learning.learning import Learning
from bpac.routing.learning.model import FrozenModel, OwnScore
from bpac.routing.tickets.ticket import Ticket
from bpac.testing import Reply, Request
from tests.gateway.configured import settings
from tests.gateway.virtual import JumpingLoop, ask, repeat_coins, virtual
from tests.promise.test_promise import explained

STREAMS, REQUESTS, AT_ONCE = 12, 200, 8
EPSILON, ALPHA, LOSS = 0.3, 0.1, 0.45
UNCERTAINTIES, TASKS = (0.1, 0.3, 0.5, 0.7, 0.9), tuple(f"task {number}" for number in range(8))
FIT_AT, RIDGE = 30, 0.03
ROUTE: dict[str, Any] = {
    "epsilon": EPSILON,
    "alpha": ALPHA,
    "memory": "latched",
    "task_by": "header:x-task",
    # The second fit is never made. It keeps the audits, which the control fits again and again.
    "learn": {"fit_at": [FIT_AT, 10**6], "shares": [0.8, 0.01], "least_losses": 5, "ridge": RIDGE, "least_gain": 0},
}


def model(request: Request) -> Reply:
    """Both models; the request contains its uncertainty and loss, and a losing draft takes longer."""
    uncertainty, loss = map(float, request.question.split())
    if request.body["model"] == "expert":
        return Reply("right")
    return Reply(
        tokens=(Token("wrong" if loss else "right", math.log(1.0 - uncertainty)),), delay=0.003 if loss else 0.001
    )


class Watched:
    """The thresholds that were in force in a game, with the scores that they belong to."""

    def __init__(self) -> None:
        self._used: dict[tuple[int, float], tuple[FrozenModel | OwnScore | None, float]] = {}
        self._features: dict[float, tuple[Feature, ...]] = {}
        self._task = 0
        self.learned = False

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Look at every decision from here on."""
        decide = LiveGame.decide

        def watched(game: LiveGame, uncertainty: float, ticket: Ticket, note: Any, features: Features) -> Decision:
            decision = decide(game, uncertainty, ticket, note, features)
            learning = game.router._route.learning
            assert learning is not None
            self._task = game.feature_names.index("task")
            self._features[uncertainty] = decision.features
            active = decision.uncertainties.index(decision.uncertainty)
            used = learning.joined[active - 1].model if active else None
            self.learned |= used is not None
            self._used[id(used), decision.threshold] = used, decision.threshold
            return decision

        patch.setattr(LiveGame, "decide", watched)

    def unsafe(self, kept_share: float) -> bool:
        """Whether the risk of any of them exceeds ε."""
        return any(kept_share * self._risk(*used) > EPSILON + 1e-12 for used in self._used.values())

    def _risk(self, score: FrozenModel | OwnScore | None, threshold: float) -> float:
        below = 0
        for uncertainty, features in self._features.items():
            for task in TASKS:
                known = (uncertainty, *features[: self._task], task, *features[self._task + 1 :])
                below += (uncertainty if score is None else score.score(known)) < threshold
        return LOSS * below / (len(UNCERTAINTIES) * len(TASKS))


async def play(stream: int, patch: pytest.MonkeyPatch) -> tuple[bool, bool]:
    """Whether an unsafe threshold was ever in force in a stream, and whether a learned score was."""
    rng, watched = np.random.default_rng(stream), Watched()
    watched.watch(patch)
    async with virtual(settings("http://127.0.0.1:9/v1", **ROUTE), model, patch) as gateway:
        waiting = iter(range(REQUESTS))

        async def worker() -> None:
            for _ in waiting:
                uncertainty, task = rng.choice(UNCERTAINTIES), rng.choice(TASKS)
                content = f"{float(uncertainty)!r} {float(rng.random() < LOSS)!r}"
                body = {"model": "homework", "messages": [{"role": "user", "content": content}]}
                got = await ask(gateway, body, {"x-task": str(task)})
                assert got["status"] == "200"

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
        (game,) = gateway.service.live_games()
        assert game.router.step == REQUESTS
        return watched.unsafe(game.router.settings.terms.kept_share), watched.learned


def unsafe_streams(learned: list[bool]) -> Iterator[bool]:
    """Whether an unsafe threshold was ever in force in each stream; adds whether a learned score was."""
    for stream in range(STREAMS):
        with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=JumpingLoop) as runner:
            repeat_coins(patch)
            unsafe, used = runner.run(play(stream, patch))
            learned.append(used)
            yield unsafe


def test_the_promise_holds_where_scores_are_learned() -> None:
    """No threshold of the first score or of a learned one is unsafe in more streams than α explains."""
    learned: list[bool] = []
    assert explained(unsafe_streams(learned), STREAMS, ALPHA)
    assert any(learned)


def test_the_promise_breaks_if_a_learned_score_is_fitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: a newer model takes over what was certified for an older one."""
    observed = Learning.observed

    def refitted(self: Learning, decision: Decision, loss: float) -> None:
        observed(self, decision, loss)
        if self.joined and not decision.step % 3:
            newer = fit(self.samples.in_order()[-FIT_AT:], RIDGE)
            self.joined[0] = self.joined[0]._replace(model=newer)
            self.quick_scores = self._first_scores

    monkeypatch.setattr(Learning, "observed", refitted)
    assert not explained(unsafe_streams([]), STREAMS, ALPHA)
