"""Simulations of the promise as tasks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.validation import Validation


@dataclass(frozen=True, slots=True)
class SimulationTask:
    """Streams of one simulation.

    Parameters
    ----------
    case: what is simulated.
    rule: by which rule.
    validation: the simulation.
    """

    case: str
    rule: str
    validation: Validation

    def key(self) -> dict[str, Any]:
        """All that its numbers depend on."""
        simulated = self.validation
        values = {name: repr(getattr(simulated, name)) for name in ("start", "law", "delay", "drafting", "faults")}
        rules = type(simulated.rules).__name__
        return {**values, "rules": rules, "promise": simulated.promise, "steps": simulated.steps}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """Whether the promise was ``broken``, and the share of expert ``calls``."""
        verdict = self.validation.stream(number)
        return {"broken": np.array(verdict.broken), "calls": np.array(verdict.expert_call_rate)}
