"""A small gateway around a cascade's router, with everything that can go wrong, from one seed."""

import random
from typing import Any

from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.cascade.walk import Walk
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry

PRICES = (1.0, 4.0, 20.0)


def policy(**changes: Any) -> Cascade:
    """A cascade of three models that fits early, so that short streams see everything."""
    settings: dict[str, Any] = {"prices": PRICES, "features": 1, "fit_at": (40, 120), "fitted_shares": (0.5, 0.2)}
    return Cascade(**(settings | changes))


class Question:
    """A question, the answers of the models and their losses."""

    def __init__(self, dice: random.Random, *, failing: float = 0.0, hard: float = 0.0) -> None:
        difficulty = dice.random()
        self.answers: list[StageAnswer] = []
        self.losses: list[float | None] = []
        for stage in (1, 2):
            if dice.random() < failing:
                self.answers.append(None)
                self.losses.append(None)
                continue
            uncertainty = min(1.0, max(0.0, difficulty + dice.uniform(-0.2, 0.2)))
            self.answers.append((uncertainty, dice.uniform(0.0, 5.0)))
            wrong = dice.random() < max(difficulty**3 / stage, hard)
            self.losses.append(dice.choice([0.5, 1.0, 1.0]) if wrong else 0.0)

    def ask(self, walk: Walk) -> None:
        """Ask the models until the walk ends."""
        while (stage := walk.next_stage) is not None:
            answer = self.answers[stage - 1]
            if answer is None:
                walk.failed()
            else:
                walk.answered(*answer)

    def observe(self, router: CascadeRouter, decision: Decision) -> None:
        """Report what an audit found."""
        part = decision.cascade
        assert part is not None
        asked = [part.full or answer != () for answer in part.answers]
        router.observe_stages(
            decision,
            [answer if known else () for answer, known in zip(self.answers, asked, strict=True)],
            [loss if known else None for loss, known in zip(self.losses, asked, strict=True)],
        )


def serve(
    router: CascadeRouter,
    steps: int,
    dice: random.Random,
    *,
    tickets: bool = True,
    failing: float = 0.05,
    hard_from: int = 1 << 60,
) -> None:
    """Send questions through a router: late outcomes, refusals, forfeits, withdrawals and late drafts."""
    under_way: list[tuple[Question, Walk]] = []
    open_audits: list[tuple[Question, Decision]] = []
    for step in range(steps):
        question = Question(dice, failing=failing, hard=0.9 if step >= hard_from else 0.0)
        walk = router.walk(router.arrive() if tickets else None)
        question.ask(walk)
        under_way.append((question, walk))
        if len(under_way) > (4 if tickets else 0):
            question, walk = under_way.pop(dice.randrange(len(under_way)))
            chance = dice.random() if tickets else 1.0
            if chance < 0.05:
                router.withdraw(walk.terms)
                continue
            if chance < 0.1:
                router.overdue(walk.terms)
            decision = router.decide(walk, ticket=walk.terms if tickets else None)
            if decision.call_expert:
                open_audits.append((question, decision))
        if open_audits and dice.random() < 0.9:
            question, decision = open_audits.pop(dice.randrange(len(open_audits)))
            chance = dice.random()
            if chance < 0.03:
                router.forfeit(decision, "grader", draft_served=chance < 0.01)
            elif chance < 0.06:
                router.refuse(decision, draft_served=decision.uncertainty < decision.threshold)
            else:
                question.observe(router, decision)


def journalled(**changes: Any) -> tuple[CascadeRouter, list[Entry]]:
    """A router with its journal."""
    entries: list[Entry] = []
    seed = changes.pop("seed", 1)
    explore = changes.pop("explore", "serve")
    router = CascadeRouter(0.1, policy(**changes), seed=seed, explore=explore, journal=entries.append)
    return router, entries
