"""Figures of the promise under load and faults."""

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bpac.replay.figures.canvas import COLOURS, Panel, label_lines, line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = ("Streams with an unsafe threshold, %", "Expert calls (ECP), %")
Points = Sequence[tuple[int, float, float]]


def order_panels(shares: Mapping[str, Points], alpha: float, axis: str = "Drafts in flight") -> list[Panel]:
    """Unsafe streams and expert calls by the number of drafts in flight, or of something else.

    Parameters
    ----------
    shares: for each order, ``(drafts in flight, share of unsafe streams, expert call rate)``.
    alpha: the promised bound on the share of unsafe streams.
    axis: what the number is.
    """
    return [
        Panel(title, partial(_draw_order, shares, metric, alpha if metric == 1 else None, axis))
        for metric, title in enumerate(TITLES, start=1)
    ]


def _draw_order(shares: Mapping[str, Points], metric: int, alpha: float | None, axis: str, axes: "Axes") -> None:
    labels = []
    for number, (name, points) in enumerate(shares.items()):
        colour, style = line_style(name, number)
        values = [100.0 * point[metric] for point in points]
        # Not clipped: where no stream was unsafe, the line lies on the axis.
        axes.plot(
            [f"{point[0]:,}" for point in points], values, color=colour, linestyle=style, marker="o", markersize=4,
            clip_on=False, zorder=3,
        )  # fmt: skip
        labels.append((name, values[-1], colour))
    axes.set_xlabel(axis, fontsize=9)
    axes.set_ylim(0.0, 105.0)
    if alpha is not None:
        # Its label stands with the others, at the right end: inside, lines would run through it.
        axes.axhline(100.0 * alpha, color=COLOURS["limit"], linewidth=1.0)
        labels.append((f"promised: α = {alpha:g}", 100.0 * alpha, COLOURS["limit"]))
    label_lines(axes, labels)


Cases = Mapping[str, Mapping[str, tuple[float, float]]]


def case_panels(cases: Cases, alpha: float) -> list[Panel]:
    """Unsafe streams and expert calls in each case and by each rule, as bars.

    Parameters
    ----------
    cases: for each case and rule, the share of unsafe streams and the expert call rate.
    alpha: the promised bound on the share of unsafe streams.
    """
    height = 0.3 + 0.19 * len(cases)
    return [
        Panel(title, partial(_draw_cases, cases, metric, alpha if metric == 0 else None), 1.5, height)
        for metric, title in enumerate(TITLES)
    ]


def _draw_cases(cases: Cases, metric: int, alpha: float | None, axes: "Axes") -> None:
    at = np.arange(len(cases))
    rules = list(dict.fromkeys(rule for shares in cases.values() for rule in shares))
    for number, rule in enumerate(rules):
        lengths = [100.0 * shares[rule][metric] for shares in cases.values()]
        colour = (COLOURS["portfolio"], COLOURS["B-PAC"])[number % 2]
        bars = axes.barh(at + 0.4 * (number - 0.5), lengths, 0.36, color=colour)
        axes.bar_label(bars, [f"{rule}: {length:.0f}" for length in lengths], fontsize=8, padding=2)
    axes.set_yticks(at, [textwrap.fill(case, 26) for case in cases], fontsize=8)
    axes.set_ylim(len(cases) - 0.4, -0.9)
    axes.set_xlim(0.0, 185.0)
    axes.set_xticks(range(0, 101, 25))
    if alpha is not None:
        axes.axvline(100.0 * alpha, color=COLOURS["limit"], linewidth=1.0)
        axes.annotate(f" promised: at most α = {alpha:g}", (100.0 * alpha, -0.65), color=COLOURS["limit"], fontsize=8)
