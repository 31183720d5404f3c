"""What each feature saves: expert calls, cost and promise of every variant, between B-PAC and the oracle.

1. A *variant* is a way to route: B-PAC, the portfolio, the portfolio with one feature, or with all of them. The list is
   in ``variants.py``; a new feature is one more line there.
2. Every variant is replayed on every stream, for each ε, at its natural length and at five times that length.
3. The gap is the share of expert calls that B-PAC makes beyond those of the oracle, which knows every loss and routes
   by the same score. A variant that routes by a better score may close more than all of it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.figures import share_panel
from bpac.replay.metrics import replay_metrics
from bpac.replay.oracle import oracle_expert_call_rate
from bpac.replay.parallel import Arrays, Task
from bpac.replay.replay import Replay
from bpac.replay.studies.comparison import Part
from bpac.replay.studies.methods import RoutingMethod
from bpac.replay.studies.on_tables.cascade import GivenCascade
from bpac.replay.studies.on_tables.gap import closed
from bpac.replay.studies.on_tables.savings_cascade import cascade_tasks, name_of, oracle_share
from bpac.replay.studies.on_tables.unsafe import ever_unsafe
from bpac.replay.studies.reporting.replay_results import fingerprint
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent, share_with_bound
from bpac.replay.tables.builtin import builtin_table, natural_rows
from bpac.replay.tables.table import Table, repeated

EPSILONS = (0.05, 0.08)
# How often the rows of a stream are repeated.
LENGTHS = (1, 5)
# What the task of a variant returns as its array ``figures``, in this order. ``cost`` is relative to always asking the
# expert, and NaN where it is not known; ``unsafe`` is 1 if anything unsafe was ever in force, and NaN where that is not
# known. ``cost_by_tokens`` of a cascade counts each call by its tokens at the price of its model; NaN for two models.
FIGURES = ("expert_call_rate", "cost", "empirical_risk", "unsafe", "cost_by_tokens")
COLUMNS = ("stream", "length", "ε", "variant", "ECP", "cost", "cost by tokens", "ER", "unsafe", "gap closed")


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to route.

    Parameters
    ----------
    label: its name in tables and figures.
    task: the task that measures it on a stream with an ε: its array ``figures`` has the values of ``FIGURES``. None if
        the stream does not have what it needs.
    """

    label: str
    task: Callable[[Part, float], Task | None]


@dataclass(frozen=True, slots=True)
class SavingsTask:
    """Replays of one method, with the figures at the end of each.

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
            "figures": FIGURES,
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The ``figures``."""
        method, part = self.method, self.part
        order = "given" if part.tables is None else part.order
        replay = Replay(table_of(part, number), method.make_router, seed=number, order=order)
        table, path = replay.run(0, trace=True)
        metrics = replay_metrics(table, path)
        unsafe = ever_unsafe(method, table, path.decisions)
        cost = math.nan if metrics.token_ratio is None else metrics.token_ratio
        return {"figures": np.array([metrics.expert_call_rate, cost, metrics.empirical_risk, unsafe, math.nan])}


@dataclass(frozen=True, slots=True)
class _Case:
    """A stream at a length, with an ε, and the tasks of all variants that it has what they need."""

    part: Part
    length: int
    epsilon: float
    tasks: dict[str, Task]

    def words(self) -> list[str]:
        """What it is, in a table."""
        return [self.part.label, f"× {self.length}", f"{self.epsilon:g}"]


@dataclass(frozen=True, slots=True)
class SavingsStudy:
    """Every variant on every stream.

    Parameters
    ----------
    parts: the streams, at their natural length.
    variants: the variants; the first is the one that the gap is measured from.
    cascades: tables of several models, which are compared with pairs of them (``savings_cascade.py``).
    """

    parts: tuple[Part, ...]
    variants: tuple[Variant, ...]
    cascades: tuple[GivenCascade, ...] = ()
    name: str = "savings"

    def _cases(self) -> list[_Case]:
        cases = []
        for epsilon, length, part in product(EPSILONS, LENGTHS, self.parts):
            stream = longer(part, length)
            tasks = {variant.label: variant.task(stream, epsilon) for variant in self.variants}
            cases.append(_Case(stream, length, epsilon, {k: task for k, task in tasks.items() if task is not None}))
        return cases

    def tasks(self) -> list[Task]:
        """Each variant on each stream, with each ε and length; then each cascade and its pairs, with each ε."""
        of_pairs = [task for case in self._cases() for task in case.tasks.values()]
        of_cascades = product(EPSILONS, self.cascades)
        return of_pairs + [task for e, given in of_cascades for task in cascade_tasks(given, e).values()]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """The figures of each variant, and the share of the gap that it closes."""
        first, runs, remaining = self.variants[0].label, len(results[0]["figures"]), iter(results)
        numbers: list[tuple[object, ...]] = []
        rows: list[list[str]] = []
        shares: dict[tuple[float, int], dict[str, list[float]]] = {}
        for case in self._cases():
            figures = {label: next(remaining)["figures"] for label in case.tasks}
            where = (case.part.label, case.length, case.epsilon)
            oracle = oracle_expert_call_rate(table_of(case.part), case.epsilon)
            for label, values in figures.items():
                means, stds = values.mean(axis=0), values.std(axis=0)
                share = closed(float(figures[first][:, 0].mean()), float(means[0]), oracle)
                if share is not None and label != first:
                    shares.setdefault((case.epsilon, case.length), {}).setdefault(label, []).append(share)
                spread = np.column_stack((means[:3], stds[:3])).ravel().tolist()
                numbers.append((*where, label, runs, *spread, float(means[3]), share, None, None))
                gap = "" if share is None else f"{share:.0%}"
                shown = [*map(_shown, means[:2]), "", _shown(means[2]), _unsafe(values[:, 3])]
                rows.append([*case.words(), label, *shown, gap])
            numbers.append((*where, "oracle", runs, oracle, 0.0, *[None] * 8))
            rows.append([*case.words(), "oracle", percent(oracle), "", "", "", "", "100%"])
        for epsilon, given in product(EPSILONS, self.cascades):
            name = name_of(given)
            for label in cascade_tasks(given, epsilon):
                values = next(remaining)["figures"]
                means, stds = values.mean(axis=0), values.std(axis=0)
                spread = np.column_stack((means[:3], stds[:3])).ravel().tolist()
                by_tokens = (None, None) if math.isnan(means[4]) else (float(means[4]), float(stds[4]))
                numbers.append((name, 1, epsilon, label, runs, *spread, float(means[3]), None, *by_tokens))
                shown = [*map(_shown, (*means[:2], means[4], means[2])), _unsafe(values[:, 3])]
                rows.append([name, "× 1", f"{epsilon:g}", label, *shown, ""])
            least = oracle_share(given, epsilon)
            numbers.append((name, 1, epsilon, "oracle", runs, None, None, least, 0.0, *[None] * 6))
            rows.append([name, "× 1", f"{epsilon:g}", "oracle", "", percent(least), "", "", "", ""])
        panels = []
        for (epsilon, length), of_variants in shares.items():
            means_of = {label: float(np.mean(values)) for label, values in of_variants.items()}
            words = ["all streams", f"× {length}", f"{epsilon:g}"]
            rows += [[*words, label, "", "", "", "", "", f"{share:.0%}"] for label, share in means_of.items()]
            long = "" if length == 1 else f", streams {length} times as long"
            axis = f"gap closed, %: 0 is {first}, 100 the oracle"
            panels.append(share_panel(means_of, f"ε = {epsilon:g}{long}", axis))
        columns = [f"{name}_{part}" for name in FIGURES[:3] for part in ("mean", "std")]
        header = ["stream", "length", "epsilon", "variant", "runs", *columns, "unsafe_share", "gap_closed"]
        header += ["cost_by_tokens_mean", "cost_by_tokens_std"]
        folder.write_csv(self.name, header, numbers)
        return ReportSection(
            self.name,
            "What each feature saves",
            f"{runs} runs. The gap is the share of expert calls that {first} makes beyond those of the oracle, and the "
            "figure shows how much of it each variant closes, as a mean over all streams. The oracle knows every loss, "
            "routes by the score of the table and explores 5 % of the drafts that it accepts. Cost: "
            "tokens relative to always asking the expert, and for tables of several models money relative to always "
            "asking the last one, at the price of a call. Cost by tokens: the same, if each call costs in proportion "
            "to its tokens. Unsafe: runs in which a threshold was ever in force whose "
            "risk on the table exceeds ε, with an upper 95 % confidence bound; promised is at most 10 %. A feature "
            "changes nothing where it has nothing to work with: learned scores need a table with further columns, "
            "dithered scores need ties.",
            folder.write_figure(self.name, panels, 2) if panels else [],
            TableOfNumbers(COLUMNS, rows),
        )


def table_of(part: Part, run: int = 0) -> Table:
    """The table of a stream; a built-in one is drawn again for every run."""
    return builtin_table(part.stream, run, part.rows) if part.tables is None else part.tables["uncertainty"]


def longer(part: Part, times: int) -> Part:
    """A stream of several times the length: more rows of a built-in table, or the same rows several times."""
    if times == 1:
        return part
    if part.tables is None:
        return replace(part, rows=times * (part.rows or natural_rows(part.stream)))
    return replace(part, tables={score: repeated(table, times) for score, table in part.tables.items()})


def _shown(value: float) -> str:
    return "" if math.isnan(value) else percent(value)


def _unsafe(of_runs: NDArray[np.float64]) -> str:
    return "" if np.isnan(of_runs).any() else share_with_bound(int(of_runs.sum()), len(of_runs))
