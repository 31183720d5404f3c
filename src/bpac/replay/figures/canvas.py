"""What all figures share: colours, panels and files. The only module that imports matplotlib (extra ``figures``)."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpac.errors import InputError, MissingExtra
from bpac.output_files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# These colours and dashes can be distinguished without colour vision and in black and white.
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
    mpl.rcParams["svg.fonttype"] = "none"  # text stays text: the file is smaller and screen readers can read it
    # Not pyplot, which has global state and may open windows.
    return Figure(figsize=(width, height), layout="constrained")


def check_installed() -> None:
    """Raise ``MissingExtra`` if figures cannot be drawn; call it before long work whose results are drawn."""
    new_figure(1.0, 1.0)


def line_style(label: str, number: int) -> tuple[str, Any]:
    """Colour and dashes of a method: fixed ones for the main policies, else those of that number."""
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
    with whole_file(path) as unfinished:
        # Without a date, the same numbers give the same file.
        figure.savefig(unfinished, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
