"""Where expert calls go: those that are needed, and three kinds that a router which knew every loss would not make."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.cascade.comparison import Oracle, cheapest_oracle
from bpac.replay.cascade.replay import CascadeReplay
from bpac.replay.figures import stacked_panel
from bpac.replay.oracle import oracle_expert_call_rate, oracle_policy
from bpac.replay.parallel import Arrays
from bpac.replay.replay import Replay
from bpac.replay.router_factory import cascade_for, gateway_policy
from bpac.replay.studies.comparison import Part
from bpac.replay.studies.methods import B_PAC, PORTFOLIO, RoutingMethod
from bpac.replay.studies.on_tables.cascade import ALPHA, CascadeTask, GivenCascade
from bpac.replay.studies.on_tables.savings import table_of
from bpac.replay.studies.reporting.replay_results import fingerprint
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent
from bpac.replay.tables.table import Table
from bpac.routing.decision import Decision
from bpac.routing.policies import Fixed, Paper

EPSILONS = (0.05, 0.08)
# The kinds of expert calls. Each call is of the first kind, from the end of the list, that fits.
KINDS = ("nothing certified yet", "exploration", "uncertified but safe", "needed")


def kinds_of_calls(table: Table, decisions: Sequence[Decision], epsilon: float) -> NDArray[np.float64]:
    """The share of all rounds with an expert call of each kind of ``KINDS``; they sum to the expert call rate.

    Parameters
    ----------
    table: the table, in the order of the decisions.
    decisions: what was decided.
    epsilon: promised bound on the loss; drafts below the oracle's threshold for it are safe.
    """
    oracle = oracle_policy(table, epsilon)
    safe_below = oracle.threshold if isinstance(oracle, Fixed) else 0.0
    return _kinds(decisions, table.uncertainty < safe_below)


def _kinds(decisions: Sequence[Decision], oracle_accepts: NDArray[np.bool_]) -> NDArray[np.float64]:
    called = np.array([decision.call_expert for decision in decisions])
    needed = called & ~oracle_accepts
    closed = called & ~needed & np.array([decision.threshold == 0.0 for decision in decisions])
    explored = called & ~needed & ~closed & np.array([decision.propensity < 1.0 for decision in decisions])
    uncertified = called & ~needed & ~closed & ~explored
    return np.array([kind.mean() for kind in (closed, explored, uncertified, needed)])


@dataclass(frozen=True, slots=True)
class CallsTask:
    """Replays of one method, with the kinds of its expert calls.

    Parameters
    ----------
    method: the method.
    part: the stream.
    """

    method: RoutingMethod
    part: Part

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        return {
            "stream": fingerprint(table_of(self.part)),
            "drawn": self.part.tables is None,
            "settings": self.method.settings.to_json(),
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The share of each kind, as ``kinds``."""
        order = "given" if self.part.tables is None else self.part.order
        replay = Replay(table_of(self.part, number), self.method.make_router, seed=number, order=order)
        table, path = replay.run(0, trace=True)
        return {"kinds": kinds_of_calls(table, path.decisions, self.method.epsilon)}


class CascadeCallsTask(CascadeTask):
    """Replays of a cascade, with the kinds of calls of its last model."""

    @property
    def oracle(self) -> Oracle:
        """The cheapest set of models, and its threshold, if every loss is known."""
        return cheapest_oracle(self.given.table, self.given.prices, self.epsilon)

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        return {"kinds of calls": super().key()}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The share of each kind, as ``kinds``."""
        given, decisions = self.given, list[Decision]()
        table = given.table.take(np.random.default_rng(number).permutation(len(given.table)))
        policy = cascade_for(given.prices, table)
        CascadeReplay(table, policy, self.epsilon, ALPHA, order="given").run(number, trace=decisions)
        return {"kinds": _kinds(decisions, self.oracle.accepts(table))}


@dataclass(frozen=True, slots=True)
class CallsStudy:
    """The kinds of expert calls of B-PAC, of the gateway's policy, and of cascades.

    Parameters
    ----------
    parts: the streams of two models.
    cascades: the cascades.
    """

    parts: tuple[Part, ...] = ()
    cascades: tuple[GivenCascade, ...] = ()
    name: str = "calls"

    def tasks(self) -> list[CallsTask | CascadeCallsTask]:
        """Each method on each stream, and each cascade, with each ε."""
        found: list[CallsTask | CascadeCallsTask] = []
        for epsilon in EPSILONS:
            for part in self.parts:
                policies = {B_PAC: Paper(), PORTFOLIO: gateway_policy(table_of(part))}
                found += [CallsTask(RoutingMethod(*one, epsilon), part) for one in policies.items()]
            found += [CascadeCallsTask(one, epsilon) for one in self.cascades]
        return found

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """The share of each kind."""
        numbers: list[tuple[object, ...]] = []
        rows: list[list[str]] = []
        bars: dict[float, dict[str, Sequence[float]]] = {}
        for task, arrays in zip(self.tasks(), results, strict=True):
            if isinstance(task, CallsTask):
                stream, method, epsilon = task.part.label, task.method.label, task.method.epsilon
                oracle = oracle_expert_call_rate(table_of(task.part), epsilon)
            else:
                stream, epsilon, oracle = task.given.name, task.epsilon, task.oracle.expert_call_rate
                method = f"cascade {':'.join(f'{price:g}' for price in task.given.prices)}"
            kinds = arrays["kinds"].mean(axis=0).tolist()
            numbers.append((stream, method, epsilon, *kinds, sum(kinds), oracle))
            rows.append([stream, method, f"{epsilon:g}", *map(percent, kinds), percent(sum(kinds)), percent(oracle)])
            bars.setdefault(epsilon, {})[f"{stream}, {method}"] = kinds
        columns = [kind.replace(" ", "_") for kind in KINDS]
        header = ["stream", "method", "epsilon", *columns, "expert_call_rate", "oracle_expert_call_rate"]
        folder.write_csv(self.name, header, numbers)
        panels = [stacked_panel(of, KINDS, f"Expert calls, %, at ε = {epsilon:g}") for epsilon, of in bars.items()]
        text = (
            f"{len(results[0]['kinds'])} runs. Shares of all rounds. Needed: the score is at or above the threshold of "
            "the oracle, which knows every loss. The other calls are of drafts that the oracle accepts. Nothing "
            "certified yet: no threshold was in force. Exploration: the draft was accepted, and a coin called the "
            "expert to audit it. Uncertified but safe: the threshold in force was below the oracle's. The oracle's "
            "own rate has 5 % exploration of what it accepts. The portfolio learns a score where the table has columns "
            "to learn from; the oracle knows the table's own score only. In a cascade the expert is the last model, "
            "and the oracle has the cheapest set of models with one threshold on their uncertainties."
        )
        shown = ["stream", "method", "ε", *KINDS, "ECP", "oracle's ECP"]
        figure = folder.write_figure(self.name, panels, 1)
        return ReportSection(self.name, "Where expert calls go", text, figure, TableOfNumbers(shown, rows))
