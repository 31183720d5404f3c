"""What a learned score saves, and what segments save that learn together (MATH sections 8 and 14)."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bpac.replay.metrics import replay_metrics
from bpac.replay.parallel import Arrays
from bpac.replay.replay import rows_of_features, send_table
from bpac.replay.router_factory import RouterFactory, learning_for
from bpac.replay.simulation.delays import Delay
from bpac.replay.studies.methods import ALPHA
from bpac.replay.studies.replay_results import fingerprint
from bpac.replay.studies.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent, share_with_bound
from bpac.replay.tables.table import Table, shuffled
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.learning.shared_scores import SharedScores
from bpac.routing.policies import Policy, Portfolio
from bpac.routing.router import Router
from bpac.routing.segments import Segments

EPSILONS = (0.05, 0.08)
# The array ``figures`` of a learned task: ``cost`` in tokens is relative to always asking the expert, and NaN where it
# is not known; ``unsafe`` is 1 if a threshold was ever in force whose risk on the table exceeds ε for its score.
FIGURES = ("expert_call_rate", "cost", "empirical_risk", "unsafe")
SEGMENT = "category"
Mode = Literal["one score", "each segment learns", "segments learn together"]
MODES: tuple[Mode, ...] = ("one score", "each segment learns", "segments learn together")


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


def is_unsafe(table: Table, decisions: Sequence[Decision], kept_share: float, epsilon: float) -> bool:
    """Whether a threshold was in force whose risk, by the rows that have its score, exceeds ε.

    The risk of a learned score is that of the rows after it had joined: only they have it.
    """
    scores = max(len(decision.uncertainties) or 1 for decision in decisions)
    for score in range(scores):
        have = [i for i, decision in enumerate(decisions) if len(decision.uncertainties or (0,)) > score]
        values = np.array([(decisions[i].uncertainties or (decisions[i].uncertainty,))[score] for i in have])
        used = [
            decisions[i].threshold for i, value in zip(have, values, strict=True) if decisions[i].uncertainty == value
        ]
        highest = max(used, default=0.0)
        if kept_share * float(np.mean(table.loss[have] * (values < highest))) > epsilon + 1e-12:
            return True
    return False


@dataclass(frozen=True, slots=True)
class SegmentsTask:
    """Replays in which each category of a table is a segment with a promise of its own.

    Parameters
    ----------
    table: the recorded answers, with their category.
    epsilon: promised bound on the loss.
    mode: whether scores are learned, and whether segments learn together.
    """

    table: Table
    epsilon: float
    mode: Mode

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        settings = self._router("", ALPHA, 0).settings.to_json()
        return {"stream": fingerprint(self.table), "settings": settings, "mode": self.mode}

    def _router(self, name: str, alpha: float, seed: int) -> Router:
        policy: Policy = Portfolio()
        if self.mode != "one score":
            policy = Portfolio(learn=LearnedScore(tuple(self.table.features)))
        return Router(self.epsilon, alpha, policy, coins=SeededCoins((seed << 32) + crc32(name.encode())))

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """Expert call rate and empirical risk of the smaller half of the segments, then of the larger."""
        table = shuffled(self.table, np.random.default_rng([number, 1]))
        names = table.features[SEGMENT].tolist()
        by_size = [name for name, _ in Counter(names).most_common()]
        small = set(by_size[(len(by_size) + 1) // 2 :])
        shared = SharedScores() if self.mode == "segments learn together" else None
        segments = Segments(lambda name, alpha: self._router(name, alpha, number), ALPHA, most=10_000, shared=shared)
        features = rows_of_features(table, tuple(table.features))
        sums = {True: np.zeros(3), False: np.zeros(3)}
        rows = zip(table.uncertainty.tolist(), table.loss.tolist(), names, features, strict=True)
        for uncertainty, loss, name, known in rows:
            router = segments.router(str(name))
            decision = router.decide(uncertainty, features=None if self.mode == "one score" else known)
            if decision.call_expert:
                router.observe(decision, loss)
            sums[name in small] += (1.0, decision.call_expert, loss * decision.serve_draft)
        return {"figures": np.concatenate([sums[part][1:] / max(sums[part][0], 1.0) for part in (True, False)])}


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
            LearnedTask(table, epsilon, Portfolio(), learns)
            for _, table in self.tables
            for epsilon in EPSILONS
            for learns in (False, True)
        ]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """Expert calls, cost and promise of both."""
        rows, numbers, runs = [], [], len(results[0]["figures"])
        labels = [(name, epsilon, learns) for name, _ in self.tables for epsilon in EPSILONS for learns in (0, 1)]
        for (name, epsilon, learns), arrays in zip(labels, results, strict=True):
            means = arrays["figures"].mean(axis=0)
            label = "with a learned score" if learns else "the score of the table"
            numbers.append((name, epsilon, label, runs, *means.tolist()))
            shown = ["" if math.isnan(value) else percent(value) for value in means[:3]]
            rows.append([name, f"{epsilon:g}", label, *shown, share_with_bound(round(float(means[3]) * runs), runs)])
        folder.write_csv(self.name, ["stream", "epsilon", "method", "runs", *FIGURES], numbers)
        return ReportSection(
            self.name,
            "Scores that are learned on the way",
            f"{runs} runs. One fit, when 200 audits have an outcome, on what the table has beside its score. Unsafe: "
            "runs in which a threshold was ever in force whose risk on the table exceeds ε for the score that it "
            "belongs to; promised is at most 10 %.",
            [],
            TableOfNumbers(["stream", "ε", "method", "ECP", "cost", "ER", "unsafe"], rows),
        )


@dataclass(frozen=True, slots=True)
class SegmentsStudy:
    """Segments that share strength: what small segments save if all learn together.

    Parameters
    ----------
    tables: the tables by name; each has categories.
    """

    tables: tuple[tuple[str, Table], ...]
    name: str = "segments"

    def tasks(self) -> list[SegmentsTask]:
        """Each mode on each table with each ε."""
        return [SegmentsTask(table, eps, mode) for _, table in self.tables for eps in EPSILONS for mode in MODES]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """Expert calls and loss of small and of large segments."""
        rows, numbers, runs = [], [], len(results[0]["figures"])
        labels = [(name, epsilon, mode) for name, _ in self.tables for epsilon in EPSILONS for mode in MODES]
        for (name, epsilon, mode), arrays in zip(labels, results, strict=True):
            means = arrays["figures"].mean(axis=0).tolist()
            numbers.append((name, epsilon, mode, runs, *means))
            rows.append([name, f"{epsilon:g}", mode, *map(percent, means)])
        columns = [
            f"{figure}_{part}" for part in ("small", "large") for figure in ("expert_call_rate", "empirical_risk")
        ]
        folder.write_csv(self.name, ["stream", "epsilon", "method", "runs", *columns], numbers)
        return ReportSection(
            self.name,
            "Segments that learn together",
            f"{runs} runs. Each category is a segment with its own wealth and its own promise. Small segments are the "
            "smaller half of them.",
            [],
            TableOfNumbers(["stream", "ε", "method", "ECP, small", "ER, small", "ECP, large", "ER, large"], rows),
        )
