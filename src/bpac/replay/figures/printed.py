"""Every number that the paper prints, beside the measured one."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bpac.replay.figures.canvas import COLOURS, Panel
from bpac.replay.studies.reporting.statements import Finding

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def printed_panels(findings: Sequence[tuple[str, Finding]]) -> list[Panel]:
    """A panel for ER and one for ECP and TP: mean and standard deviation in the paper and here, for each number.

    Parameters
    ----------
    findings: the findings that are numbers, each with the number of its figure or table.
    """
    risks = [one for one in findings if one[1].said.endswith("ER")]
    others = [one for one in findings if not one[1].said.endswith("ER")]
    return [
        Panel(title, partial(_draw, shown), 1.6, 0.35 + 0.14 * len(shown))
        for title, shown in (("ER, %: paper and here", risks), ("ECP and TP, %: paper and here", others))
        if shown
    ]


def _draw(findings: Sequence[tuple[str, Finding]], axes: "Axes") -> None:
    for place, (_, finding) in enumerate(findings):
        if finding.printed is None or finding.measured is None:
            continue
        (mean, std), (ours, spread) = finding.printed, finding.measured
        axes.errorbar(
            100 * mean, place - 0.15, xerr=100 * (std or 0.0), fmt="o", mfc="white", color="#555555", capsize=2
        )
        axes.errorbar(100 * ours, place + 0.15, xerr=100 * spread, fmt="s", color=COLOURS["B-PAC"], capsize=2, ms=4)
    axes.set_yticks(range(len(findings)), [f"{number}: {finding.said}" for number, finding in findings], fontsize=8)
    axes.set_ylim(len(findings) - 0.4, -0.9)
    for text, colour, at in (("○ printed in the paper", "#555555", 0.02), ("■ measured here", COLOURS["B-PAC"], 0.55)):
        axes.annotate(text, (at, 1.0), xycoords="axes fraction", color=colour, fontsize=8, va="top")
    axes.grid(axis="y", linewidth=0.3)
