"""Figures of results, drawn with matplotlib (extra ``figures``)."""

from bpac.replay.figures.canvas import Panel, as_figure, check_figure_format, check_installed, panel_svg, save
from bpac.replay.figures.comparisons import (
    cost_bars,
    expert_call_bars,
    relative_bars,
    share_panel,
    stacked_panel,
    stall_panel,
)
from bpac.replay.figures.load import case_panels, order_panels
from bpac.replay.figures.over_time import draw_replays, panels_over_time
from bpac.replay.figures.printed import printed_panels
from bpac.replay.figures.robustness import attack_panels, certificate_panels, drift_panel

__all__ = [
    "Panel",
    "as_figure",
    "attack_panels",
    "case_panels",
    "certificate_panels",
    "check_figure_format",
    "check_installed",
    "cost_bars",
    "draw_replays",
    "drift_panel",
    "expert_call_bars",
    "order_panels",
    "panel_svg",
    "panels_over_time",
    "printed_panels",
    "relative_bars",
    "save",
    "share_panel",
    "stacked_panel",
    "stall_panel",
]
