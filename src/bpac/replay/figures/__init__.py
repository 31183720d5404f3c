"""Figures of results, drawn with matplotlib (extra ``figures``)."""

from bpac.replay.figures.canvas import as_svg, check_figure_format, check_installed, save
from bpac.replay.figures.comparisons import draw_expert_calls, draw_stall, draw_sweep
from bpac.replay.figures.load import draw_cases, draw_order
from bpac.replay.figures.paths import draw_paths, draw_replays, draw_thresholds
from bpac.replay.figures.robustness import draw_attacks, draw_certificates, draw_drift

__all__ = [
    "as_svg",
    "check_figure_format",
    "check_installed",
    "draw_attacks",
    "draw_cases",
    "draw_certificates",
    "draw_drift",
    "draw_expert_calls",
    "draw_order",
    "draw_paths",
    "draw_replays",
    "draw_stall",
    "draw_sweep",
    "draw_thresholds",
    "save",
]
