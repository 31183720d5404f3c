"""Pictures of replays and of the stall. The only module that imports matplotlib (extra ``figures``)."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bpac.errors import MissingExtra
from bpac.replay.campaign import Outcome
from bpac.replay.experiments import Experiment
from bpac.replay.records import Table
from bpac.replay.replay import Path
from bpac.replay.stall import StallRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Vector = NDArray[np.float64]
# Told apart without colour vision, and on paper.
COLOURS = {"portfolio": "#0072b2", "paper": "#d55e00", "oracle": "#555555", "limit": "#cc3311"}
STYLES: dict[str, Any] = {"portfolio": "-", "paper": "--", "oracle": ":"}


def draw_replays(paths: Mapping[str, tuple[Table, Path]], epsilon: float, title: str) -> "Figure":
    """Expert calls, risk and threshold over time, one line for each policy.

    Parameters
    ----------
    paths: for each policy, the table in its order and the traced path through it.
    epsilon: the promised bound.
    title: what was replayed.
    """
    figure = _figure(11.0, 3.6)
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
    _label(calls, "Expert calls so far (%)", 0.0, 100.0)
    _label(risk, "Loss served so far (%)", 0.0, 120.0 * epsilon)
    _label(threshold, "Threshold", 0.0, 1.0)
    calls.legend(frameon=False)
    figure.suptitle(title)
    return figure


def draw_stall(rows: list[StallRow], epsilon: float) -> "Figure":
    """Log-growth per round against the risk of a threshold: the paper's bet and the best one."""
    figure = _figure(7.0, 4.2)
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


def draw_paths(experiment: Experiment, outcomes: Sequence[Outcome]) -> "Figure":
    """ER, ECP and TP over time, mean and standard deviation over the runs, one line for each method."""
    figure = _figure(11.0, 3.4)
    panels = figure.subplots(1, 3)
    titles = ("Loss served (ER, %)", "Expert calls (ECP, %)", "Tokens (TP, %)")
    for panel, metric, title in zip(panels, range(3), titles, strict=True):
        for number, outcome in enumerate(outcomes):
            mean, std = (100.0 * f(outcome.paths[:, metric], axis=0) for f in (np.mean, np.std))
            colour, style = _look(outcome.method.label, number)
            panel.plot(outcome.steps, mean, color=colour, linestyle=style, label=outcome.method.label)
            panel.fill_between(outcome.steps, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0.0)
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("Step")
        panel.set_ylim(0.0, None)
        panel.spines[["top", "right"]].set_visible(False)
    epsilon = outcomes[0].method.epsilon
    panels[0].axhline(100.0 * epsilon, color=COLOURS["limit"], linewidth=1.0, label=f"limit ε = {epsilon:g}")
    panels[0].set_ylim(0.0, max(130.0 * epsilon, panels[0].get_ylim()[1]))
    panels[2].set_ylim(0.0, 140.0)  # the first few answers can cost any multiple of their experts'
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(experiment.title, fontsize=11)
    return figure


def draw_sweep(experiment: Experiment, outcomes: Sequence[Outcome]) -> "Figure":
    """Final ER and ECP against what was varied, mean and standard deviation over the runs."""
    figure = _figure(8.5, 3.4)
    panels = figure.subplots(1, 2)
    series = list(dict.fromkeys(outcome.method.label for outcome in outcomes))
    titles = ("Loss served (ER, %)", "Expert calls (ECP, %)")
    for panel, metric, title in zip(panels, ("empirical_risk", "expert_call_rate"), titles, strict=True):
        for number, label in enumerate(series):
            points = [outcome for outcome in outcomes if outcome.method.label == label]
            at = [outcome.method.at for outcome in points]
            mean, std = (100.0 * np.array([outcome.final(metric)[k] for outcome in points]) for k in (0, 1))
            colour, style = _look(label, number)
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
    figure = _figure(8.5, 3.4)
    axes = figure.subplots()
    at = np.arange(len(calls))
    for number, name in enumerate(("paper", "portfolio", "oracle")):
        heights = [100.0 * rates[number] for rates in calls.values()]
        bars = axes.bar(at + 0.27 * (number - 1), heights, 0.25, color=COLOURS[name], label=name)
        axes.bar_label(bars, fmt="%.0f", fontsize=9)
    axes.set_xticks(at, list(calls))
    axes.set_title(f"Expert calls (ECP, %) at ε = {epsilon:g}", fontsize=10)
    axes.set_ylim(0.0, 100.0)
    axes.legend(frameon=False, ncols=3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def as_svg(figure: "Figure") -> str:
    """The figure as an SVG element, to be put into a page."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def save(figure: "Figure", path: FilePath) -> None:
    """Write a figure as PNG or SVG, by the ending of the file's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a date and with fixed ids, the same numbers give the same file.
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def _figure(width: float, height: float) -> "Figure":
    try:
        import matplotlib as mpl  # noqa: PLC0415  # an extra
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("matplotlib", "figures") from error
    mpl.rcParams["svg.hashsalt"] = "bpac"
    mpl.rcParams["svg.fonttype"] = "none"  # text stays text: smaller, and a screen reader can read it
    # The class, not pyplot: no global state, no window.
    return Figure(figsize=(width, height), layout="constrained")


def _look(label: str, number: int) -> tuple[str, Any]:
    """The colour and dashes of a method: its own if it has some, else the next that are free."""
    free = (("#009e73", "-."), ("#cc79a7", (0, (5, 1))), ("#e69f00", (0, (3, 1, 1, 1))), ("#56b4e9", ":"))
    colour, style = free[number % len(free)]
    return COLOURS.get(label, colour), STYLES.get(label, style)


def _label(axes: "Axes", title: str, low: float, high: float) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("Step")
    axes.set_ylim(low, high)
    axes.spines[["top", "right"]].set_visible(False)
