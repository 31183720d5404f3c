"""What segments save that learn their scores together, and the promise of each (MATH sections 8 and 14)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bpac.replay.parallel import Arrays
from bpac.replay.replay import rows_of_features
from bpac.replay.router_factory import learning_for, suited_to
from bpac.replay.studies.methods import ALPHA
from bpac.replay.studies.on_tables.learned import EPSILONS, panels_of_calls, when_learned
from bpac.replay.studies.on_tables.unsafe import is_unsafe
from bpac.replay.studies.reporting.replay_results import fingerprint
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent
from bpac.replay.tables.table import Table, shuffled
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.learning.learned_score import FIT_TOGETHER
from bpac.routing.learning.shared_scores import SharedScores
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router
from bpac.routing.segments import Segments

SEGMENT = "category"
Mode = Literal["one score", "each segment learns", "segments learn together"]
MODES: tuple[Mode, ...] = ("one score", "each segment learns", "segments learn together")
# The array ``figures`` of a task; ``unsafe`` has a value for each segment.
FIGURES = ("expert_call_rate_small", "empirical_risk_small", "expert_call_rate_large", "empirical_risk_large")
COLUMNS = (
    *("stream", "ε", "method", "ECP, small", "ER, small", "ECP, large", "ER, large"),
    *("unsafe, mean", "unsafe, most"),
)


def sizes(table: Table) -> dict[str, int]:
    """The segments of a table and how many rows each has, the largest first."""
    counts = Counter(map(str, table.features[SEGMENT].tolist()))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


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
        return {
            "stream": fingerprint(self.table),
            "settings": settings,
            "mode": self.mode,
            "figures": (*FIGURES, "unsafe"),
        }

    def _router(self, name: str, alpha: float, seed: int) -> Router:
        policy = suited_to(Portfolio(), self.table)
        if self.mode != "one score":
            policy = learning_for(policy, self.table, together=self.mode == "segments learn together")
        return Router(self.epsilon, alpha, policy, coins=SeededCoins((seed << 32) + crc32(name.encode())))

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The ``figures`` of the smaller half of the segments and of the larger.

        ``unsafe`` is 1 for each segment in which a threshold was ever in force whose risk there exceeds ε.
        """
        table = shuffled(self.table, np.random.default_rng([number, 1]))
        names = list(map(str, table.features[SEGMENT].tolist()))
        by_size = list(sizes(self.table))
        shared = SharedScores() if self.mode == "segments learn together" else None
        segments = Segments(lambda name, alpha: self._router(name, alpha, number), ALPHA, most=10_000, shared=shared)
        features = rows_of_features(table, tuple(table.features))
        outcomes: list[tuple[float, float]] = []  # whether the expert was called, and the loss that was served
        decisions: dict[str, list[Decision]] = {name: [] for name in by_size}
        rows = zip(table.uncertainty.tolist(), table.loss.tolist(), names, features, strict=True)
        for uncertainty, loss, name, known in rows:
            router = segments.router(name)
            decision = router.decide(uncertainty, features=None if self.mode == "one score" else known)
            decisions[name].append(decision)
            if decision.call_expert:
                router.observe(decision, loss)
            outcomes.append((decision.call_expert, loss * decision.serve_draft))
        kept_share = router.settings.terms.kept_share
        of_segment = np.array(names)
        is_small = np.isin(of_segment, by_size[(len(by_size) + 1) // 2 :])
        unsafe = [
            is_unsafe(table.take(of_segment == name), decisions[name], kept_share, self.epsilon) for name in by_size
        ]
        figures = np.concatenate(
            [np.array(outcomes)[part].sum(axis=0) / max(part.sum(), 1) for part in (is_small, ~is_small)]
        )
        return {"figures": figures, "unsafe": np.array(unsafe, dtype=np.float64)}


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
        """Expert calls and loss of small and of large segments, and the promise of each segment."""
        rows, numbers, each, runs = [], [], [], len(results[0]["figures"])
        calls: dict[float, dict[str, dict[str, float]]] = {}
        labels = [(name, table, epsilon, mode) for name, table in self.tables for epsilon in EPSILONS for mode in MODES]
        for (name, table, epsilon, mode), arrays in zip(labels, results, strict=True):
            means = arrays["figures"].mean(axis=0).tolist()
            counts = arrays["unsafe"].sum(axis=0).astype(int).tolist()
            mean, most = sum(counts) / (runs * len(counts)), max(counts)
            numbers.append((name, epsilon, mode, runs, *means, mean, most))
            for part, rate in (("small", means[0]), ("large", means[2])):
                calls.setdefault(epsilon, {}).setdefault(f"{name}, {part} segments", {})[mode] = rate
            where = (name, epsilon, mode, runs)
            each += [(*where, *size, unsafe) for size, unsafe in zip(sizes(table).items(), counts, strict=True)]
            worst = f"{most} of {runs}" + (f": {list(sizes(table))[counts.index(most)]}" if most else "")
            rows.append([name, f"{epsilon:g}", mode, *map(percent, means), percent(mean), worst])
        header = ["stream", "epsilon", "method", "runs"]
        folder.write_csv(self.name, [*header, *FIGURES, "unsafe_share_mean", "unsafe_runs_most"], numbers)
        folder.write_csv(f"{self.name}-each", [*header, "segment", "rows", "unsafe_runs"], each)
        return ReportSection(
            self.name,
            "Segments that learn together",
            f"{runs} runs. Each category is a segment with its own wealth and its own promise. Small segments are the "
            f"smaller half of them. {when_learned()} Segments that learn together have one score, fitted to the first "
            f"{FIT_TOGETHER[0]:,} audits of all of them. Unsafe: runs in which a threshold was ever in force in a "
            "segment whose risk on the rows of that segment exceeds ε for the score that it belongs to; the mean over "
            f"segments, and the segment with most such runs. Promised is at most {ALPHA:.0%} of the runs for each "
            f"segment. {self.name}-each.csv has the number of each.",
            folder.write_figure(self.name, panels_of_calls(calls), 2),
            TableOfNumbers(COLUMNS, rows),
        )
