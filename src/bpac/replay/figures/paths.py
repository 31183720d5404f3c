"""Pictures of replays over time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpac.replay.experiments import Experiment
from bpac.replay.figures.canvas import COLOURS, STYLES, label, look_of, new_figure
from bpac.replay.outcomes import METRICS, Outcome
from bpac.replay.replay import Path
from bpac.replay.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_replays(paths: Mapping[str, tuple[Table, Path]], epsilon: float, title: str) -> "Figure":
    """Expert calls, risk and threshold over time, one line for each policy.

    Parameters
    ----------
    paths: for each policy, the table in its order and the traced path through it.
    epsilon: the promised bound.
    title: what was replayed.
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
    label(calls, "Expert calls so far (%)", 0.0, 100.0)
    label(risk, "Loss served so far (%)", 0.0, 120.0 * epsilon)
    label(threshold, "Threshold", 0.0, 1.0)
    calls.legend(frameon=False)
    figure.suptitle(title)
    return figure


def draw_paths(experiment: Experiment, outcomes: Sequence[Outcome]) -> "Figure":
    """ER, ECP and TP over time, mean and standard deviation over the runs, one line for each method."""
    figure = new_figure(11.0, 3.4)
    panels = figure.subplots(1, 3)
    titles = ("Loss served (ER, %)", "Expert calls (ECP, %)", "Tokens (TP, %)")
    for panel, metric, title in zip(panels, range(3), titles, strict=True):
        for number, outcome in enumerate(outcomes):
            mean, std = (100.0 * f(outcome.paths[:, metric], axis=0) for f in (np.mean, np.std))
            colour, style = look_of(outcome.method.label, number)
            panel.plot(outcome.steps, mean, color=colour, linestyle=style, label=outcome.method.label)
            panel.fill_between(outcome.steps, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0.0)
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("Step")
        panel.set_ylim(0.0, None)
        panel.spines[["top", "right"]].set_visible(False)
    epsilon = outcomes[0].method.epsilon
    panels[0].axhline(100.0 * epsilon, color=COLOURS["limit"], linewidth=1.0, label=f"limit ε = {epsilon:g}")
    # Averages over the first few answers are all over the place; the limit is what people look for.
    settled = [outcome.paths[:, 0, len(outcome.steps) // 20 :] for outcome in outcomes]
    highest = max(float((risk.mean(axis=0) + risk.std(axis=0)).max()) for risk in settled)
    panels[0].set_ylim(0.0, 100.0 * max(1.3 * epsilon, 1.05 * highest))
    # The first few answers can cost any multiple of their experts'.
    dearest = np.nanmax([140.0, *(130.0 * outcome.paths[:, 2, -1].mean() for outcome in outcomes)])
    panels[2].set_ylim(0.0, float(dearest))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(experiment.title, fontsize=11)
    return figure


def draw_thresholds(experiment: Experiment, outcomes: Sequence[Outcome]) -> "Figure":
    """The threshold over time, mean and standard deviation over the runs, one line for each method."""
    figure = new_figure(7.0, 3.6)
    axes = figure.subplots()
    for number, outcome in enumerate(outcomes):
        thresholds = outcome.paths[:, METRICS.index("threshold")]
        mean, std = thresholds.mean(axis=0), thresholds.std(axis=0)
        colour, style = look_of(outcome.method.label, number)
        axes.plot(outcome.steps, mean, color=colour, linestyle=style, label=outcome.method.label)
        axes.fill_between(outcome.steps, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0.0)
    label(axes, "Threshold (mean ± standard deviation)", 0.0, 1.0)
    axes.legend(frameon=False, loc="lower right")
    figure.suptitle(experiment.title, fontsize=11)
    return figure
