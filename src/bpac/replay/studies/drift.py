"""Drift and recovery: easy questions, then hard ones, then easy ones again, with the true risk known throughout."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.experiments import RoutingMethod
from bpac.replay.outcomes import looks
from bpac.replay.simulation.laws import PowerLaw
from bpac.replay.tables.builtin import BENCHMARKS
from bpac.routing.coins import SeededCoins

EASY = BENCHMARKS["mmlu-pro-like"].law
HARD = PowerLaw(most=0.7, power=0.8, crowding=2.0)
PHASE = 4000
PHASES = (EASY, HARD, EASY)


@dataclass(frozen=True, slots=True)
class DriftTask:
    """A method on a stream that turns hard and then easy again.

    Parameters
    ----------
    method: which.
    phase: rounds before each turn.
    """

    method: RoutingMethod
    phase: int = PHASE

    def key(self) -> dict[str, Any]:
        """All that its numbers depend on."""
        laws = [[law.most, law.power, law.crowding] for law in PHASES]
        return {"settings": self.method.settings.to_json(), "laws": laws, "phase": self.phase}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """``risk`` of the threshold in force, ``calls`` in each phase, rounds until safe after the turn (∞: never)."""
        rng = np.random.default_rng([number, 1])
        method = self.method
        router = method.start(SeededCoins(number))
        kept = router.settings.terms.kept_share
        risks, calls = [], []
        for law in PHASES:
            uncertainties, losses = law.draw(self.phase, rng)
            called = 0
            for uncertainty, loss in zip(uncertainties.tolist(), losses.tolist(), strict=True):
                decision = router.decide(uncertainty)
                risks.append(kept * law.risk(decision.threshold))
                if decision.call_expert:
                    called += 1
                    router.observe(decision, loss)
            calls.append(called / self.phase)
        unsafe = np.flatnonzero(np.array(risks[self.phase : 2 * self.phase]) > method.epsilon + 1e-12)
        # Safe again after the last unsafe round of the hard phase.
        recovery = float(unsafe[-1] + 1) if len(unsafe) else 0.0
        steps = looks(len(risks))
        return {
            "steps": steps,
            "risk": np.array(risks)[steps - 1],
            "calls": np.array(calls),
            "recovery": np.array(math.inf if recovery >= self.phase else recovery),
        }
