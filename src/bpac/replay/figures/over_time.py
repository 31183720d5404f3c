"""Figures of replays over time."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpac.replay.figures.canvas import Panel, as_figure, label_lines, limit_line, line_style, shades
from bpac.replay.metrics import ReplayPath
from bpac.replay.studies.reporting.replay_results import METRICS, ReplayResult
from bpac.replay.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {
    "empirical_risk": "Empirical risk (ER), %",
    "expert_call_rate": "Expert calls (ECP), %",
    "token_ratio": "Tokens (TP), % of the expert's",
    "threshold": "Threshold",
}
# Averages over the first few answers vary too much to be shown: this share of the stream is left out.
UNSETTLED = 0.02


def draw_replays(paths: Mapping[str, tuple[Table, ReplayPath]], epsilon: float, title: str) -> "Figure":
    """Expert calls, actual loss and threshold over time, one line for each policy.

    Parameters
    ----------
    paths: for each policy, the table in the order of decisions and the path with its decisions.
    epsilon: promised bound on the loss.
    title: title of the figure.
    """
    lines: dict[str, dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]] = {
        "Expert calls so far, %": {},
        "Actual loss so far, %": {},
        "Threshold": {},
    }
    for name, (table, path) in paths.items():
        steps = np.arange(1, len(table) + 1)
        values = (
            100.0 * np.cumsum(path.call_expert) / steps,
            100.0 * np.cumsum(table.loss * path.serve_draft) / steps,
            np.array([decision.threshold for decision in path.decisions]),
        )
        for drawn, value in zip(lines.values(), values, strict=True):
            drawn[name] = (steps, value)
    highest = (100.0, 120.0 * epsilon, 1.0)
    panels = [
        Panel(shown, partial(_draw_single_runs, drawn, top, 100.0 * epsilon if "loss" in shown else None))
        for (shown, drawn), top in zip(lines.items(), highest, strict=True)
    ]
    return as_figure(panels, 3, title)


def _draw_single_runs(
    drawn: Mapping[str, tuple[NDArray[np.int64], NDArray[np.float64]]], top: float, limit: float | None, axes: "Axes"
) -> None:
    labels = []
    for number, (name, (steps, values)) in enumerate(drawn.items()):
        colour, style = line_style("B-PAC" if name == "paper" else name, number)
        axes.plot(steps, values, color=colour, linestyle=style, linewidth=1.6)
        labels.append((name, float(values[-1]), colour))
    axes.set_ylim(0.0, top)
    axes.set_xlabel("Step")
    if limit is not None:
        limit_line(axes, limit, f"limit ε = {limit / 100:g}")
    label_lines(axes, labels)


def panels_over_time(
    results: Sequence[ReplayResult], metrics: Sequence[str], marks: Sequence[tuple[int, str]] = (), part: str = ""
) -> list[Panel]:
    """A panel for each metric: mean over the runs as a line, ± one standard deviation as a band.

    Parameters
    ----------
    results: the methods.
    metrics: the metrics; the token ratio is left out where it is not known.
    marks: steps at which something happens, and what.
    part: the name of the stream, where a figure has several.
    """
    before = f"{part}: " if part else ""
    known = [metric for metric in metrics if not np.isnan(results[0].final(metric)[0])]
    return [Panel(before + TITLES[metric], partial(_draw_metric, results, metric, marks)) for metric in known]


def _draw_metric(results: Sequence[ReplayResult], metric: str, marks: Sequence[tuple[int, str]], axes: "Axes") -> None:
    index, unit = METRICS.index(metric), 1.0 if metric == "threshold" else 100.0
    steps = results[0].steps
    settled = steps >= UNSETTLED * steps[-1]
    highest = max(unit * float(result.paths[:, index][:, settled].max()) for result in results)
    faint = 0.14 if len(results) < 5 else 0.07  # many bands overlap
    labels, tops = [], []
    for result, colour, style in zip(results, *_looks(results), strict=True):
        values = unit * result.paths[:, index][:, settled]
        mean, std = values.mean(axis=0), values.std(axis=0)
        # A band is cut where no run can be: a share is at most 100 %, and TP at most what the worst run had.
        top = np.minimum(mean + std, unit if metric != "token_ratio" else highest)
        axes.plot(steps[settled], mean, color=colour, linestyle=style, linewidth=1.6)
        axes.fill_between(steps[settled], np.maximum(mean - std, 0.0), top, color=colour, alpha=faint, linewidth=0.0)
        labels.append((result.method.line or result.method.label, float(mean[-1]), colour))
        tops.append(float(top.max()))
    limits = sorted({result.method.epsilon for result in results})
    if metric == "empirical_risk":
        axes.set_ylim(0.0, max(120.0 * limits[-1], 1.05 * max(tops)))
        if len(limits) == 1:
            limit_line(axes, 100.0 * limits[0], f"ε = {limits[0]:g}")
        else:
            for result, (_, _, colour) in zip(results, labels, strict=True):
                axes.axhline(100.0 * result.method.epsilon, color=colour, linewidth=0.8, linestyle=":")
    elif metric == "token_ratio":
        axes.set_ylim(0.0, max(105.0, 1.05 * max(tops)))
        axes.axhline(100.0, color="#777777", linewidth=0.8)
    else:
        axes.set_ylim(0.0, 1.02 * unit)
    for height, (step, text) in enumerate(marks):
        axes.axvline(step, color="#777777", linewidth=1.0, linestyle=":")
        axes.annotate(text, (step, 0.03 + 0.08 * height), xycoords=("data", "axes fraction"), xytext=(3, 0), fontsize=8,
                      textcoords="offset points", color="#555555")  # fmt: skip
    axes.set_xlabel("Step t", fontsize=9)
    axes.set_xlim(0, steps[-1])
    label_lines(axes, labels)


def _looks(results: Sequence[ReplayResult]) -> tuple[list[str], list[object]]:
    """Colours and dashes: shades where the labels of the lines are numbers, else a style for each method."""
    numbers = [result.method.line for result in results]
    ordered = [line for line in numbers if line]
    tones = dict(zip(ordered, shades(len(ordered)), strict=True))
    looks = [
        (tones[line], "-") if line else line_style(result.method.label, number)
        for number, (line, result) in enumerate(zip(numbers, results, strict=True))
    ]
    return [colour for colour, _ in looks], [style for _, style in looks]
