"""The promise with many replicas: one game with a published threshold that may be stale, or a game for each replica."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.figures import order_panels
from bpac.replay.parallel import Arrays
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.laws import named_law
from bpac.replay.simulation.replicas import SeparateReplicas, SharingReplicas
from bpac.replay.studies.methods import ALPHA
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent, share_with_bound
from bpac.routing.policies import Portfolio

EPSILON = 0.1
REPLICAS = (1, 30, 1000)
# Decisions between two moments at which a replica fetches the published terms, beside the default.
FRESH, STALE = 1, 3000
SHARED, OWN = "one shared game", "own game each"


@dataclass(frozen=True, slots=True)
class ReplicaTask:
    """Streams of requests to replicas.

    Parameters
    ----------
    simulation: the simulation.
    """

    simulation: SharingReplicas | SeparateReplicas

    @property
    def rule(self) -> str:
        """Who certifies, as the report calls it."""
        return SHARED if isinstance(self.simulation, SharingReplicas) else OWN

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        return {"simulation": repr(self.simulation)}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """Whether an ``unsafe`` threshold was ever in force, the share of expert ``calls``, the ``age`` of terms."""
        result = self.simulation.stream(number)
        values = {"unsafe": result.unsafe, "calls": result.expert_call_rate, "age": result.age}
        return {name: np.array(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class ReplicasStudy:
    """What many replicas do to the promise, with one game and with a game for each."""

    name: str = "replicas"
    requests: int = 6000
    requests_each: int = 1000

    def tasks(self) -> list[ReplicaTask]:
        """Both rules with several numbers of replicas; the largest also with fresher and with older terms."""
        make_router, law = RouterFactory(Portfolio(), EPSILON, ALPHA), named_law("rising")
        shared = [SharingReplicas(make_router, law, replicas, self.requests) for replicas in REPLICAS]
        most = REPLICAS[-1]
        shared.append(SharingReplicas(make_router, law, most, self.requests, publish_every=1, refresh_every=FRESH))
        shared.append(SharingReplicas(make_router, law, most, self.requests, refresh_every=STALE))
        own = [SeparateReplicas(make_router, law, replicas, self.requests_each) for replicas in REPLICAS]
        return [*map(ReplicaTask, shared), *map(ReplicaTask, own)]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """How often an unsafe threshold was in force anywhere, and the expert calls, by the number of replicas."""
        streams = len(results[0]["unsafe"])
        rows = [
            (task.simulation.replicas, task.rule, _mean(arrays["age"]), _mean(arrays["unsafe"]), _mean(arrays["calls"]))
            for task, arrays in zip(self.tasks(), results, strict=True)
        ]
        columns = ["replicas", "certified_in", "age_of_terms", "unsafe_share", "expert_call_rate"]
        folder.write_csv(self.name, columns, rows)
        drawn: dict[str, list[tuple[int, float, float]]] = {SHARED: [], OWN: []}
        for replicas, rule, _, unsafe, calls in rows:
            if replicas not in [point[0] for point in drawn[rule]]:  # each number once, with the default age
                drawn[rule].append((replicas, unsafe, calls))
        panels = folder.write_figure(self.name, order_panels(drawn, ALPHA, "Replicas"), 2)
        text = (
            f"ε = {EPSILON:g}, α = {ALPHA:g}, {streams} streams. With one game, {self.requests} requests arrive at "
            "random replicas, 64 drafts are in flight, drafts with a loss take three times as long and their grades "
            "arrive later; every replica decides on the threshold that it fetched last, at a time of its own, so that "
            "terms are hundreds of decisions old. One order and one published threshold keep the promise however old "
            "the threshold is; old terms cost some expert calls at the beginning. A game for each replica (each with "
            f"the whole α, {self.requests_each} requests, no delay) breaks it: the more replicas, the likelier one of "
            "them certifies an unsafe threshold. There ECP is that of the replicas up to the first such threshold."
        )
        table = TableOfNumbers(
            ["replicas", "thresholds are certified in", "age of terms (decisions)", "unsafe threshold ever", "ECP"],
            [
                [
                    f"{replicas:,}",
                    rule,
                    f"{age:.0f}",
                    share_with_bound(round(unsafe * streams), streams),
                    percent(calls),
                ]
                for replicas, rule, age, unsafe, calls in rows
            ],
        )
        return ReportSection(self.name, "Many replicas, one promise", text, panels, table)


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean())
