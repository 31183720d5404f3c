"""The promise under load: many drafts in flight at once, and faults."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.figures import case_panels, order_panels
from bpac.replay.parallel import Arrays
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.fault_rules import FaultRules, WrongFaultRules
from bpac.replay.simulation.faults import OUTAGE, OUTAGE_EVERY, Faults
from bpac.replay.simulation.laws import named_law
from bpac.replay.studies.methods import ALPHA
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent, share_with_bound
from bpac.replay.validation import Validation
from bpac.routing.policies import Portfolio

EPSILON = 0.1
IN_FLIGHT = (1, 16, 64, 256)
ARRIVAL, COMPLETION = "order of arrival (tickets)", "order of completion"
RULES, WRONG_RULES = "rules of the gateway", "wrong rules"
# The number of the query whose draft hangs, and the deadline of drafts, at ten times their mean time.
HUNG, DEADLINE = 200, 10.0


@dataclass(frozen=True, slots=True)
class SimulationTask:
    """Streams of one simulation.

    Parameters
    ----------
    case: what is simulated, as the report calls it.
    rule: the rule that is followed, as the report calls it.
    validation: the simulation.
    """

    case: str
    rule: str
    validation: Validation

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        names = ("make_router", "law", "steps", "delay", "drafting", "faults")
        values = {name: repr(getattr(self.validation, name)) for name in names}
        return {**values, "rules": type(self.validation.rules).__name__}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """Whether an ``unsafe`` threshold was ever in force, and the share of expert ``calls``."""
        result = self.validation.stream(number)
        return {"unsafe": np.array("threshold" in result.broken), "calls": np.array(result.expert_call_rate)}


# How often an unsafe threshold was in force, and the expert call rate, by case and rule.
Shares = dict[tuple[str, str], tuple[float, float]]


def _shares(tasks: Sequence[SimulationTask], results: Sequence[Arrays]) -> Shares:
    return {
        (task.case, task.rule): (float(arrays["unsafe"].mean()), float(arrays["calls"].mean()))
        for task, arrays in zip(tasks, results, strict=True)
    }


def _table(header: Sequence[str], shares: Shares, streams: int) -> TableOfNumbers:
    rows = [
        [case, rule, share_with_bound(round(unsafe * streams), streams), percent(calls)]
        for (case, rule), (unsafe, calls) in shares.items()
    ]
    return TableOfNumbers(header, rows)


def _numbers(shares: Shares) -> list[tuple[object, ...]]:
    return [(*names, *values) for names, values in shares.items()]


@dataclass(frozen=True, slots=True)
class OrderStudy:
    """What the order in which rounds are counted does to the promise, and what tickets cost."""

    name: str = "order"
    steps: int = 1500

    def tasks(self) -> list[SimulationTask]:
        """Both orders with several numbers of drafts in flight, and one draft that hangs."""
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
        make_router = RouterFactory(Portfolio(), EPSILON, ALPHA)
        validation = Validation(make_router, named_law("rising"), self.steps, drafting=drafting)
        return SimulationTask(case, ARRIVAL if drafting.tickets else COMPLETION, validation)

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """How often an unsafe threshold was in force, and the expert calls, by the number of drafts in flight."""
        tasks = self.tasks()
        shares, streams = _shares(tasks, results), len(results[0]["unsafe"])
        columns = ["drafts_in_flight", "counted_in_the", "unsafe_share", "expert_call_rate"]
        folder.write_csv(self.name, columns, _numbers(shares))
        points = {
            rule: [(int(case), *values) for (case, one), values in shares.items() if one == rule and case.isdecimal()]
            for rule in (ARRIVAL, COMPLETION)
        }
        panels = folder.write_figure(self.name, order_panels(points, ALPHA), 2)
        text = (
            "Drafts with a loss take three times as long; the next query arrives when a draft ends. "
            f"{self.steps} queries, ε = {EPSILON:g}, α = {ALPHA:g}, {streams} streams. If rounds are "
            "counted in the order in which drafts end, easy questions come first and the promise is broken. Tickets "
            "count them in the order of arrival and keep the promise; the cost is that thresholds open later."
        )
        header = ["drafts in flight", "rounds are counted in the", "unsafe threshold ever in force", "ECP"]
        return ReportSection(
            self.name, "The order in which rounds are counted", text, panels, _table(header, shares, streams)
        )


@dataclass(frozen=True, slots=True)
class FaultsStudy:
    """What faults do to the promise, by the rules of the gateway and by wrong ones."""

    name: str = "faults"
    steps: int = 3000

    def tasks(self) -> list[SimulationTask]:
        """Every fault by both rules. Where a fault ends drafts, 64 are in flight and those with a loss are slow."""
        one, many = Drafting(), Drafting.parse("losses:10", 64)
        cases = {
            "none": (Faults(), one),
            "outages of the draft model": (Faults(("draft",)), one),
            "outages of the draft model, 64 drafts in flight": (Faults(("draft",)), many),
            "outages of the expert": (Faults(("expert",)), one),
            "outages of the grader": (Faults(("grader",)), one),
            "refusals provoked at random": (Faults(refusals="random"), one),
            "refusals provoked while drafts are accepted": (Faults(refusals="timed"), one),
            "crash every 500 rounds, 64 drafts in flight": (Faults(crash_every=500), many),
        }
        make_router = RouterFactory(Portfolio(), EPSILON, ALPHA)
        rules: list[tuple[str, RouterFactory, FaultRules]] = [
            (RULES, make_router, FaultRules()),
            (WRONG_RULES, replace(make_router, alpha_epochs="each"), WrongFaultRules()),
        ]
        return [
            SimulationTask(
                case,
                name,
                Validation(factory, named_law("rising"), self.steps, drafting=drafting, faults=faults, rules=rule),
            )
            for case, (faults, drafting) in cases.items()
            for name, factory, rule in rules
        ]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """How often an unsafe threshold was in force under each fault, and the expert calls."""
        tasks = self.tasks()
        header = ["fault", "rule", "unsafe threshold ever in force", "ECP"]
        shares, streams = _shares(tasks, results), len(results[0]["unsafe"])
        folder.write_csv(self.name, ["fault", "rule", "unsafe_share", "expert_call_rate"], _numbers(shares))
        cases: dict[str, dict[str, tuple[float, float]]] = {}
        for (case, rule), values in shares.items():
            cases.setdefault(case, {})[rule] = values
        panels = folder.write_figure(self.name, case_panels(cases, ALPHA), 2)
        text = (
            f"{self.steps} queries, ε = {EPSILON:g}, α = {ALPHA:g}, {streams} streams. An outage "
            f"lasts for {OUTAGE} of every {OUTAGE_EVERY} requests. Refusals are provoked by an attacker whose drafts "
            "have uncertainty 0; ECP is that of the other callers. Wrong rules: drafts without a score count as "
            "rounds of uncertainty 1, refusals count as losses, audits that were given up count for the drift alarm, "
            "every epoch has its own α, and queries that were in flight at a crash or an outage are withdrawn."
        )
        return ReportSection(self.name, "Faults", text, panels, _table(header, shares, streams))
