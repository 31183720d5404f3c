"""The promise under load: many drafts under way at once, and faults on the way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bpac.replay.experiments import ALPHA
from bpac.replay.figures import draw_cases, draw_order
from bpac.replay.parallel import Arrays
from bpac.replay.report import Section
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.faults import OUTAGE, OUTAGE_EVERY, Faults
from bpac.replay.simulation.laws import named_law
from bpac.replay.simulation.rules import OldRules, Rules
from bpac.replay.simulation.tasks import SimulationTask
from bpac.replay.start import Start
from bpac.replay.studies.study import Folder, interval, percent
from bpac.replay.validation import Validation
from bpac.routing.policies import Portfolio

EPSILON = 0.1
IN_FLIGHT = (1, 16, 64, 256)
ARRIVAL, COMPLETION = "order of arrival (tickets)", "order of completion"
RULE, OLD_RULE = "rules of MATH 12 and 13", "old rules"
# One query hangs, and is overdue after ten times the usual time of a draft.
HUNG, DEADLINE = 200, 10.0


def _rows(tasks: Sequence[SimulationTask], results: Sequence[Arrays]) -> list[list[str]]:
    rows = []
    for task, arrays in zip(tasks, results, strict=True):
        unsafe = interval(int(arrays["broken"].sum()), len(arrays["broken"]))
        rows.append([task.case, task.rule, unsafe, percent(float(arrays["calls"].mean()))])
    return rows


@dataclass(frozen=True, slots=True)
class OrderStudy:
    """What the order of rounds does to the promise, and what tickets cost."""

    name: str = "order"
    steps: int = 1500

    def tasks(self) -> list[SimulationTask]:
        """Both orders at several numbers of drafts under way, and one draft that hangs."""
        tasks = [
            self._task(str(in_flight), Drafting.parse("losses:3", in_flight, tickets=tickets))
            for in_flight in IN_FLIGHT
            for tickets in (True, False)
        ]
        hung = replace(Drafting.parse("losses:3", 64), hung=HUNG)
        tasks.append(self._task("64, one never ends", hung))
        tasks.append(self._task("64, one never ends and is overdue", replace(hung, deadline=DEADLINE)))
        return tasks

    def _task(self, case: str, drafting: Drafting) -> SimulationTask:
        start = Start(Portfolio(), EPSILON, ALPHA)
        validation = Validation(start, named_law("rising"), steps=self.steps, drafting=drafting)
        return SimulationTask(case, ARRIVAL if drafting.tickets else COMPLETION, validation)

    def section(self, results: Sequence[Arrays], folder: Folder) -> Section:
        """How often an unsafe threshold was in force, and the expert calls, by the number of drafts under way."""
        tasks = self.tasks()
        header = ["drafts under way", "rounds count in the", "unsafe threshold ever in force", "ECP"]
        rows = _rows(tasks, results)
        folder.csv(self.name, header, rows)
        shares = {
            rule: [
                (int(task.case), float(arrays["broken"].mean()), float(arrays["calls"].mean()))
                for task, arrays in zip(tasks, results, strict=True)
                if task.rule == rule and task.case.isdecimal()
            ]
            for rule in (ARRIVAL, COMPLETION)
        }
        picture = folder.picture(self.name, draw_order(shares, ALPHA))
        text = (
            "Drafts that lose take three times as long; the next query arrives when a draft ends. "
            f"{self.steps} queries, ε = {EPSILON:g}, α = {ALPHA:g}, {len(results[0]['broken'])} streams. Counted in "
            "the order in which drafts end, easy questions come first and the promise breaks. Tickets keep it, at the "
            "price of a lag."
        )
        return Section(self.name, "The order of rounds", text, picture, header, rows)


@dataclass(frozen=True, slots=True)
class FaultsStudy:
    """What faults do to the promise, by the rules and by the old ones."""

    name: str = "faults"
    steps: int = 3000

    def tasks(self) -> list[SimulationTask]:
        """Every fault, by both rules; where a fault ends drafts there are 64 under way, and losing ones are slow."""
        one, many = Drafting(), Drafting.parse("losses:10", 64)
        cases = {
            "none": (Faults(), one),
            "outages of the draft": (Faults(("draft",)), one),
            "outages of the draft, 64 under way": (Faults(("draft",)), many),
            "outages of the expert": (Faults(("expert",)), one),
            "outages of the grader": (Faults(("grader",)), one),
            "refusals provoked at random": (Faults(refusals="random"), one),
            "refusals provoked while drafts are accepted": (Faults(refusals="timed"), one),
            "crash every 500 rounds, 64 under way": (Faults(crash_every=500), many),
        }
        start = Start(Portfolio(), EPSILON, ALPHA)
        old = replace(start, alpha_epochs="each")
        right: tuple[str, Start, Rules] = (RULE, start, Rules())
        return [
            SimulationTask(
                case,
                rule,
                Validation(maker, named_law("rising"), steps=self.steps, drafting=drafting, faults=faults, rules=rules),
            )
            for case, (faults, drafting) in cases.items()
            for rule, maker, rules in (right, (OLD_RULE, old, OldRules()))
        ]

    def section(self, results: Sequence[Arrays], folder: Folder) -> Section:
        """How often an unsafe threshold was in force under each fault, and the expert calls."""
        tasks = self.tasks()
        header = ["fault", "rule", "unsafe threshold ever in force", "ECP"]
        rows = _rows(tasks, results)
        folder.csv(self.name, header, rows)
        cases: dict[str, dict[str, tuple[float, float]]] = {}
        for task, arrays in zip(tasks, results, strict=True):
            shares = float(arrays["broken"].mean()), float(arrays["calls"].mean())
            cases.setdefault(task.case, {})[task.rule] = shares
        picture = folder.picture(self.name, draw_cases(cases, ALPHA))
        text = (
            f"{self.steps} queries, ε = {EPSILON:g}, α = {ALPHA:g}, {len(results[0]['broken'])} streams. Outages last "
            f"{OUTAGE} of every {OUTAGE_EVERY} requests. Refusals come from an attacker whose requests look certain; "
            "ECP is that of the other callers. Old rules: drafts without a score count as rounds of uncertainty 1, "
            "refusals as losses, given-up audits sound the alarm and every epoch has a fresh α, and what was under way "
            "at a crash or an outage is withdrawn."
        )
        return Section(self.name, "Faults", text, picture, header, rows)
