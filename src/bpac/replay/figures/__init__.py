"""Pictures of results, drawn with matplotlib (extra ``figures``)."""

from bpac.replay.figures.canvas import as_svg, check_ending, check_installed, save
from bpac.replay.figures.comparisons import draw_stall, draw_summary, draw_sweep
from bpac.replay.figures.load import draw_cases, draw_order
from bpac.replay.figures.paths import draw_paths, draw_replays, draw_thresholds
from bpac.replay.figures.promises import draw_attacks, draw_certificates, draw_drift

__all__ = [
    "as_svg",
    "check_ending",
    "check_installed",
    "draw_attacks",
    "draw_cases",
    "draw_certificates",
    "draw_drift",
    "draw_order",
    "draw_paths",
    "draw_replays",
    "draw_stall",
    "draw_summary",
    "draw_sweep",
    "draw_thresholds",
    "save",
]
