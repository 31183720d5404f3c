"""Comparisons of methods on one table: those of the paper and similar ones."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bpac.replay.figures import draw_paths, draw_sweep, draw_thresholds
from bpac.replay.parallel import Arrays
from bpac.replay.studies.experiments import Experiment
from bpac.replay.studies.replay_results import METRICS, ReplayResult, ReplayTask
from bpac.replay.studies.report import ReportSection
from bpac.replay.studies.study import ResultsFolder
from bpac.replay.tables.table import Table


@dataclass(frozen=True, slots=True)
class ComparisonStudy:
    """An experiment as a study.

    Parameters
    ----------
    experiment: the experiment.
    table: a given table to use instead of the built-in one.
    """

    experiment: Experiment
    table: Table | None = None

    @property
    def name(self) -> str:
        """Its name on the command line and of its files."""
        return self.experiment.name

    def tasks(self) -> list[ReplayTask]:
        """One task for each method."""
        one = self.experiment
        return [ReplayTask(method, one.stream, one.rows, self.table) for method in one.methods]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """ER, ECP, TP and threshold of every method."""
        experiment = self.experiment
        replays = [ReplayResult.of(task, arrays) for task, arrays in zip(self.tasks(), results, strict=True)]
        header = ["method", "at", "epsilon", *(f"{metric}_{part}" for metric in METRICS for part in ("mean", "std"))]
        final = [(r.method.label, r.method.at, r.method.epsilon, *_final(r)) for r in replays]
        folder.write_csv(self.name, header, final)
        folder.write_csv(f"{self.name}-paths", ["method", "at", "step", *header[3:]], _path_rows(replays))
        if experiment.varied:
            figure = draw_sweep(experiment, replays)
        else:
            figure = (draw_thresholds if experiment.view == "threshold" else draw_paths)(experiment, replays)
        shown = ["method", *([experiment.varied] if experiment.varied else []), "ε", "ER", "ECP", "TP", "threshold"]
        source = "Table" if self.table is not None else "Built-in table"
        text = (
            f"{source} {experiment.stream}, {len(replays[0].paths)} runs: "
            "mean ± standard deviation at the end of the stream."
        )
        rows = [_shown(result, experiment) for result in replays]
        svg = folder.write_figure(self.name, figure)
        return ReportSection(self.name, experiment.title, text, svg, shown, rows)


def percents(result: ReplayResult) -> list[str]:
    """ER, ECP and TP at the last step: mean and standard deviation as percentages."""
    return [_spread(result, metric) for metric in METRICS[:3]]


def _spread(result: ReplayResult, metric: str) -> str:
    mean, std = result.final(metric)
    # A table without tokens has no TP.
    return "" if math.isnan(mean) else f"{100 * mean:.1f} ± {100 * std:.1f} %"


def _final(result: ReplayResult) -> Iterable[float]:
    return (number for metric in METRICS for number in result.final(metric))


def _shown(result: ReplayResult, experiment: Experiment) -> list[str]:
    at = [f"{result.method.at:g}"] if experiment.varied else []
    mean, std = result.final("threshold")
    return [result.method.label, *at, f"{result.method.epsilon:g}", *percents(result), f"{mean:.3f} ± {std:.3f}"]


def _path_rows(results: Sequence[ReplayResult]) -> Iterable[tuple[object, ...]]:
    for result in results:
        mean, std = result.paths.mean(axis=0), result.paths.std(axis=0)
        for k, step in enumerate(result.steps.tolist()):
            values = (float(part[metric, k]) for metric in range(len(METRICS)) for part in (mean, std))
            yield (result.method.label, result.method.at, step, *values)
