"""Figures of drift, certificates and hostile streams."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpac.replay.figures.canvas import COLOURS, format_panel, line_style, new_figure
from bpac.replay.parallel import Arrays

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_drift(results: Mapping[str, Arrays], epsilon: float, turns: tuple[int, int]) -> "Figure":
    """The true risk of the threshold in force, as mean over the runs, one line for each method."""
    figure = new_figure(9.0, 3.8)
    axes = figure.subplots()
    highest = epsilon
    for number, (name, arrays) in enumerate(results.items()):
        colour, style = line_style(name, number)
        risk = 100.0 * arrays["risk"].mean(axis=0)
        highest = max(highest, float(risk.max()) / 100.0)
        axes.plot(arrays["steps"][0], risk, color=colour, linestyle=style, label=name)
    axes.axhline(100.0 * epsilon, color=COLOURS["limit"], linewidth=1.0, label=f"limit ε = {epsilon:g}")
    for turn, text in zip(turns, ("hard questions", "easy questions"), strict=True):
        axes.axvline(turn, color="#888888", linewidth=0.8)
        axes.annotate(f" {text}", (turn, 0.98), xycoords=("data", "axes fraction"), va="top")
    format_panel(axes, "True risk of the threshold in force (%, mean)", 0.0, 115.0 * highest)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return figure


def draw_certificates(results: Mapping[str, Arrays], epsilon: float) -> "Figure":
    """The actual loss and the bounds that were known at the time, for each stream."""
    figure = new_figure(10.0, 3.6)
    panels = np.atleast_1d(figure.subplots(1, len(results), sharey=True))
    for panel, (stream, arrays) in zip(panels, results.items(), strict=True):
        steps = arrays["steps"][0]
        lower, served, upper = 100.0 * arrays["bounds"].mean(axis=0)
        panel.fill_between(
            steps, lower, upper, color=COLOURS["portfolio"], alpha=0.2, label="bounds of the certificate (mean)"
        )
        panel.plot(steps, upper, color=COLOURS["portfolio"], linewidth=1.2)
        panel.plot(steps, served, color="black", linestyle="--", label="actual loss (mean)")
        panel.axhline(100.0 * epsilon, color=COLOURS["limit"], linewidth=1.0, label=f"ε = {epsilon:g}")
        format_panel(panel, f"{stream}: loss per round (%)", 0.0, 250.0 * epsilon)
    panels[0].legend(frameon=False)
    return figure


def draw_attacks(results: Mapping[str, Mapping[str, Arrays]], epsilon: float) -> "Figure":
    """The average loss of the served answers in the worst run of each method, one panel for each attack."""
    figure = new_figure(11.0, 3.4)
    panels = np.atleast_1d(figure.subplots(1, len(results), sharey=True))
    for panel, (attack, methods) in zip(panels, results.items(), strict=True):
        for number, (name, arrays) in enumerate(methods.items()):
            colour, style = line_style(name, number)
            worst: NDArray[np.float64] = arrays["served"][np.argmax(arrays["served"].max(axis=1))]
            panel.plot(arrays["steps"][0], 100.0 * worst, color=colour, linestyle=style, label=name)
        panel.axhline(100.0 * epsilon, color=COLOURS["limit"], linewidth=1.0, label=f"limit ε = {epsilon:g}")
        format_panel(panel, attack, 0.0, 500.0 * epsilon)
    panels[0].set_ylabel("Actual loss, worst run (%)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure
