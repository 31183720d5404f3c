"""Pictures that set methods side by side at the end of a stream."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpac.replay.experiments import Experiment
from bpac.replay.figures.canvas import COLOURS, look_of, new_figure
from bpac.replay.outcomes import Outcome
from bpac.replay.studies.stall_rows import StallRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_stall(rows: list[StallRow], epsilon: float) -> "Figure":
    """Log-growth per round against the risk of a threshold: the paper's bet and the best one."""
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    risks = np.array([row.risk for row in rows])
    paper = np.array([row.paper_growth for row in rows])
    best = np.array([row.best_growth for row in rows])
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.plot(risks, 1000.0 * best, color=COLOURS["portfolio"], label="best bet")
    axes.plot(risks, 1000.0 * paper, color=COLOURS["paper"], linestyle="--", label="the paper's bet")
    stalled = paper < 0.0
    axes.fill_between(risks, 1000.0 * paper, 0.0, where=stalled, color=COLOURS["paper"], alpha=0.25)
    if stalled.any():
        low, high = risks[stalled][0], risks[stalled][-1]
        note = f"safe, but loses money for ever:\nrisk {low:.3f} to {high:.3f}"
        axes.annotate(note, ((low + high) / 2, 1000.0 * paper.min()), ha="center", va="top", xytext=(0, -6),
                      textcoords="offset points")  # fmt: skip
    axes.axvline(epsilon, color=COLOURS["limit"], linewidth=1.0)
    axes.annotate(f"ε = {epsilon:g} ", (epsilon, 0.97), xycoords=("data", "axes fraction"), ha="right", va="top")
    axes.set_ylim(1000.0 * paper.min() * 1.9 - 0.1, None)
    axes.set_xlabel("Risk of the threshold")
    axes.set_ylabel("Log-growth of wealth per round (× 1000)")
    axes.legend(frameon=False, loc="upper center")
    axes.set_title("Where the paper's bet stalls")
    return figure


def draw_sweep(experiment: Experiment, outcomes: Sequence[Outcome]) -> "Figure":
    """Final ER and ECP against what was varied, mean and standard deviation over the runs."""
    figure = new_figure(8.5, 3.4)
    panels = figure.subplots(1, 2)
    series = list(dict.fromkeys(outcome.method.label for outcome in outcomes))
    titles = ("Loss served (ER, %)", "Expert calls (ECP, %)")
    for panel, metric, title in zip(panels, ("empirical_risk", "expert_call_rate"), titles, strict=True):
        for number, label in enumerate(series):
            points = [outcome for outcome in outcomes if outcome.method.label == label]
            at = [outcome.method.at for outcome in points]
            mean, std = (100.0 * np.array([outcome.final(metric)[k] for outcome in points]) for k in (0, 1))
            colour, style = look_of(label, number)
            panel.errorbar(
                at, mean, std, color=colour, linestyle=style, marker="o", markersize=4, capsize=3, label=label
            )
        panel.set_title(title, fontsize=10)
        panel.set_xlabel(experiment.varied)
        panel.spines[["top", "right"]].set_visible(False)
    limits = {outcome.method.at: 100.0 * outcome.method.epsilon for outcome in outcomes}
    panels[0].plot(list(limits), list(limits.values()), color=COLOURS["limit"], linewidth=1.0, label="limit ε")
    panels[0].set_ylim(0.0, None)
    panels[1].set_ylim(0.0, 105.0)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(experiment.title, fontsize=11)
    return figure


def draw_summary(calls: Mapping[str, tuple[float, float, float]], epsilon: float) -> "Figure":
    """Expert call rates of the paper's policy, the portfolio and the oracle, stream by stream."""
    figure = new_figure(9.0, 1.2 + 0.7 * len(calls))
    axes = figure.subplots()
    at = np.arange(len(calls))
    for number, name in enumerate(("paper", "portfolio", "oracle")):
        lengths = [100.0 * rates[number] for rates in calls.values()]
        bars = axes.barh(at + 0.27 * (number - 1), lengths, 0.25, color=COLOURS[name], label=name)
        axes.bar_label(bars, fmt="%.0f", fontsize=9, padding=2)
    # Names of files are long: they stand beside the bars, in the order of the table.
    axes.set_yticks(at, [textwrap.fill(name, 32, break_on_hyphens=False) for name in calls])
    axes.invert_yaxis()
    axes.set_title(f"Expert calls (ECP, %) at ε = {epsilon:g}", fontsize=10)
    axes.set_xlim(0.0, 100.0)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure
