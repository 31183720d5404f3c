"""Figures of replays over time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpac.replay.figures.canvas import COLOURS, STYLES, format_panel, line_style, new_figure
from bpac.replay.metrics import ReplayPath
from bpac.replay.studies.experiments import Experiment
from bpac.replay.studies.replay_results import METRICS, ReplayResult
from bpac.replay.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_replays(paths: Mapping[str, tuple[Table, ReplayPath]], epsilon: float, title: str) -> "Figure":
    """Expert calls, actual loss and threshold over time, one line for each policy.

    Parameters
    ----------
    paths: for each policy, the table in the order of decisions and the path with its decisions.
    epsilon: promised bound on the loss.
    title: title of the figure.
    """
    figure = new_figure(11.0, 3.6)
    calls, risk, threshold = figure.subplots(1, 3)
    for name, (table, path) in paths.items():
        steps = np.arange(1, len(table) + 1)
        look = {"color": COLOURS.get(name), "linestyle": STYLES.get(name, "-"), "label": name, "linewidth": 1.6}
        calls.plot(steps, 100.0 * np.cumsum(path.call_expert) / steps, **look)
        risk.plot(steps, 100.0 * np.cumsum(table.loss * path.serve_draft) / steps, **look)
        threshold.plot(steps, [decision.threshold for decision in path.decisions], **look)
    risk.axhline(100.0 * epsilon, color=COLOURS["limit"], linewidth=1.0)
    at_limit = (0.98, 98.0 * epsilon)
    risk.annotate(f"limit ε = {epsilon:g}", at_limit, xycoords=("axes fraction", "data"), ha="right", va="top")
    format_panel(calls, "Expert calls so far (%)", 0.0, 100.0)
    format_panel(risk, "Actual loss so far (%)", 0.0, 120.0 * epsilon)
    format_panel(threshold, "Threshold", 0.0, 1.0)
    calls.legend(frameon=False)
    figure.suptitle(title)
    return figure


def draw_paths(experiment: Experiment, results: Sequence[ReplayResult]) -> "Figure":
    """ER, ECP and TP over time, as mean and standard deviation over the runs, one line for each method."""
    figure = new_figure(11.0, 3.4)
    panels = figure.subplots(1, 3)
    titles = ("Actual loss (ER, %)", "Expert calls (ECP, %)", "Tokens (TP, %)")
    for panel, metric, title in zip(panels, range(3), titles, strict=True):
        for number, result in enumerate(results):
            mean, std = (100.0 * f(result.paths[:, metric], axis=0) for f in (np.mean, np.std))
            colour, style = line_style(result.method.label, number)
            panel.plot(result.steps, mean, color=colour, linestyle=style, label=result.method.label)
            panel.fill_between(result.steps, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0.0)
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("Step")
        panel.set_ylim(0.0, None)
        panel.spines[["top", "right"]].set_visible(False)
    epsilon = results[0].method.epsilon
    panels[0].axhline(100.0 * epsilon, color=COLOURS["limit"], linewidth=1.0, label=f"limit ε = {epsilon:g}")
    # Averages over the first few answers vary too much to be shown; the limit must be visible.
    settled = [result.paths[:, 0, len(result.steps) // 20 :] for result in results]
    highest = max(float((risk.mean(axis=0) + risk.std(axis=0)).max()) for risk in settled)
    panels[0].set_ylim(0.0, 100.0 * max(1.3 * epsilon, 1.05 * highest))
    # The token ratio of the first few answers can be very large.
    highest_ratio = np.nanmax([140.0, *(130.0 * result.paths[:, 2, -1].mean() for result in results)])
    panels[2].set_ylim(0.0, float(highest_ratio))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(experiment.title, fontsize=11)
    return figure


def draw_thresholds(experiment: Experiment, results: Sequence[ReplayResult]) -> "Figure":
    """The threshold over time, as mean and standard deviation over the runs, one line for each method."""
    figure = new_figure(7.0, 3.6)
    axes = figure.subplots()
    for number, result in enumerate(results):
        thresholds = result.paths[:, METRICS.index("threshold")]
        mean, std = thresholds.mean(axis=0), thresholds.std(axis=0)
        colour, style = line_style(result.method.label, number)
        axes.plot(result.steps, mean, color=colour, linestyle=style, label=result.method.label)
        axes.fill_between(result.steps, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0.0)
    format_panel(axes, "Threshold (mean ± standard deviation)", 0.0, 1.0)
    axes.legend(frameon=False, loc="lower right")
    figure.suptitle(experiment.title, fontsize=11)
    return figure
