"""Figures that compare methods or bets by single numbers, such as those at the end of a stream."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpac.replay.figures.canvas import COLOURS, line_style, new_figure
from bpac.replay.studies.experiments import Experiment
from bpac.replay.studies.replay_results import ReplayResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_stall(
    risk: Sequence[float], paper_growth: Sequence[float], best_growth: Sequence[float], *, epsilon: float
) -> "Figure":
    """Log-growth per round of the paper's bet and of the best bet, by the risk of the threshold."""
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    risks, paper, best = np.array(risk), np.array(paper_growth), np.array(best_growth)
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.plot(risks, 1000.0 * best, color=COLOURS["portfolio"], label="best bet")
    axes.plot(risks, 1000.0 * paper, color=COLOURS["paper"], linestyle="--", label="the paper's bet")
    stalled = paper < 0.0
    axes.fill_between(risks, 1000.0 * paper, 0.0, where=stalled, color=COLOURS["paper"], alpha=0.25)
    if stalled.any():
        low, high = risks[stalled][0], risks[stalled][-1]
        note = f"safe, but wealth shrinks:\nrisk {low:.3f} to {high:.3f}"
        axes.annotate(note, ((low + high) / 2, 1000.0 * paper.min()), ha="center", va="top", xytext=(0, -6),
                      textcoords="offset points")  # fmt: skip
    axes.axvline(epsilon, color=COLOURS["limit"], linewidth=1.0)
    axes.annotate(f"ε = {epsilon:g} ", (epsilon, 0.97), xycoords=("data", "axes fraction"), ha="right", va="top")
    axes.set_ylim(1000.0 * paper.min() * 1.9 - 0.1, None)
    axes.set_xlabel("True risk of the threshold")
    axes.set_ylabel("Log-growth of wealth per round (× 1000)")
    axes.legend(frameon=False, loc="upper center")
    axes.set_title("Where the paper's bet stalls")
    return figure


def draw_sweep(experiment: Experiment, results: Sequence[ReplayResult]) -> "Figure":
    """ER and ECP at the last step by the varied value, as mean and standard deviation over the runs."""
    figure = new_figure(8.5, 3.4)
    panels = figure.subplots(1, 2)
    labels = list(dict.fromkeys(result.method.label for result in results))
    titles = ("Actual loss (ER, %)", "Expert calls (ECP, %)")
    for panel, metric, title in zip(panels, ("empirical_risk", "expert_call_rate"), titles, strict=True):
        for number, label in enumerate(labels):
            points = [result for result in results if result.method.label == label]
            at = [result.method.at for result in points]
            mean, std = (100.0 * np.array([result.final(metric)[k] for result in points]) for k in (0, 1))
            colour, style = line_style(label, number)
            panel.errorbar(
                at, mean, std, color=colour, linestyle=style, marker="o", markersize=4, capsize=3, label=label
            )
        panel.set_title(title, fontsize=10)
        panel.set_xlabel(experiment.varied)
        panel.spines[["top", "right"]].set_visible(False)
    limits = {result.method.at: 100.0 * result.method.epsilon for result in results}
    panels[0].plot(list(limits), list(limits.values()), color=COLOURS["limit"], linewidth=1.0, label="limit ε")
    panels[0].set_ylim(0.0, None)
    panels[1].set_ylim(0.0, 105.0)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(experiment.title, fontsize=11)
    return figure


def draw_expert_calls(calls: Mapping[str, tuple[float, float, float]], epsilon: float) -> "Figure":
    """Expert call rates of the paper's policy, the portfolio and the oracle as bars, for each table."""
    figure = new_figure(9.0, 1.2 + 0.7 * len(calls))
    axes = figure.subplots()
    at = np.arange(len(calls))
    for number, name in enumerate(("paper", "portfolio", "oracle")):
        lengths = [100.0 * rates[number] for rates in calls.values()]
        bars = axes.barh(at + 0.27 * (number - 1), lengths, 0.25, color=COLOURS[name], label=name)
        axes.bar_label(bars, fmt="%.0f", fontsize=9, padding=2)
    # Names of files are long, so that the bars are horizontal.
    axes.set_yticks(at, [textwrap.fill(name, 32, break_on_hyphens=False) for name in calls])
    axes.invert_yaxis()
    axes.set_title(f"Expert calls (ECP, %) at ε = {epsilon:g}", fontsize=10)
    axes.set_xlim(0.0, 100.0)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure
