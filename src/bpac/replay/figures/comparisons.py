"""Figures that compare methods or bets by single numbers, such as those at the end of a stream."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpac.replay.figures.canvas import COLOURS, FREE, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Vector = NDArray[np.float64]


def stall_panel(
    risk: Sequence[float], paper_growth: Sequence[float], best_growth: Sequence[float], epsilon: float
) -> Panel:
    """Log-growth per round of B-PAC's bet and of the best bet, by the risk of the threshold."""
    curves = (np.array(risk), np.array(paper_growth), np.array(best_growth))
    return Panel("Log-growth of wealth per round, × 1000", partial(_draw_stall, *curves, epsilon), 1.5, 1.3)


def _draw_stall(risks: Vector, paper: Vector, best: Vector, epsilon: float, axes: "Axes") -> None:
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.plot(risks, 1000.0 * best, color=COLOURS["portfolio"])
    axes.plot(risks, 1000.0 * paper, color=COLOURS["B-PAC"], linestyle="--")
    stalled = paper < 0.0
    axes.fill_between(risks, 1000.0 * paper, 0.0, where=stalled, color=COLOURS["B-PAC"], alpha=0.25)
    if stalled.any():
        low, high = risks[stalled][0], risks[stalled][-1]
        note = f"safe, but wealth shrinks:\nrisk {low:.3f} to {high:.3f}"
        axes.annotate(note, ((low + high) / 2, 1000.0 * paper.min()), ha="center", va="top", xytext=(0, -6),
                      textcoords="offset points", fontsize=9)  # fmt: skip
    axes.axvline(epsilon, color=COLOURS["limit"], linewidth=1.0)
    axes.annotate(f"ε = {epsilon:g} ", (epsilon, 0.97), xycoords=("data", "axes fraction"), ha="right", va="top",
                  color=COLOURS["limit"], fontsize=9)  # fmt: skip
    axes.set_ylim(1000.0 * paper.min() * 1.9 - 0.1, None)
    third = len(risks) // 6
    for text, curve, name, up in (("best bet", best, "portfolio", 6), ("B-PAC's bet", paper, "B-PAC", -12)):
        axes.annotate(text, (risks[third], 1000.0 * curve[third]), xytext=(6, up), textcoords="offset points",
                      color=COLOURS[name], fontsize=9)  # fmt: skip
    axes.set_xlabel("True risk of the threshold", fontsize=9)


def expert_call_bars(calls: Mapping[str, tuple[float, float, float]], epsilon: float) -> Panel:
    """Expert call rates of B-PAC, the portfolio and the oracle as bars, for each stream."""
    return Panel(
        f"Expert calls (ECP), %, at ε = {epsilon:g}", partial(_draw_bars, calls), 1.8, 0.35 + 0.26 * len(calls)
    )


def cost_bars(costs: Mapping[str, tuple[float, float, float]]) -> Panel:
    """Costs of the better pair, the cascade and the oracle as bars, for each stream, relative to the better pair."""
    return Panel("Cost per request, % of the better pair", partial(_draw_costs, costs), 1.8, 0.35 + 0.26 * len(costs))


def _draw_costs(costs: Mapping[str, tuple[float, float, float]], axes: "Axes") -> None:
    at = np.arange(len(costs))
    for number, (name, colour) in enumerate((("better pair", "B-PAC"), ("cascade", "portfolio"), ("oracle", "oracle"))):
        lengths = [100.0 * values[number] / values[0] for values in costs.values()]
        bars = axes.barh(at + 0.27 * (number - 1), lengths, 0.25, color=COLOURS[colour])
        axes.bar_label(bars, [f"{name} {values[number]:.3g}" for values in costs.values()], fontsize=8, padding=2)
    axes.set_yticks(at, [textwrap.fill(name, 24, break_on_hyphens=False) for name in costs])
    axes.invert_yaxis()
    axes.set_xlim(0.0, 150.0)


def _draw_bars(calls: Mapping[str, tuple[float, float, float]], axes: "Axes") -> None:
    at = np.arange(len(calls))
    for number, name in enumerate(("B-PAC", "portfolio", "oracle")):
        lengths = [100.0 * rates[number] for rates in calls.values()]
        bars = axes.barh(at + 0.27 * (number - 1), lengths, 0.25, color=COLOURS[name])
        # Each bar names its method and its value, so that no legend is needed.
        axes.bar_label(bars, [f"{name} {length:.0f}" for length in lengths], fontsize=8, padding=2)
    # Names of files are long, so that the bars are horizontal.
    axes.set_yticks(at, [textwrap.fill(name, 24, break_on_hyphens=False) for name in calls])
    axes.invert_yaxis()
    axes.set_xlim(0.0, 115.0)


def relative_bars(bars: Mapping[str, Mapping[str, float]], title: str) -> Panel:
    """For each stream a bar for each method, in percent of the first method, with its name and value."""
    methods = max(map(len, bars.values()))
    return Panel(title, partial(_draw_relative, bars), 1.8, 0.35 + 0.08 * methods * len(bars))


def _draw_relative(bars: Mapping[str, Mapping[str, float]], axes: "Axes") -> None:
    at = np.arange(len(bars))
    names = list(next(iter(bars.values())))
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        lengths = [100.0 * of_stream[name] for of_stream in bars.values()]
        colour = COLOURS["oracle"] if number == 0 else FREE[number - 1][0]
        drawn = axes.barh(at + width * (number - (len(names) - 1) / 2), lengths, 0.92 * width, color=colour)
        axes.bar_label(drawn, [f"{name} {length:.1f}" for length in lengths], fontsize=8, padding=2)
    axes.set_yticks(at, [bar_label(name) for name in bars])
    axes.invert_yaxis()
    axes.set_xlim(0.0, 155.0)


def share_panel(shares: Mapping[str, float], title: str, axis: str) -> Panel:
    """A share for each name, as horizontal bars with their values in percent."""
    return Panel(title, partial(_draw_shares, shares, axis), 1.4, 0.4 + 0.12 * len(shares))


def _draw_shares(shares: Mapping[str, float], axis: str, axes: "Axes") -> None:
    lengths = [100.0 * share for share in shares.values()]
    bars = axes.barh(np.arange(len(shares)), lengths, 0.7, color=COLOURS["portfolio"])
    axes.bar_label(bars, [f"{length:.0f}" for length in lengths], fontsize=8, padding=2)
    axes.set_yticks(np.arange(len(shares)), [textwrap.fill(name, 30) for name in shares])
    axes.invert_yaxis()
    axes.set_xlim(min(0.0, *lengths), max(100.0, *lengths) * 1.1)
    axes.set_xlabel(axis, fontsize=9)


def bar_label(name: str) -> str:
    """A name in lines of about 34 characters, which also end after underscores, without the endings of file names.

    >>> bar_label("plaut_mmlu_gpt-3p5-turbo__gpt-4-turbo.csv.gz, portfolio").splitlines()
    ['plaut_mmlu_gpt-3p5-turbo__', 'gpt-4-turbo, portfolio']
    """
    shown = re.sub(r"\.(csv|jsonl)(\.gz)?\b", "", name)
    # A space after each group of underscores is a place where a line may end.
    lines = textwrap.wrap(re.sub(r"(_+)", r"\1 ", shown), 36, break_on_hyphens=False)
    return "\n".join(line.replace("_ ", "_") for line in lines)


def stacked_panel(bars: Mapping[str, Sequence[float]], kinds: Sequence[str], title: str) -> Panel:
    """A horizontal bar for each name, made of one part for each kind; parts with room for it show their percent."""
    return Panel(title, partial(_draw_stacked, bars, kinds), 1.8, 0.5 + 0.13 * len(bars))


def _draw_stacked(bars: Mapping[str, Sequence[float]], kinds: Sequence[str], axes: "Axes") -> None:
    at, left = np.arange(len(bars)), np.zeros(len(bars))
    for number, kind in enumerate(kinds):
        lengths = np.array([100.0 * parts[number] for parts in bars.values()])
        colour = COLOURS["oracle"] if number == len(kinds) - 1 else FREE[number][0]
        drawn = axes.barh(at, lengths, 0.7, left=left, color=colour, label=kind)
        shown = [f"{length:.0f}" if length >= 4.0 else "" for length in lengths]
        axes.bar_label(drawn, shown, label_type="center", fontsize=8, color="white")
        left += lengths
    axes.set_yticks(at, [bar_label(name) for name in bars])
    axes.invert_yaxis()
    axes.set_xlim(0.0, 100.0)
    axes.legend(ncols=2, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.08), frameon=False)
