"""What a cascade costs, compared with the pairs of each model with the last, and with an oracle."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.cascade.builtin import CASCADES
from bpac.replay.cascade.comparison import oracle_cost, pair_cost
from bpac.replay.cascade.replay import CascadeReplay
from bpac.replay.cascade.table import CascadeTable
from bpac.replay.figures import cost_bars
from bpac.replay.parallel import Arrays
from bpac.replay.studies.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent
from bpac.routing.cascade.policy import Cascade

EPSILONS = (0.05, 0.08)
ALPHA = 0.1


@dataclass(frozen=True, slots=True)
class GivenCascade:
    """A cascade to study.

    Parameters
    ----------
    name: its name in the report.
    table: the recorded answers.
    prices: price of a call of each model.
    """

    name: str
    table: CascadeTable
    prices: tuple[float, ...]


def builtin_cascades() -> tuple[GivenCascade, ...]:
    """The built-in cascades."""
    return tuple(GivenCascade(name, one.table(), one.prices) for name, one in CASCADES.items())


@dataclass(frozen=True, slots=True)
class CascadeTask:
    """The cascade and all pairs on one table, in the same order.

    Parameters
    ----------
    given: the cascade.
    epsilon: promised bound on the loss.
    """

    given: GivenCascade
    epsilon: float

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        table = self.given.table
        return {
            "study": "cascade",
            "name": self.given.name,
            "rows": len(table),
            "sums": [float(table.uncertainty.sum()), float(table.loss.sum())],
            "policy": repr(Cascade(prices=self.given.prices)),
            "epsilon": self.epsilon,
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """Costs of the cascade and of each pair, actual loss, and the share that each model answered."""
        given = self.given
        done = CascadeReplay(given.table, Cascade(prices=given.prices), self.epsilon, ALPHA).run(number)
        pairs = [
            pair_cost(given.table, stage, given.prices, self.epsilon, alpha=ALPHA, run=(0, number))
            for stage in range(1, given.table.stages)
        ]
        return {
            "cost": np.array([done.cost]),
            "pairs": np.array(pairs),
            "risk": np.array([done.empirical_risk]),
            "answered": np.array(done.answered),
        }


@dataclass(frozen=True, slots=True)
class CascadeStudy:
    """The cascade against the better pair.

    Parameters
    ----------
    given: the cascades (default: the built-in ones).
    name: its name on the command line and of its files.
    """

    given: tuple[GivenCascade, ...] = ()
    name: str = "cascade"

    def tasks(self) -> list[CascadeTask]:
        """Each cascade at each ε."""
        return [CascadeTask(one, epsilon) for one in self.given or builtin_cascades() for epsilon in EPSILONS]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """Costs as a table and as bars."""
        numbers, rows, bars = [], [], {}
        for task, arrays in zip(self.tasks(), results, strict=True):
            costs = arrays["cost"][:, 0].tolist()
            cost = statistics.mean(costs)
            pairs = arrays["pairs"].mean(axis=0).tolist()
            better, oracle = min(pairs), oracle_cost(task.given.table, task.given.prices, task.epsilon)
            risk = float(arrays["risk"].mean())
            answered = arrays["answered"].mean(axis=0).tolist()
            prices = " : ".join(f"{price:g}" for price in task.given.prices)
            bars[f"{task.given.name}, {prices}, ε = {task.epsilon:g}"] = (better, cost, oracle)
            deviation = statistics.stdev(costs) if len(costs) > 1 else 0.0
            numbers.append((task.given.name, prices, task.epsilon, cost, deviation, better, oracle, risk))
            rows.append(
                [
                    task.given.name,
                    prices,
                    f"{task.epsilon:g}",
                    f"{cost:.4g} ± {deviation:.2g}",
                    f"{better:.4g} (model {pairs.index(better) + 1})",
                    f"{cost / better - 1:+.1%}",
                    f"{oracle:.4g}",
                    percent(risk),
                    " / ".join(percent(share) for share in answered),
                ]
            )
        header = ["stream", "prices", "epsilon", "cost_mean", "cost_std", "better_pair_cost", "oracle_cost", "risk"]
        folder.write_csv(self.name, header, numbers)
        runs = len(results[0]["cost"])
        text = (
            f"{runs} runs, α = {ALPHA:g}. Cost per request in units of the prices, audits included. The better pair is "
            "the default policy with the model that turns out cheapest, which is not known in advance. The oracle "
            "knows every loss, and uses one threshold on the uncertainties of the best set of models."
        )
        panels = folder.write_figure(self.name, [cost_bars(bars)], 1)
        columns = [
            "stream",
            "prices",
            "ε",
            "cost",
            "better pair",
            "difference",
            "oracle",
            "ER",
            "answered by each model",
        ]
        return ReportSection(self.name, "Cascades of several models", text, panels, TableOfNumbers(columns, rows))
