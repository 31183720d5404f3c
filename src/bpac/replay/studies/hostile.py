"""Streams that no law describes: shifts and attackers who watch the router. What was served is counted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.experiments import RoutingMethod
from bpac.replay.outcomes import looks
from bpac.routing.coins import SeededCoins
from bpac.routing.router import Router

# Given the router before a round, how far the stream has come and a random number: uncertainty and loss.
Attack = Callable[[Router, float, float], tuple[float, float]]


def all_wrong(router: Router, progress: float, luck: float) -> tuple[float, float]:
    """Every draft is wrong."""
    return luck, 1.0


def turning(router: Router, progress: float, luck: float) -> tuple[float, float]:
    """Every draft is right in the first half and wrong in the second."""
    return luck, float(progress > 0.5)


def ambush(router: Router, progress: float, luck: float) -> tuple[float, float]:
    """Wrong exactly where a draft would be kept, and sure of itself."""
    return 0.0, float(router.threshold > 0.0)


def draining(router: Router, progress: float, luck: float) -> tuple[float, float]:
    """Waits until there is room for one more loss below ε, then takes it."""
    room = router.certificate().upper + 1.0 <= router.settings.epsilon * (router.step + 1)
    return 0.0, float(router.threshold > 0.0 and room)


ATTACKS: dict[str, Attack] = {"all wrong": all_wrong, "turning": turning, "ambush": ambush, "draining": draining}


@dataclass(frozen=True, slots=True)
class HostileTask:
    """A method on a hostile stream.

    Parameters
    ----------
    method: which.
    attack: name of the stream.
    steps: rounds.
    """

    method: RoutingMethod
    attack: str
    steps: int = 1500

    def key(self) -> dict[str, Any]:
        """All that its numbers depend on."""
        return {"settings": self.method.settings.to_json(), "attack": self.attack, "steps": self.steps}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The average loss ``served`` so far, whether it was ever ``above`` ε, and the share of expert ``calls``."""
        method, attack = self.method, ATTACKS[self.attack]
        router = method.start(SeededCoins(number))
        dice = np.random.default_rng([number, 2])
        served = np.zeros(self.steps)
        calls = 0
        for step, luck in enumerate(dice.random(self.steps).tolist()):
            uncertainty, loss = attack(router, step / self.steps, luck)
            decision = router.decide(uncertainty)
            served[step] = loss * decision.serve_draft
            if decision.call_expert:
                calls += 1
                router.observe(decision, loss)
        average = np.cumsum(served) / np.arange(1, self.steps + 1)
        steps = looks(self.steps)
        return {
            "steps": steps,
            "served": average[steps - 1],
            "above": np.array(bool((average > method.epsilon + 1e-9).any())),
            "calls": np.array(calls / self.steps),
        }
