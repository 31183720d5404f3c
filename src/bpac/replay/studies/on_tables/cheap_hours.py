"""What is saved if audits are made where the expert is cheap: a third of every day, known to the router or not."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.hours import Hours
from bpac.replay.figures import relative_bars
from bpac.replay.metrics import replay_metrics
from bpac.replay.parallel import Arrays
from bpac.replay.replay import Replay
from bpac.replay.router_factory import gateway_policy
from bpac.replay.simulation.expert_hours import ExpertHours
from bpac.replay.studies.comparison import Part
from bpac.replay.studies.methods import RoutingMethod
from bpac.replay.studies.on_tables.savings import table_of
from bpac.replay.studies.on_tables.unsafe import ever_unsafe
from bpac.replay.studies.reporting.replay_results import fingerprint
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent, share_with_bound

EPSILONS = (0.05, 0.08)
# Price of a call in cheap hours, as a share of the price in others.
PRICE = 0.25
CHEAP, OTHERS = (Hours.read("16:30-00:30"),), (Hours.read("00:30-16:30"),)
# What the router knows: nothing, what an audit costs at each hour, or that the expert is busy in all other hours.
UNKNOWN, KNOWN, BUSY = "hours unknown", "hours known", "busy in other hours"
FIGURES = ("expert_call_rate", "cost", "empirical_risk", "unsafe")


WAYS = {
    UNKNOWN: ExpertHours(CHEAP, PRICE, known=False),
    KNOWN: ExpertHours(CHEAP, PRICE),
    BUSY: ExpertHours(CHEAP, PRICE, OTHERS, priced=False),
}


@dataclass(frozen=True, slots=True)
class CheapHoursTask:
    """Replays of the default policy with cheap hours.

    Parameters
    ----------
    part: the stream.
    epsilon: promised bound on the loss.
    hours: when the expert is cheap or busy, and whether the router knows it.
    """

    part: Part
    epsilon: float
    hours: ExpertHours

    @property
    def method(self) -> RoutingMethod:
        """How the stream is routed."""
        return RoutingMethod("", gateway_policy(table_of(self.part)), self.epsilon)

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        return {
            "stream": fingerprint(table_of(self.part)),
            "drawn": self.part.tables is None,
            "settings": self.method.settings.to_json(),
            "hours": repr(self.hours),
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The ``figures``."""
        method, part = self.method, self.part
        order = "given" if part.tables is None else part.order
        replay = Replay(table_of(part, number), method.make_router, seed=number, order=order, hours=self.hours)
        table, path = replay.run(0, trace=True)
        metrics = replay_metrics(table, path)
        unsafe = ever_unsafe(method, table, path.decisions)
        figures = [metrics.expert_call_rate, metrics.expert_cost, metrics.empirical_risk, unsafe]
        return {"figures": np.array(figures, dtype=np.float64)}


@dataclass(frozen=True, slots=True)
class CheapHoursStudy:
    """Expert calls, their cost and the promise, with and without knowing the cheap hours.

    Parameters
    ----------
    parts: the streams.
    """

    parts: tuple[Part, ...]
    name: str = "cheap-hours"

    def tasks(self) -> list[CheapHoursTask]:
        """Each stream with each ε, and all that the router may know."""
        return [CheapHoursTask(*case) for case in product(self.parts, EPSILONS, WAYS.values())]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """The figures of each stream, and the mean change of the cost."""
        runs, remaining = len(results[0]["figures"]), iter(results)
        numbers: list[tuple[object, ...]] = []
        rows: list[list[str]] = []
        costs: dict[float, dict[str, dict[str, float]]] = {}
        for part, epsilon in product(self.parts, EPSILONS):
            of_part: dict[str, float] = {}
            for label in WAYS:
                values = next(remaining)["figures"]
                means, stds = values.mean(axis=0), values.std(axis=0)
                of_part[label] = float(means[1])
                spread = np.column_stack((means[:3], stds[:3])).ravel().tolist()
                numbers.append((part.label, epsilon, label, runs, *spread, float(means[3])))
                change = f"{means[1] / of_part[UNKNOWN] - 1.0:+.1%}"
                shown = [percent(means[0]), f"{means[1]:.4f}", change, percent(means[2])]
                promise = share_with_bound(int(values[:, 3].sum()), runs)
                rows.append([part.label, f"{epsilon:g}", label, *shown, promise])
            costs.setdefault(epsilon, {})[part.label] = of_part
        panels = []
        for epsilon, of_parts in costs.items():
            usual = sum(one[UNKNOWN] for one in of_parts.values())
            for label in WAYS:
                share = sum(one[label] for one in of_parts.values()) / usual
                rows.append(["all streams", f"{epsilon:g}", label, "", "", f"{share - 1.0:+.1%}", "", ""])
            bars = {name: {k: cost / one[UNKNOWN] for k, cost in one.items()} for name, one in of_parts.items()}
            panels.append(relative_bars(bars, f"Cost of expert calls, %, at ε = {epsilon:g}"))
        columns = [f"{name}_{part}" for name in FIGURES[:3] for part in ("mean", "std")]
        header = ["stream", "epsilon", "router_knows", "runs", *columns, "unsafe_share"]
        folder.write_csv(self.name, header, numbers)
        text = (
            f"{runs} runs, 400 queries per day. In eight hours of every day a call of the expert costs a quarter of "
            "its usual price. Cost: that of all expert calls per query, in usual prices. The router knows nothing of "
            "that, or what an audit costs at each hour (route keys cheap_hours and cheap_price), or that the expert is "
            "busy in all other hours (busy_at). Unsafe: runs in which a threshold was ever in force whose risk on the "
            "table exceeds ε, with an upper 95 % confidence bound; promised is at most 10 %."
        )
        titles = ["stream", "ε", "the router knows", "ECP", "cost", "change", "ER", "unsafe"]
        figure = folder.write_figure(self.name, panels, 2)
        return ReportSection(self.name, "Audits in cheap hours", text, figure, TableOfNumbers(titles, rows))
