"""Hostile streams, which no distribution describes: shifts, and attackers that watch the router."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.figures import attack_panels
from bpac.replay.parallel import Arrays
from bpac.replay.studies.methods import ALPHA, B_PAC, RoutingMethod
from bpac.replay.studies.reporting.replay_results import recorded_steps
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent, share_with_bound
from bpac.routing.coins import SeededCoins
from bpac.routing.policies import Budget, Paper, Policy, Portfolio
from bpac.routing.router import Router

EPSILON = 0.08
# Returns uncertainty and loss of the next draft, given the router, the share of the stream that is over, and a random
# number in [0, 1).
Attack = Callable[[Router, float, float], tuple[float, float]]


def all_wrong(router: Router, progress: float, luck: float) -> tuple[float, float]:
    """Every draft is wrong."""
    return luck, 1.0


def turning(router: Router, progress: float, luck: float) -> tuple[float, float]:
    """Every draft is right in the first half of the stream and wrong in the second."""
    return luck, float(progress > 0.5)


def ambush(router: Router, progress: float, luck: float) -> tuple[float, float]:
    """Every draft has uncertainty 0 and is wrong exactly when drafts are being accepted."""
    return 0.0, float(router.threshold > 0.0)


def draining(router: Router, progress: float, luck: float) -> tuple[float, float]:
    """Every draft has uncertainty 0 and is wrong only when ε leaves room for one more loss."""
    room = router.certificate().upper + 1.0 <= router.settings.epsilon * (router.step + 1)
    return 0.0, float(router.threshold > 0.0 and room)


ATTACKS: dict[str, Attack] = {"all wrong": all_wrong, "turning": turning, "ambush": ambush, "draining": draining}


@dataclass(frozen=True, slots=True)
class HostileTask:
    """A method on a hostile stream.

    Parameters
    ----------
    method: the method.
    attack: name of the stream.
    steps: number of rounds.
    """

    method: RoutingMethod
    attack: str
    steps: int = 1500

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        return {"settings": self.method.settings.to_json(), "attack": self.attack, "steps": self.steps}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The average loss ``served`` so far, whether it was ever ``above`` ε, and the share of expert ``calls``."""
        method, attack = self.method, ATTACKS[self.attack]
        router = method.make_router(SeededCoins(number))
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
        steps = recorded_steps(self.steps)
        return {
            "steps": steps,
            "served": average[steps - 1],
            "above": np.array(bool((average > method.epsilon + 1e-9).any())),
            "calls": np.array(calls / self.steps),
        }


@dataclass(frozen=True, slots=True)
class HostileStudy:
    """Policies on streams that no distribution describes."""

    name: str = "hostile"

    def tasks(self) -> list[HostileTask]:
        """Every policy on every hostile stream."""
        policies: dict[str, Policy] = {
            "budget": Budget(),
            "portfolio": Portfolio(),
            "latched": Portfolio(memory="latched"),
            B_PAC: Paper(),
        }
        methods = [RoutingMethod(label, policy, EPSILON) for label, policy in policies.items()]
        return [HostileTask(method, attack) for attack in ATTACKS for method in methods]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """How often the average loss of the served answers ever exceeded ε, and the share of expert calls."""
        named: dict[str, dict[str, Arrays]] = {attack: {} for attack in ATTACKS}
        header = ["attack", "method", "average ever above ε", "ECP"]
        rows, numbers = [], []
        for task, arrays in zip(self.tasks(), results, strict=True):
            named[task.attack][task.method.label] = arrays
            above = share_with_bound(int(arrays["above"].sum()), len(arrays["above"]))
            calls = float(arrays["calls"].mean())
            rows.append([task.attack, task.method.label, above, percent(calls)])
            numbers.append((task.attack, task.method.label, float(arrays["above"].mean()), calls))
        columns = ["attack", "method", "average_ever_above_epsilon_share", "expert_call_rate"]
        folder.write_csv(self.name, columns, numbers)
        panels = folder.write_figure(self.name, attack_panels(named, EPSILON), 2)
        attacks = " ".join(f"“{name}”: {(attack.__doc__ or '').strip()}" for name, attack in ATTACKS.items())
        text = (
            f"ε = {EPSILON:g}, α = {ALPHA:g}, {len(results[0]['above'])} runs. {attacks} Only the policy budget makes "
            "a promise here: the average loss of the served answers stays below ε on any stream. The others promise "
            "the risk of a threshold on streams without drift."
        )
        return ReportSection(
            self.name, "The policy budget on hostile streams", text, panels, TableOfNumbers(header, rows)
        )
