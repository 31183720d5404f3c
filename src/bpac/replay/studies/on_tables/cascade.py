"""What a cascade costs, compared with the pairs of each model with the last, and with an oracle."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.cascade.builtin import CASCADES
from bpac.replay.cascade.comparison import oracle_cost, pair_cost, pair_of
from bpac.replay.cascade.in_force import InForce
from bpac.replay.cascade.replay import CascadeReplay
from bpac.replay.cascade.table import CascadeTable
from bpac.replay.figures import cost_bars
from bpac.replay.parallel import Arrays
from bpac.replay.router_factory import cascade_for, gateway_policy
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent, share_with_bound

EPSILONS = (0.05, 0.08)
ALPHA = 0.1
COLUMNS = (
    *("stream", "prices", "ε", "cost", "better pair", "difference", "better plain pair", "difference"),
    *("oracle", "ER", "unsafe", "answered by each model"),
)


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
            "policy": repr(cascade_for(self.given.prices, table)),
            "pairs": [repr(gateway_policy(pair_of(table, stage))) for stage in range(1, table.stages)],
            "epsilon": self.epsilon,
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """Costs of the cascade and of each pair, actual loss, whether the promise held, and who answered how much."""
        given = self.given
        stages = range(1, given.table.stages)

        def cost_of_pair(stage: int, *, plain: bool) -> float:
            run = (0, number)
            return pair_cost(given.table, stage, given.prices, self.epsilon, alpha=ALPHA, run=run, plain=plain)

        policy, in_force = cascade_for(given.prices, given.table), InForce()
        done = CascadeReplay(given.table, policy, self.epsilon, ALPHA).run(number, in_force)
        kept_share = 1.0 - policy.exploration.floor
        return {
            "cost": np.array([done.cost]),
            "pairs": np.array([cost_of_pair(stage, plain=False) for stage in stages]),
            "plain_pairs": np.array([cost_of_pair(stage, plain=True) for stage in stages]),
            "risk": np.array([done.empirical_risk]),
            "unsafe": np.array([kept_share * in_force.largest_risk(given.table) > self.epsilon + 1e-12]),
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
            given, costs = task.given, arrays["cost"][:, 0].tolist()
            cost = statistics.mean(costs)
            pairs, plain = (arrays[name].mean(axis=0).tolist() for name in ("pairs", "plain_pairs"))
            better, better_plain = min(pairs), min(plain)
            oracle = oracle_cost(given.table, given.prices, task.epsilon)
            risk, unsafe = float(arrays["risk"].mean()), int(arrays["unsafe"].sum())
            answered = arrays["answered"].mean(axis=0).tolist()
            prices = " : ".join(f"{price:g}" for price in given.prices)
            bars[f"{given.name}, {prices}, ε = {task.epsilon:g}"] = (better, cost, oracle)
            deviation = statistics.stdev(costs) if len(costs) > 1 else 0.0
            numbers.append(
                (given.name, prices, task.epsilon, cost, deviation, better, oracle, risk, better_plain, unsafe)
            )
            rows.append(
                [
                    given.name,
                    prices,
                    f"{task.epsilon:g}",
                    f"{cost:.4g} ± {deviation:.2g}",
                    f"{better:.4g} (model {pairs.index(better) + 1})",
                    f"{cost / better - 1:+.1%}",
                    f"{better_plain:.4g} (model {plain.index(better_plain) + 1})",
                    f"{cost / better_plain - 1:+.1%}",
                    f"{oracle:.4g}",
                    percent(risk),
                    share_with_bound(unsafe, len(costs)),
                    " / ".join(percent(share) for share in answered),
                ]
            )
        header = ["stream", "prices", "epsilon", "cost_mean", "cost_std", "better_pair_cost", "oracle_cost", "risk"]
        folder.write_csv(self.name, [*header, "better_plain_pair_cost", "unsafe_runs"], numbers)
        runs = len(results[0]["cost"])
        text = (
            f"{runs} runs, α = {ALPHA:g}. Cost per request in units of the prices, audits included. The better pair is "
            "the pair of a model with the last that turns out cheapest, which is not known in advance. It is run as "
            "the gateway would run it: its scores are dithered where they have few values, and learned where lengths "
            "are known. The plain pair has neither. The oracle knows every loss, and uses one threshold on the "
            "uncertainties of the best set of models. Unsafe: runs in which a rule and a threshold were ever in force "
            "whose risk on the table exceeds ε, with an upper 95 % confidence bound; promised is at most "
            f"{ALPHA:.0%}."
        )
        panels = folder.write_figure(self.name, [cost_bars(bars)], 1)
        return ReportSection(self.name, "Cascades of several models", text, panels, TableOfNumbers(COLUMNS, rows))
