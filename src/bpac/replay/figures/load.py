"""Figures of the promise under load and faults."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpac.replay.figures.canvas import COLOURS, line_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = ("Streams with an unsafe threshold (%)", "Expert calls (ECP, %)")


def draw_order(shares: Mapping[str, Sequence[tuple[int, float, float]]], alpha: float) -> "Figure":
    """Unsafe streams and expert calls by the number of drafts in flight.

    Parameters
    ----------
    shares: for each order, ``(drafts in flight, share of unsafe streams, expert call rate)``.
    alpha: the promised bound on the share of unsafe streams.
    """
    figure = new_figure(8.5, 3.4)
    panels = figure.subplots(1, 2)
    for metric, (panel, title) in enumerate(zip(panels, TITLES, strict=True), start=1):
        for number, (name, points) in enumerate(shares.items()):
            colour, style = line_style(name, number)
            at = [str(point[0]) for point in points]
            values = [100.0 * point[metric] for point in points]
            panel.plot(at, values, color=colour, linestyle=style, marker="o", markersize=4, label=name)
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("Drafts in flight")
        panel.set_ylim(0.0, 105.0)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].axhline(100.0 * alpha, color=COLOURS["limit"], linewidth=1.0, label=f"promised: α = {alpha:g}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def draw_cases(cases: Mapping[str, Mapping[str, tuple[float, float]]], alpha: float) -> "Figure":
    """Unsafe streams and expert calls in each case and by each rule, as bars.

    Parameters
    ----------
    cases: for each case and rule, the share of unsafe streams and the expert call rate.
    alpha: the promised bound on the share of unsafe streams.
    """
    figure = new_figure(11.0, 1.4 + 0.5 * len(cases))
    panels = figure.subplots(1, 2, sharey=True)
    at = np.arange(len(cases))
    rules = list(dict.fromkeys(rule for shares in cases.values() for rule in shares))
    for metric, (panel, title) in enumerate(zip(panels, TITLES, strict=True)):
        for number, rule in enumerate(rules):
            lengths = [100.0 * shares[rule][metric] for shares in cases.values()]
            colour = (COLOURS["portfolio"], COLOURS["paper"])[number % 2]
            bars = panel.barh(at + 0.4 * (number - 0.5), lengths, 0.36, color=colour, label=rule)
            panel.bar_label(bars, fmt="%.0f", fontsize=8, padding=2)
        panel.set_title(title, fontsize=10)
        panel.set_xlim(0.0, 108.0)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(at, list(cases))
    panels[0].invert_yaxis()
    panels[0].axvline(100.0 * alpha, color=COLOURS["limit"], linewidth=1.0, label=f"promised: α = {alpha:g}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure
