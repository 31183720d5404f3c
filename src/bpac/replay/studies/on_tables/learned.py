"""What a learned score saves (MATH section 14)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.figures import Panel, relative_bars
from bpac.replay.metrics import replay_metrics
from bpac.replay.parallel import Arrays
from bpac.replay.replay import send_table
from bpac.replay.router_factory import RouterFactory, learning_for, suited_to
from bpac.replay.simulation.delays import Delay
from bpac.replay.studies.methods import ALPHA
from bpac.replay.studies.on_tables.unsafe import is_unsafe
from bpac.replay.studies.reporting.replay_results import fingerprint
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent, share_with_bound
from bpac.replay.tables.table import Table, shuffled
from bpac.routing.coins import SeededCoins
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies import Policy, Portfolio

EPSILONS = (0.05, 0.08)
# The array ``figures`` of a learned task: ``cost`` in tokens is relative to always asking the expert, and NaN where it
# is not known; ``unsafe`` is 1 if a threshold was ever in force whose risk on the table exceeds ε for its score.
FIGURES = ("expert_call_rate", "cost", "empirical_risk", "unsafe")


@dataclass(frozen=True, slots=True)
class LearnedTask:
    """Replays of the default policy on a table, with or without a learned score.

    Parameters
    ----------
    table: the recorded answers.
    epsilon: promised bound on the loss.
    policy: the policy; it learns from the features of the table if ``learns``.
    learns: whether a score is learned.
    """

    table: Table
    epsilon: float
    policy: Policy
    learns: bool

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        router = self._make_router(SeededCoins(0))
        return {"stream": fingerprint(self.table), "settings": router.settings.to_json()}

    @property
    def _make_router(self) -> RouterFactory:
        policy = learning_for(self.policy, self.table) if self.learns else self.policy
        return RouterFactory(policy, self.epsilon, ALPHA)

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The ``figures``."""
        rng = np.random.default_rng([number, 0])
        router = self._make_router(SeededCoins(int(rng.integers(1 << 63))))
        table, path = send_table(shuffled(self.table, rng), router, Delay(), rng, trace=True)
        metrics = replay_metrics(table, path)
        cost = math.nan if metrics.token_ratio is None else metrics.token_ratio
        unsafe = is_unsafe(table, path.decisions, router.settings.terms.kept_share, self.epsilon)
        return {"figures": np.array([metrics.expert_call_rate, cost, metrics.empirical_risk, unsafe])}


def panels_of_calls(calls: Mapping[float, Mapping[str, Mapping[str, float]]]) -> list[Panel]:
    """Expert calls of each method on each stream: a panel for each ε."""
    return [relative_bars(bars, f"Expert calls, % of requests, at ε = {epsilon:g}") for epsilon, bars in calls.items()]


def when_learned() -> str:
    """When scores are learned by default, and with which share of α, as a sentence of the report."""
    settings = LearnedScore(("any",))
    *earlier, last = (f"{audits:,}" for audits in settings.fit_at)
    fits = f"{', '.join(earlier)} and {last}" if earlier else last
    return (
        f"A score is fitted to what the table has beside its own score when {fits} audits have an outcome, and joins "
        f"if it promises to accept at least {settings.least_gain:.0%} more drafts; {1 - settings.own_share:.0%} of α "
        "is set aside for such scores."
    )


@dataclass(frozen=True, slots=True)
class LearnedStudy:
    """The default policy with and without a learned score, on tables that have features.

    Parameters
    ----------
    tables: the tables by name.
    """

    tables: tuple[tuple[str, Table], ...]
    name: str = "learned"

    def tasks(self) -> list[LearnedTask]:
        """Both policies on each table with each ε."""
        return [
            LearnedTask(table, epsilon, suited_to(Portfolio(), table), learns)
            for _, table in self.tables
            for epsilon in EPSILONS
            for learns in (False, True)
        ]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """Expert calls, cost and promise of both."""
        rows, numbers, runs = [], [], len(results[0]["figures"])
        calls: dict[float, dict[str, dict[str, float]]] = {}
        labels = [(name, epsilon, learns) for name, _ in self.tables for epsilon in EPSILONS for learns in (0, 1)]
        for (name, epsilon, learns), arrays in zip(labels, results, strict=True):
            means = arrays["figures"].mean(axis=0)
            label = "with a learned score" if learns else "the score of the table"
            numbers.append((name, epsilon, label, runs, *means.tolist()))
            calls.setdefault(epsilon, {}).setdefault(name, {})[label] = float(means[0])
            shown = ["" if math.isnan(value) else percent(value) for value in means[:3]]
            rows.append([name, f"{epsilon:g}", label, *shown, share_with_bound(round(float(means[3]) * runs), runs)])
        learned_from = "; ".join(f"{name}: {', '.join(table.features)}" for name, table in self.tables)
        folder.write_csv(self.name, ["stream", "epsilon", "method", "runs", *FIGURES], numbers)
        return ReportSection(
            self.name,
            "Scores that are learned on the way",
            f"{runs} runs. {when_learned()} Learned from: {learned_from}. Unsafe: runs in which a threshold was ever "
            "in force whose risk on the table exceeds ε for the score that it belongs to, with an upper 95 % "
            f"confidence bound; promised is at most {ALPHA:.0%}.",
            folder.write_figure(self.name, panels_of_calls(calls), 2),
            TableOfNumbers(["stream", "ε", "method", "ECP", "cost", "ER", "unsafe"], rows),
        )
