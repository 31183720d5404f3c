"""Drafts with features, and routers that learn from them early."""

from typing import Any, NamedTuple

import numpy as np

from bpac.routing.bettors import Candidates
from bpac.routing.coins import SeededCoins
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router

LEARN = LearnedScore(("length", "task"), fit_at=(60, 240), shares=(0.2, 0.1), least_losses=5.0, least_gain=0.0)


class Draft(NamedTuple):
    """A draft with what is known of it."""

    uncertainty: float
    features: tuple[float | str | None, ...]
    loss: float


def drafts(count: int, seed: int = 1) -> list[Draft]:
    """Drafts that lose more often the longer they are; their score says little, and some lengths are missing."""
    rng = np.random.default_rng(seed)
    length = rng.lognormal(size=count)
    task = rng.integers(3, size=count)
    chance = np.clip(0.08 * length * (1 + task), 0.0, 0.9)
    rows = zip(rng.random(count).tolist(), length.tolist(), task.tolist(), chance, rng.random((count, 2)), strict=True)
    return [
        Draft(u, (None if missing < 0.15 else x, f"task {k}"), float(draw < p)) for u, x, k, p, (draw, missing) in rows
    ]


def learner(journal: Any = None, *, learn: LearnedScore = LEARN, seed: int = 3, **options: Any) -> Router:
    """A router that learns."""
    return Router(0.15, 0.1, Portfolio(learn=learn), coins=SeededCoins(seed), journal=journal, **options)


def candidates(router: Router) -> Candidates:
    """The bettor of a router that learns."""
    bettor = router._route.bettor
    assert isinstance(bettor, Candidates)
    return bettor


def send(router: Router, rows: list[Draft], *, tickets: bool = False) -> None:
    """Decide all drafts, one after the other."""
    for uncertainty, features, loss in rows:
        decision = router.decide(uncertainty, features=features, ticket=router.arrive() if tickets else None)
        if decision.call_expert:
            router.observe(decision, loss)
