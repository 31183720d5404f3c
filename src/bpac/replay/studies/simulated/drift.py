"""Drift and recovery: easy questions, then hard ones, then easy ones again, with the true risk known throughout."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.figures import drift_panel
from bpac.replay.parallel import Arrays
from bpac.replay.studies.methods import B_PAC, RoutingMethod
from bpac.replay.studies.reporting.replay_results import recorded_steps
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent
from bpac.replay.tables.builtin import BENCHMARKS
from bpac.routing.coins import SeededCoins
from bpac.routing.policies import Paper, Policy, Portfolio

EPSILON = 0.08
EASY = BENCHMARKS["mmlu-pro-like"].law
HARD = replace(EASY, most=0.7)
PHASE = 4000
PHASES = (EASY, HARD, EASY)


@dataclass(frozen=True, slots=True)
class DriftTask:
    """A method on a stream that becomes hard and then easy again.

    Parameters
    ----------
    method: the method.
    phase: number of rounds in each of the three phases.
    """

    method: RoutingMethod
    phase: int = PHASE

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        laws = [asdict(law) for law in PHASES]
        return {"settings": self.method.settings.to_json(), "laws": laws, "phase": self.phase}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The true ``risk`` of the threshold in force, the expert ``calls`` in each phase, and the ``recovery``.

        Recovery is the number of rounds of the hard phase until the threshold is safe and stays so; ∞ if it never is.
        """
        rng = np.random.default_rng([number, 1])
        method = self.method
        router = method.make_router(SeededCoins(number))
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
        recovery = float(unsafe[-1] + 1) if len(unsafe) else 0.0
        steps = recorded_steps(len(risks))
        return {
            "steps": steps,
            "risk": np.array(risks)[steps - 1],
            "calls": np.array(calls),
            "recovery": np.array(math.inf if recovery >= self.phase else recovery),
        }


@dataclass(frozen=True, slots=True)
class DriftStudy:
    """What happens to a certified threshold when questions become hard, and easy again."""

    name: str = "drift"

    def tasks(self) -> list[DriftTask]:
        """The portfolio with each of its three memories, and the paper's policy."""
        policies: dict[str, Policy] = {
            "portfolio": Portfolio(),
            "revocable": Portfolio(memory="revocable"),
            "latched": Portfolio(memory="latched"),
            B_PAC: Paper(),
        }
        return [DriftTask(RoutingMethod(label, policy, EPSILON)) for label, policy in policies.items()]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """Rounds until the threshold is safe again, and expert calls in each phase."""
        named = {task.method.label: arrays for task, arrays in zip(self.tasks(), results, strict=True)}
        header = ["method", "safe again after (median rounds)", "never, in the hard phase"]
        header += [f"ECP, {phase}" for phase in ("easy", "hard", "easy again")]
        rows, numbers = [], []
        for name, arrays in named.items():
            recovery = arrays["recovery"]
            median, never = float(np.median(recovery)), float(np.isinf(recovery).mean())
            shown = f"more than {PHASE}" if np.isinf(median) else f"{median:.0f}"
            calls = arrays["calls"].mean(axis=0).tolist()
            rows.append([name, shown, f"{never:.0%}", *map(percent, calls)])
            numbers.append((name, median, never, *calls))
        columns = ["method", "median_rounds_until_safe", "never_safe_share", "ecp_easy", "ecp_hard", "ecp_easy_again"]
        folder.write_csv(self.name, columns, numbers)
        turns = ((PHASE, "hard questions"), (2 * PHASE, "easy questions"))
        panels = folder.write_figure(self.name, [drift_panel(named, EPSILON, turns)], 1)
        text = (
            f"{PHASE} easy questions, {PHASE} hard ones, {PHASE} easy ones; {len(results[0]['risk'])} runs, "
            f"ε = {EPSILON:g}. The promise covers streams without drift. This shows how long each memory takes to "
            "become safe after the questions become hard, and how many expert calls it makes when they are easy again."
        )
        return ReportSection(self.name, "Drift and recovery", text, panels, TableOfNumbers(header, rows))
