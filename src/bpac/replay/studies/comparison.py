"""Comparisons of methods on tables: figures over time, numbers at the end, and statements that are checked."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bpac.replay.figures import Panel, panels_over_time
from bpac.replay.parallel import Arrays
from bpac.replay.router_factory import suited_to
from bpac.replay.studies.methods import B_PAC, PORTFOLIO, RoutingMethod
from bpac.replay.studies.reporting.replay_results import METRICS, ReplayResult, ReplayTask
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.reporting.statements import Measured, Statement, mark_of
from bpac.replay.studies.study import ResultsFolder
from bpac.replay.tables.table import Table

OVER_TIME = ("empirical_risk", "expert_call_rate", "token_ratio")
# Mean and standard deviation of each metric at the last step, as columns of a file.
COLUMNS = [f"{metric}_{part}" for metric in METRICS for part in ("mean", "std")]


@dataclass(frozen=True, slots=True)
class Part:
    """One stream of a comparison.

    Parameters
    ----------
    label: its name in the figure.
    stream: name of a built-in table, which is generated again for every run, or of a given table.
    tables: the given table, for each score that it has; none for a built-in table.
    order: whether a given table is shuffled for every run.
    rows: number of rows of a built-in table (default: its own).
    """

    label: str
    stream: str
    tables: Mapping[str, Table] | None = None
    order: Literal["shuffled", "given"] = "shuffled"
    rows: int | None = None

    def task(self, method: RoutingMethod) -> ReplayTask:
        """The replays of a method on this stream."""
        if self.tables is None:
            return ReplayTask(method, self.stream, self.rows, None, self.order)
        table = self.tables[method.score]
        fitting = replace(method, policy=suited_to(method.policy, table))
        return ReplayTask(fitting, self.stream, self.rows, table, self.order)

    def has(self, method: RoutingMethod) -> bool:
        """Whether the stream has the score that the method needs."""
        return self.tables is None or method.score in self.tables


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of methods on one or more streams, as a study.

    Parameters
    ----------
    name: its name on the command line and of its files.
    title: what it shows.
    parts: the streams.
    methods: the methods that are compared on each stream.
    number: the number of the figure or table of the paper that it reproduces; empty for our own.
    text: how to read it.
    panels: the metrics that the figure shows over time; empty for no figure.
    drawn: which methods the figure shows (default: all).
    marks: steps at which something happens, and what.
    statements: what the paper prints or says, to be checked.
    because: the usual reason why a statement does not hold; empty if none is known.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    methods: tuple[RoutingMethod, ...]
    number: str = ""
    text: str = ""
    panels: tuple[str, ...] = OVER_TIME
    drawn: Callable[[RoutingMethod], bool] = lambda _: True
    marks: tuple[tuple[int, str], ...] = ()
    statements: tuple[Statement, ...] = ()
    because: str = ""

    def _pairs(self) -> list[tuple[Part, RoutingMethod]]:
        return [(part, method) for part in self.parts for method in self.methods if part.has(method)]

    def tasks(self) -> list[ReplayTask]:
        """One task for each stream and method."""
        return [part.task(method) for part, method in self._pairs()]

    def measured(self, results: Sequence[Arrays]) -> Measured:
        """The results by part and method."""
        return {
            (part.label, method.label): ReplayResult.of(part.task(method), arrays)
            for (part, method), arrays in zip(self._pairs(), results, strict=True)
        }

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """Figure, numbers, and which of the paper's statements hold."""
        measured = self.measured(results)
        runs = len(results[0]["paths"])
        folder.write_csv(self.name, ["stream", "method", "epsilon", "runs", *COLUMNS], _final_rows(measured, runs))
        folder.write_csv(f"{self.name}-paths", ["stream", "method", "epsilon", "step", *COLUMNS], _path_rows(measured))
        findings = [statement.check(measured) for statement in self.statements]
        figure = folder.write_figure(self.name, self._panels(measured), 3) if self.panels else []
        return ReportSection(
            self.name,
            self.title,
            f"{self.text} {runs} runs, ε = {_epsilons(self.methods)}. {_saved(measured)}".strip(),
            figure,
            self.table(measured),
            number=self.number,
            streams=f"{'; '.join(part.label for part in self.parts)}; {_epsilons(self.methods)}",
            mark=mark_of(findings, runs, self.because) if self.statements else None,
            findings=findings,
        )

    def _panels(self, measured: Measured) -> list[Panel]:
        panels = []
        for part in self.parts:
            shown = [
                result for (label, _), result in measured.items() if label == part.label and self.drawn(result.method)
            ]
            label = part.label if len(self.parts) > 1 else ""
            panels += panels_over_time(shown, self.panels, self.marks, label)
        return panels

    def table(self, measured: Measured) -> TableOfNumbers:
        """ER, ECP, TP and threshold of every method at the end of the stream."""
        rows = [
            [part, method, f"{result.method.epsilon:g}", *percents(result), _threshold(result)]
            for (part, method), result in measured.items()
        ]
        return TableOfNumbers(["stream", "method", "ε", "ER", "ECP", "TP", "threshold"], rows)


def percents(result: ReplayResult) -> list[str]:
    """ER, ECP and TP at the last step: mean and standard deviation as percentages."""
    return [_spread(result, metric) for metric in METRICS[:3]]


def _spread(result: ReplayResult, metric: str) -> str:
    mean, std = result.final(metric)
    # A table without tokens has no TP.
    return "" if math.isnan(mean) else f"{100 * mean:.1f} ± {100 * std:.1f} %"


def _threshold(result: ReplayResult) -> str:
    mean, std = result.final("threshold")
    return f"{mean:.3f} ± {std:.3f}"


def _epsilons(methods: Sequence[RoutingMethod]) -> str:
    values = sorted({method.epsilon for method in methods})
    return f"{values[0]:g}" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g}"


def _saved(measured: Measured) -> str:
    """What the portfolio does on the same streams, in words."""
    words = []
    for (part, label), result in measured.items():
        paper = measured.get((part, B_PAC))
        if label == PORTFOLIO and paper is not None:
            calls = [100.0 * one.final("expert_call_rate")[0] for one in (result, paper)]
            words.append(f"{part}: {calls[0]:.1f} % instead of {calls[1]:.1f} %")
    return f"Expert calls of the portfolio instead of B-PAC on the same stream: {'; '.join(words)}." if words else ""


def _final_rows(measured: Measured, runs: int) -> Iterable[tuple[object, ...]]:
    for (part, label), result in measured.items():
        final = (number for metric in METRICS for number in result.final(metric))
        yield (part, label, result.method.epsilon, runs, *final)


def _path_rows(measured: Measured) -> Iterable[tuple[object, ...]]:
    for (part, label), result in measured.items():
        mean, std = result.paths.mean(axis=0), result.paths.std(axis=0)
        for k, step in enumerate(result.steps.tolist()):
            values = (float(one[metric, k]) for metric in range(len(METRICS)) for one in (mean, std))
            yield (part, label, result.method.epsilon, step, *values)
