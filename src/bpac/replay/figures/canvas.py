"""Paper and pens: what all pictures share. The only module that imports matplotlib (extra ``figures``)."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpac.errors import InputError, MissingExtra
from bpac.output_files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart without colour vision, and on paper.
COLOURS = {"portfolio": "#0072b2", "paper": "#d55e00", "oracle": "#555555", "limit": "#cc3311"}
STYLES: dict[str, Any] = {"portfolio": "-", "paper": "--", "oracle": ":"}


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of that size, in inches."""
    try:
        import matplotlib as mpl  # noqa: PLC0415  # an extra
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("matplotlib", "figures") from error
    mpl.rcParams["svg.hashsalt"] = "bpac"
    mpl.rcParams["svg.fonttype"] = "none"  # text stays text: smaller, and a screen reader can read it
    # The class, not pyplot: no global state, no window.
    return Figure(figsize=(width, height), layout="constrained")


def check_installed() -> None:
    """Raise ``MissingExtra`` unless figures can be drawn; to be called before long work whose results are drawn."""
    new_figure(1.0, 1.0)


def look_of(label: str, number: int) -> tuple[str, Any]:
    """The colour and dashes of a method: its own if it has some, else the next that are free."""
    free = (
        ("#009e73", "-."),
        ("#cc79a7", (0, (5, 1))),
        ("#e69f00", (0, (3, 1, 1, 1))),
        ("#56b4e9", ":"),
        ("#000000", (0, (1, 1))),
        ("#8c6bb1", (0, (7, 2))),
    )
    colour, style = free[number % len(free)]
    return COLOURS.get(label, colour), STYLES.get(label, style)


def label(axes: "Axes", title: str, low: float, high: float) -> None:
    """Title, axis and range of a panel over time."""
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("Step")
    axes.set_ylim(low, high)
    axes.spines[["top", "right"]].set_visible(False)


def as_svg(figure: "Figure") -> str:
    """The figure as an SVG element, to be put into a page."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def check_ending(path: Path) -> None:
    """Raise ``InputError`` unless the file's name asks for a format that figures can be written in."""
    # What matplotlib can write, which is more than we promise.
    if path.suffix.lower().removeprefix(".") not in new_figure(1.0, 1.0).canvas.get_supported_filetypes():
        raise InputError(f"{path}: a figure ends in .png or .svg")


def save(figure: "Figure", path: Path) -> None:
    """Write a figure as PNG or SVG, by the ending of the file's name; the file appears whole or not at all."""
    check_ending(path)
    with whole_file(path) as unfinished:
        # Without a date and with fixed ids, the same numbers give the same file.
        figure.savefig(unfinished, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
