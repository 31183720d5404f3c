"""A drawing of what the gateway adds to a request."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.costs import Cost
from bpac.replay.figures.canvas import new_figure, save

COLOURS = ("#9a9a9a", "#c9b458", "#a5822a", "#2a6fb0", "#7db3dc", "#b3402a")
PANELS = (
    ("milliseconds", "milliseconds to the last byte (median)"),
    ("per_second", "requests per second"),
    ("cpu", "microseconds of processor time per request"),
)


def draw(costs: Sequence[Cost], file: Path) -> None:
    """One panel for each figure, one group for each kind of load, one bar for each server."""
    servers = list(dict.fromkeys(cost.server for cost in costs))
    loads = list(dict.fromkeys((cost.stream, cost.at_once) for cost in costs))
    found = {(cost.server, cost.stream, cost.at_once): cost for cost in costs}
    figure = new_figure(9, 9)
    panels = figure.subplots(len(PANELS), 1, sharex=True)
    width = 0.84 / len(servers)
    for axes, (field, title) in zip(panels, PANELS, strict=True):
        for number, (server, colour) in enumerate(zip(servers, COLOURS, strict=False)):
            heights = [getattr(found[server, *load], field) for load in loads]
            places = [place - 0.42 + (number + 0.5) * width for place in range(len(loads))]
            bars = axes.bar(places, heights, width, color=colour, label=server)
            axes.bar_label(bars, [_short(height) for height in heights], fontsize=6, rotation=90, padding=2)
        axes.set_yscale("log")
        axes.margins(y=0.2)
        axes.set_title(title, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    labels = [f"{'streamed' if stream else 'whole'}\n{at_once} at once" for stream, at_once in loads]
    panels[-1].set_xticks(range(len(loads)), labels)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    save(figure, file)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
