"""What every study has: a name, tasks to run, and a section of the report made from their results."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bpac.betting.bounds.fixed_sample import clopper_pearson_upper
from bpac.output_files import whole_file
from bpac.replay.figures import Panel, as_figure, panel_svg, save
from bpac.replay.parallel import Arrays, Task
from bpac.replay.studies.reporting.report import ReportSection

# Figures are written in each of these formats.
FORMATS = ("svg", "pdf", "png")


@dataclass(frozen=True, slots=True)
class ResultsFolder:
    """Writes the files of studies into one folder.

    Parameters
    ----------
    path: the folder.
    written: the files that were written, in order.
    """

    path: Path
    written: list[Path] = field(default_factory=list)

    def write_csv(self, name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Write ``NAME.csv``."""
        path = self.path / f"{name}.csv"
        with whole_file(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)
        self.written.append(path)

    def write_figure(self, name: str, panels: Sequence[Panel], columns: int) -> list[tuple[str, str]]:
        """Write ``NAME.svg``, ``.pdf`` and ``.png`` with all panels; return each panel as title and SVG element."""
        figure = as_figure(panels, columns)
        for extension in FORMATS:
            path = self.path / f"{name}.{extension}"
            save(figure, path)
            self.written.append(path)
        # On a page the panels are laid out one by one: a phone shows them one below the other.
        return [(panel.title, panel_svg(panel, f"{name}-{k}")) for k, panel in enumerate(panels, start=1)]


class Study(Protocol):
    """A result that can be reproduced by name."""

    @property
    def name(self) -> str:
        """Its name on the command line and of its files."""

    def tasks(self) -> Sequence[Task]:
        """The tasks whose results it needs."""

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """Write numbers and figures, and return the section of the report.

        Parameters
        ----------
        results: the results of the tasks, in their order.
        folder: where files are written.
        """


def percent(value: float) -> str:
    """A fraction as a percentage."""
    return f"{100.0 * value:.1f} %"


def share_with_bound(count: int, runs: int) -> str:
    """A share of runs, with its exact upper 95 % confidence bound."""
    return f"{percent(count / runs)} (at most {percent(clopper_pearson_upper(count, runs, 0.05))})"
