"""Simulated games: a router and its history after a stream of rounds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bpac.dashboard.history.history import History
from bpac.replay.simulation.laws import Law
from bpac.routing.decision import Decision
from bpac.routing.router import Router


def feed(router: Router, history: History, rounds: Sequence[tuple[float, float]], *, weighted: bool = True) -> None:
    """Play rounds of known uncertainty and loss, each outcome known at once; the time is the step.

    Without weights, the history gets a wrong propensity of 1 for every audit.
    """
    for uncertainty, loss in rounds:
        decision = router.decide(uncertainty)
        recorded = decision if weighted else decision._replace(propensity=1.0)
        history.decided(recorded, float(decision.step), router)
        if decision.call_expert:
            router.observe(decision, loss)
            history.resolved(recorded, loss)


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
