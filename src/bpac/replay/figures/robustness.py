"""Figures of drift, certificates and hostile streams."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpac.replay.figures.canvas import COLOURS, Panel, label_lines, limit_line, line_style
from bpac.replay.parallel import Arrays

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Vector = NDArray[np.float64]


def drift_panel(results: Mapping[str, Arrays], epsilon: float, turns: Sequence[tuple[int, str]]) -> Panel:
    """The true risk of the threshold in force, as mean over the runs, one line for each method."""
    lines = {name: 100.0 * arrays["risk"].mean(axis=0) for name, arrays in results.items()}
    steps = next(iter(results.values()))["steps"][0]
    draw = partial(_draw_lines, lines, steps, epsilon, turns)
    return Panel("True risk of the threshold in force, %, mean", draw, 1.8, 1.2)


def _draw_lines(
    lines: Mapping[str, Vector], steps: Vector, epsilon: float, turns: Sequence[tuple[int, str]], axes: "Axes"
) -> None:
    labels = []
    for number, (name, values) in enumerate(lines.items()):
        colour, style = line_style(name, number)
        axes.plot(steps, values, color=colour, linestyle=style, linewidth=1.6)
        labels.append((name, float(values[-1]), colour))
    axes.set_ylim(0.0, 1.15 * max(100.0 * epsilon, *(float(np.nanmax(values)) for values in lines.values())))
    axes.set_xlabel("Step t", fontsize=9)
    limit_line(axes, 100.0 * epsilon, f"ε = {epsilon:g}")
    for step, text in turns:
        axes.axvline(step, color="#777777", linewidth=0.8, linestyle=":")
        axes.annotate(f" {text}", (step, 0.98), xycoords=("data", "axes fraction"), va="top", fontsize=9)
    label_lines(axes, labels)


def certificate_panels(results: Mapping[str, Arrays], epsilon: float) -> list[Panel]:
    """The actual loss and the bounds that were known at the time, for each stream."""
    return [
        Panel(f"{stream}: loss per round, %", partial(_draw_bounds, arrays, epsilon))
        for stream, arrays in results.items()
    ]


def _draw_bounds(arrays: Arrays, epsilon: float, axes: "Axes") -> None:
    steps = arrays["steps"][0]
    lower, served, upper = 100.0 * arrays["bounds"].mean(axis=0)
    blue = COLOURS["portfolio"]
    axes.fill_between(steps, lower, upper, color=blue, alpha=0.15, linewidth=0.0)
    for values in (lower, upper):
        axes.plot(steps, values, color=blue, linewidth=1.0)
    axes.plot(steps, served, color="black", linestyle="--", linewidth=1.6)
    best = 100.0 * arrays["others"].mean(axis=0)[1]
    axes.plot(steps, best, color=COLOURS["oracle"], linestyle=":", linewidth=1.2)
    axes.set_ylim(0.0, 250.0 * epsilon)
    axes.set_xlabel("Step t", fontsize=9)
    limit_line(axes, 100.0 * epsilon, f"ε = {epsilon:g}")
    labels = [
        ("upper bound", upper, blue),
        ("best at one look", best, COLOURS["oracle"]),
        ("actual loss", served, "black"),
        ("lower bound", lower, blue),
    ]
    label_lines(axes, [(name, float(values[-1]), colour) for name, values, colour in labels])


def attack_panels(results: Mapping[str, Mapping[str, Arrays]], epsilon: float) -> list[Panel]:
    """The average loss of the served answers in the worst run of each method, one panel for each attack."""
    panels = []
    for attack, methods in results.items():
        worst = {name: 100.0 * _worst(arrays["served"]) for name, arrays in methods.items()}
        steps = next(iter(methods.values()))["steps"][0]
        panels.append(Panel(f"{attack}: loss in the worst run, %", partial(_draw_lines, worst, steps, epsilon, ())))
    return panels


def _worst(served: Vector) -> Vector:
    # Averages over the first few answers are not compared: one loss among them would decide.
    late = served[:, served.shape[1] // 10 :]
    worst: Vector = late[np.argmax(late.max(axis=1))]
    return np.concatenate([np.full(served.shape[1] - late.shape[1], np.nan), worst])
