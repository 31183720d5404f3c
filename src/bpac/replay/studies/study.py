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
from bpac.replay.studies.report import ReportSection

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    def write_figure(self, name: str, figure: "Figure") -> str:
        """Write ``NAME.png`` and ``NAME.svg``, and return the figure as an SVG element."""
        png, svg = (self.path / f"{name}.{extension}" for extension in ("png", "svg"))
        save(figure, png)
        text = as_svg(figure)  # drawing takes long: the file and the report share one
        with whole_file(svg) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
        self.written.extend((png, svg))
        return text[text.index("<svg") :]


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
