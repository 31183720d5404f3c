"""Games that were played: a router and its history, and streams that make them do everything they can."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bpac.dashboard.history import History
from bpac.replay.simulation.laws import Law
from bpac.routing.decision import Decision
from bpac.routing.router import Router


def feed(router: Router, history: History, rounds: Sequence[tuple[float, float]], *, weighted: bool = True) -> None:
    """Play rounds of known uncertainty and loss, each outcome known at once; the time is the step.

    Without weights the history is told that every audit was certain, which is wrong.
    """
    for uncertainty, loss in rounds:
        decision = router.decide(uncertainty)
        told = decision if weighted else decision._replace(propensity=1.0)
        history.decided(told, float(decision.step), router)
        if decision.call_expert:
            router.observe(decision, loss)
            history.resolved(told, loss)


def drawn(law: Law, count: int, seed: int) -> list[tuple[float, float]]:
    """Rounds of a law."""
    uncertainties, losses = law.draw(count, np.random.default_rng(seed))
    return list(zip(uncertainties.tolist(), losses.tolist(), strict=True))


def played(
    law: Law, count: int, *, seed: int = 0, epsilon: float = 0.1, weighted: bool = True, **options: Any
) -> tuple[Router, History]:
    """A game on rounds of a law."""
    router, history = Router(epsilon, options.pop("alpha", 0.1), seed=seed, **options), History()
    feed(router, history, drawn(law, count, seed), weighted=weighted)
    return router, history


def audit(step: int, uncertainty: float, **fields: Any) -> Decision:
    """A decision to ask the expert, with the fields that matter."""
    values = {"threshold": 1.0, "propensity": 0.5, "least_propensity": 0.5, "serve_draft": False, **fields}
    return Decision(step, uncertainty, call_expert=True, **values)
