"""The served-loss certificate beside the loss that was really served, which only a replay can know."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.experiments import RoutingMethod
from bpac.replay.outcomes import fingerprint, looks
from bpac.replay.tables.builtin import builtin_table
from bpac.routing.coins import SeededCoins


@dataclass(frozen=True, slots=True)
class CertificateTask:
    """A method on a built-in stream, and what its certificate said on the way.

    Parameters
    ----------
    method: which.
    stream: a built-in stream.
    """

    method: RoutingMethod
    stream: str

    def key(self) -> dict[str, Any]:
        """All that its numbers depend on."""
        return {"settings": self.method.settings.to_json(), "stream": fingerprint(builtin_table(self.stream))}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """``[lower, served, upper]`` per round at each look."""
        method = self.method
        table = builtin_table(self.stream, number)
        router = method.start(SeededCoins(number))
        steps = looks(len(table))
        wanted = set(steps.tolist())
        served, bounds = 0.0, []
        rounds = zip(table.uncertainty.tolist(), table.loss.tolist(), strict=True)
        for step, (uncertainty, loss) in enumerate(rounds, start=1):
            decision = router.decide(uncertainty)
            served += loss * decision.serve_draft
            if decision.call_expert:
                router.observe(decision, loss)
            if step in wanted:
                certificate = router.certificate()
                bounds.append([certificate.lower / step, served / step, certificate.upper / step])
        return {"steps": steps, "bounds": np.array(bounds).T}
