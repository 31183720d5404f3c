"""Our own studies of the promise: drift and recovery, the served-loss certificate, hostile streams."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bpac.replay.experiments import ALPHA, RoutingMethod
from bpac.replay.figures import draw_attacks, draw_certificates, draw_drift
from bpac.replay.parallel import Arrays
from bpac.replay.report import Section
from bpac.replay.simulation.certificates import CertificateTask
from bpac.replay.simulation.drift import PHASE, DriftTask
from bpac.replay.simulation.hostile import ATTACKS, HostileTask
from bpac.replay.studies.study import Folder, interval, percent
from bpac.routing.policies import Budget, Paper, Policy, Portfolio

EPSILON = 0.08


@dataclass(frozen=True, slots=True)
class DriftStudy:
    """What becomes of a certified threshold when questions turn hard, and easy again."""

    name: str = "drift"

    def tasks(self) -> list[DriftTask]:
        """The paper's policy and the three memories of the portfolio."""
        policies: dict[str, Policy] = {
            "portfolio": Portfolio(),
            "revocable": Portfolio(memory="revocable"),
            "latched": Portfolio(memory="latched"),
            "paper": Paper(),
        }
        return [DriftTask(RoutingMethod(label, policy, EPSILON)) for label, policy in policies.items()]

    def section(self, results: Sequence[Arrays], folder: Folder) -> Section:
        """Rounds until the threshold is safe again, and expert calls in each phase."""
        named = {task.method.label: arrays for task, arrays in zip(self.tasks(), results, strict=True)}
        header = ["method", "safe again after (median rounds)", "never, in the hard phase"]
        header += [f"ECP, {phase}" for phase in ("easy", "hard", "easy again")]
        rows = []
        for name, arrays in named.items():
            recovery = arrays["recovery"]
            median, never = float(np.median(recovery)), float(np.isinf(recovery).mean())
            shown = f"more than {PHASE}" if np.isinf(median) else f"{median:.0f}"
            rows.append([name, shown, f"{never:.0%}", *(percent(x) for x in arrays["calls"].mean(axis=0))])
        folder.csv(self.name, header, rows)
        picture = folder.picture(self.name, draw_drift(named, EPSILON, (PHASE, 2 * PHASE)))
        text = (
            f"{PHASE} easy questions, {PHASE} hard ones, {PHASE} easy ones; {len(results[0]['risk'])} runs, "
            f"ε = {EPSILON:g}. The promise is about streams without drift: this shows how long each memory takes to "
            "notice, and what it costs to come back."
        )
        return Section(self.name, "Drift and recovery", text, picture, header, rows)


@dataclass(frozen=True, slots=True)
class CertificateStudy:
    """The bounds on what was served, beside what was served."""

    name: str = "certificate"

    def tasks(self) -> list[CertificateTask]:
        """A stream without and one with a shift: the certificate holds on any."""
        method = RoutingMethod("portfolio", Portfolio(), EPSILON)
        return [CertificateTask(method, stream) for stream in ("mmlu-pro-like", "mmlu-pro-then-bbh")]

    def section(self, results: Sequence[Arrays], folder: Folder) -> Section:
        """How far the bounds are from the truth, and how often they miss it."""
        named = {task.stream: arrays for task, arrays in zip(self.tasks(), results, strict=True)}
        header = ["stream", "lower bound", "really served", "upper bound", "missed at any look"]
        rows = []
        for stream, arrays in named.items():
            lower, served, upper = (arrays["bounds"][:, k] for k in range(3))
            missed = ((served < lower - 1e-9) | (served > upper + 1e-9)).any(axis=1)
            final = (percent(float(part[:, -1].mean())) for part in (lower, served, upper))
            rows.append([stream, *final, interval(int(missed.sum()), len(served))])
        folder.csv(self.name, header, rows)
        picture = folder.picture(self.name, draw_certificates(named, EPSILON))
        text = (
            f"Two bounds, each at level α = {ALPHA:g}, valid whenever one looks, known without seeing one loss of a "
            f"kept draft. {len(results[0]['bounds'])} runs, {results[0]['steps'].shape[1]} looks in each."
        )
        return Section(self.name, "The served-loss certificate", text, picture, header, rows)


@dataclass(frozen=True, slots=True)
class HostileStudy:
    """Policies against streams that no law describes."""

    name: str = "hostile"

    def tasks(self) -> list[HostileTask]:
        """Every policy against every attack."""
        policies: dict[str, Policy] = {
            "budget": Budget(),
            "portfolio": Portfolio(),
            "latched": Portfolio(memory="latched"),
            "paper": Paper(),
        }
        methods = [RoutingMethod(label, policy, EPSILON) for label, policy in policies.items()]
        return [HostileTask(method, attack) for attack in ATTACKS for method in methods]

    def section(self, results: Sequence[Arrays], folder: Folder) -> Section:
        """How often the average loss served ever exceeded ε, and the expert calls that took."""
        named: dict[str, dict[str, Arrays]] = {attack: {} for attack in ATTACKS}
        header = ["attack", "method", "average ever above ε", "ECP"]
        rows = []
        for task, arrays in zip(self.tasks(), results, strict=True):
            named[task.attack][task.method.label] = arrays
            above = interval(int(arrays["above"].sum()), len(arrays["above"]))
            rows.append([task.attack, task.method.label, above, percent(float(arrays["calls"].mean()))])
        folder.csv(self.name, header, rows)
        picture = folder.picture(self.name, draw_attacks(named, EPSILON))
        attacks = " ".join(f"“{name}”: {(attack.__doc__ or '').strip()}" for name, attack in ATTACKS.items())
        text = (
            f"ε = {EPSILON:g}, α = {ALPHA:g}, {len(results[0]['above'])} runs. {attacks} Only the budget promises "
            "anything here: the average loss really served, on any stream. The others promise the risk of a threshold "
            "on streams without drift."
        )
        return Section(self.name, "The budget on hostile streams", text, picture, header, rows)
