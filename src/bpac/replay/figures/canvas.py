"""What all figures share: panels, colours, labels, files. Only this module imports matplotlib (extra ``figures``)."""

import io
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bpac.errors import InputError, MissingExtra
from bpac.output_files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# These colours and dashes can be distinguished without colour vision and in black and white.
COLOURS = {"portfolio": "#0072b2", "B-PAC": "#d55e00", "oracle": "#555555", "limit": "#cc3311"}
STYLES: dict[str, Any] = {"portfolio": "-", "B-PAC": "--", "oracle": ":"}
FREE: tuple[tuple[str, Any], ...] = (
    ("#009e73", "-."),
    ("#aa4499", (0, (5, 1))),
    ("#b8860b", (0, (3, 1, 1, 1))),
    ("#4477aa", ":"),
    ("#000000", (0, (1, 1))),
    ("#8c6bb1", (0, (7, 2))),
)
# Size of one panel in inches. Text of 9 points can be read both in print and on a phone.
WIDTH, HEIGHT = 3.9, 2.9
# The number of characters in a line of a title, which may begin with the name of a file.
TITLE_WIDTH = 48
# The smallest distance between two labels, as a share of the height of a panel.
LABEL_GAP = 0.075


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of a figure.

    Parameters
    ----------
    title: what it shows, with the unit.
    draw: draws it.
    width: its width relative to that of a usual panel (default: 1).
    height: its height relative to that of a usual panel (default: 1).
    """

    title: str
    draw: "Callable[[Axes], None]"
    width: float = 1.0
    height: float = 1.0

    def draw_on(self, axes: "Axes") -> None:
        """Draw the panel with its title."""
        axes.set_title(textwrap.fill(self.title, TITLE_WIDTH), fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
        self.draw(axes)


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of that size, in inches."""
    try:
        import matplotlib as mpl  # noqa: PLC0415  # an extra
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("matplotlib", "figures") from error
    mpl.rcParams["svg.hashsalt"] = "bpac"
    mpl.rcParams["svg.fonttype"] = "none"  # text stays text: the file is smaller and screen readers can read it
    mpl.rcParams["pdf.fonttype"] = 42  # fonts are embedded, as journals ask for
    # Not pyplot, which has global state and may open windows.
    return Figure(figsize=(width, height), layout="constrained")


def check_installed() -> None:
    """Raise ``MissingExtra`` if figures cannot be drawn; call it before long work whose results are drawn."""
    new_figure(1.0, 1.0)


def as_figure(panels: Sequence[Panel], columns: int, title: str = "") -> "Figure":
    """All panels in one figure, row by row."""
    rows = -(-len(panels) // columns)
    width, height = max(panel.width for panel in panels), max(panel.height for panel in panels)
    figure = new_figure(WIDTH * columns * width, HEIGHT * rows * height + (0.35 if title else 0.0))
    places = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for axes, panel in zip(places, panels, strict=False):
        panel.draw_on(axes)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def panel_svg(panel: Panel, name: str) -> str:
    """A panel alone, as an SVG element for a page; ``name`` makes its identifiers unique on the page."""
    text = as_svg(as_figure([panel], 1))
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="', f'id="{name}-', text)
    return re.sub(r'(url\(#|xlink:href="#)', rf"\g<1>{name}-", text)


def line_style(label: str, number: int) -> tuple[str, Any]:
    """Colour and dashes of a method: fixed ones for the main policies, else those of that number."""
    colour, style = FREE[number % len(FREE)]
    return COLOURS.get(label, colour), STYLES.get(label, style)


def shades(count: int) -> list[str]:
    """Colours from light to dark, for lines whose labels are numbers in increasing order."""
    light, dark = np.array([0.85, 0.45, 0.05]), np.array([0.20, 0.05, 0.30])
    return [
        "#" + "".join(f"{round(255 * part):02x}" for part in light + (dark - light) * k / max(count - 1, 1))
        for k in range(count)
    ]


def label_lines(axes: "Axes", lines: Sequence[tuple[str, float, str]]) -> None:
    """Write the label of each line at its right end; labels that would overlap are moved apart.

    Call it last: the places depend on the range of the axis.

    Parameters
    ----------
    lines: for each line its label, its last value and its colour.
    """
    low, high = axes.get_ylim()
    ordered = sorted(lines, key=lambda line: line[1])
    ends = [min(max((value - low) / (high - low), 0.0), 1.0) for _, value, _ in ordered]
    for (label, _, colour), place in zip(ordered, spread(ends, LABEL_GAP), strict=True):
        axes.annotate(label, (1.02, place), xycoords="axes fraction", color=colour, fontsize=9, va="center")


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Increasing places moved apart to at least the gap, as little as possible in total squares.

    Places that are too close form a group around their mean (pool adjacent violators).

    >>> spread([0.5, 0.5, 0.9], 0.1)
    [0.45, 0.55, 0.9]
    """
    groups: list[tuple[float, int]] = []  # mean of the places, each less the gaps before it, and their number
    for number, place in enumerate(places):
        mean, count = place - gap * number, 1
        while groups and groups[-1][0] > mean:
            before, size = groups.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        groups.append((mean, count))
    means = [mean for mean, count in groups for _ in range(count)]
    return [round(mean + gap * number, 9) for number, mean in enumerate(means)]


def limit_line(axes: "Axes", value: float, label: str) -> None:
    """A horizontal line at a limit, with its label above its left end."""
    axes.axhline(value, color=COLOURS["limit"], linewidth=1.0)
    axes.annotate(label, (0.02, value), xycoords=("axes fraction", "data"), xytext=(0, 2), textcoords="offset points",
                  color=COLOURS["limit"], fontsize=9, va="bottom")  # fmt: skip


def format_panel(axes: "Axes", title: str, low: float, high: float) -> None:
    """Set title, axis labels and range of a panel that shows something over the steps."""
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("Step")
    axes.set_ylim(low, high)
    axes.spines[["top", "right"]].set_visible(False)


def as_svg(figure: "Figure") -> str:
    """The figure as the text of an SVG file."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def check_figure_format(path: Path) -> None:
    """Raise ``InputError`` unless the extension of the file name is a format that figures can be written in."""
    # Whatever matplotlib can write is accepted; only PNG and SVG are documented.
    if path.suffix.lower().removeprefix(".") not in new_figure(1.0, 1.0).canvas.get_supported_filetypes():
        raise InputError(f"{path}: the name of a figure file ends in .png or .svg")


def save(figure: "Figure", path: Path) -> None:
    """Write a figure in the format of the file name's extension. The file is written completely or not at all."""
    check_figure_format(path)
    # Without a date, the same numbers give the same file.
    date = {".svg": "Date", ".pdf": "CreationDate"}.get(path.suffix.lower())
    with whole_file(path) as unfinished:
        figure.savefig(unfinished, dpi=150, metadata={date: None} if date else None)
