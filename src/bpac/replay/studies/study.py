"""What every study has: a name, tasks to run, and a section of the report made from their results."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bpac.betting.bounds.fixed_sample import clopper_pearson_upper
from bpac.output_files import whole_file
from bpac.replay.figures import as_svg, save
from bpac.replay.parallel import Arrays, Task
from bpac.replay.report import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Folder:
    """Where results are written, and what was written there."""

    path: Path
    written: list[Path] = field(default_factory=list)

    def csv(self, name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Write numbers."""
        path = self.path / f"{name}.csv"
        with whole_file(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)
        self.written.append(path)

    def picture(self, name: str, figure: "Figure") -> str:
        """Write a picture as PNG and SVG, and return it as an SVG element."""
        for ending in ("png", "svg"):
            path = self.path / f"{name}.{ending}"
            save(figure, path)
            self.written.append(path)
        return as_svg(figure)


class Study(Protocol):
    """A result that can be reproduced by name."""

    @property
    def name(self) -> str:
        """What it is called on the command line."""

    def tasks(self) -> Sequence[Task]:
        """What must be run for it."""

    def section(self, results: Sequence[Arrays], folder: Folder) -> Section:
        """The results of its tasks, in their order, as a section of the report; numbers and pictures are written."""


def percent(value: float) -> str:
    """A fraction as people read it."""
    return f"{100.0 * value:.1f} %"


def interval(count: int, runs: int) -> str:
    """A share of runs, with its exact upper 95 % bound."""
    return f"{percent(count / runs)} (at most {percent(clopper_pearson_upper(count, runs, 0.05))})"
