"""The paper's comparisons, and ours that look like them: methods on one stream."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bpac.replay.experiments import Experiment
from bpac.replay.figures import draw_paths, draw_sweep, draw_thresholds
from bpac.replay.outcomes import METRICS, Outcome, ReplayTask
from bpac.replay.parallel import Arrays
from bpac.replay.report import Section
from bpac.replay.studies.study import Folder
from bpac.replay.tables.table import Table


@dataclass(frozen=True, slots=True)
class ComparisonStudy:
    """An experiment as a study.

    Parameters
    ----------
    experiment: which.
    table: a given table in the place of the built-in stream.
    """

    experiment: Experiment
    table: Table | None = None

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return self.experiment.name

    def tasks(self) -> list[ReplayTask]:
        """One for each method."""
        one = self.experiment
        return [ReplayTask(method, one.stream, one.rows, self.table) for method in one.methods]

    def section(self, results: Sequence[Arrays], folder: Folder) -> Section:
        """ER, ECP, TP and threshold of every method."""
        experiment = self.experiment
        outcomes = [Outcome.of(task, arrays) for task, arrays in zip(self.tasks(), results, strict=True)]
        header = ["method", "at", "epsilon", *(f"{metric}_{part}" for metric in METRICS for part in ("mean", "std"))]
        final = [(o.method.label, o.method.at, o.method.epsilon, *_final(o)) for o in outcomes]
        folder.csv(self.name, header, final)
        folder.csv(f"{self.name}-paths", ["method", "at", "step", *header[3:]], _path_rows(outcomes))
        if experiment.varied:
            figure = draw_sweep(experiment, outcomes)
        else:
            figure = (draw_thresholds if experiment.view == "threshold" else draw_paths)(experiment, outcomes)
        shown = ["method", *([experiment.varied] if experiment.varied else []), "ε", "ER", "ECP", "TP", "threshold"]
        source = "Table" if self.table is not None else "Built-in stream"
        text = (
            f"{source} {experiment.stream}, {len(outcomes[0].paths)} runs: "
            "mean ± standard deviation at the end of the stream."
        )
        rows = [_shown(outcome, experiment) for outcome in outcomes]
        return Section(self.name, experiment.title, text, folder.picture(self.name, figure), shown, rows)


def percents(outcome: Outcome) -> list[str]:
    """ER, ECP and TP at the end, as people read them."""
    return [_spread(outcome, metric) for metric in METRICS[:3]]


def _spread(outcome: Outcome, metric: str) -> str:
    mean, std = outcome.final(metric)
    # A stream without tokens has no TP.
    return "" if math.isnan(mean) else f"{100 * mean:.1f} ± {100 * std:.1f} %"


def _final(outcome: Outcome) -> Iterable[float]:
    return (number for metric in METRICS for number in outcome.final(metric))


def _shown(outcome: Outcome, experiment: Experiment) -> list[str]:
    at = [f"{outcome.method.at:g}"] if experiment.varied else []
    mean, std = outcome.final("threshold")
    return [outcome.method.label, *at, f"{outcome.method.epsilon:g}", *percents(outcome), f"{mean:.3f} ± {std:.3f}"]


def _path_rows(outcomes: Sequence[Outcome]) -> Iterable[tuple[object, ...]]:
    for outcome in outcomes:
        mean, std = outcome.paths.mean(axis=0), outcome.paths.std(axis=0)
        for k, step in enumerate(outcome.steps.tolist()):
            values = (float(part[metric, k]) for metric in range(len(METRICS)) for part in (mean, std))
            yield (outcome.method.label, outcome.method.at, step, *values)
