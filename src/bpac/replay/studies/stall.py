"""The stall as a study."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

from bpac.replay.figures import draw_stall
from bpac.replay.parallel import Arrays, Task
from bpac.replay.report import Section
from bpac.replay.studies.stall_rows import StallRow, stall_rows
from bpac.replay.studies.study import Folder

FINE = tuple(0.015 + 0.0005 * i for i in range(131))


@dataclass(frozen=True, slots=True)
class StallStudy:
    """Where the paper's bet loses money for ever."""

    name: str = "stall"

    def tasks(self) -> list[Task]:
        """Nothing is random here."""
        return []

    def section(self, results: Sequence[Arrays], folder: Folder) -> Section:
        """Log-growth per round of both bets."""
        header = [field.name for field in fields(StallRow)]
        rows = [astuple(row) for row in stall_rows()]
        folder.csv(self.name, header, rows)
        picture = folder.picture(self.name, draw_stall(stall_rows(FINE), epsilon=0.08))
        shown = [[f"{value:.5f}" for value in row] for row in rows]
        text = "Log-growth of wealth per round at ε = 0.08 when every draft below the threshold is explored at 0.05."
        return Section(self.name, "Where the paper's bet stalls", text, picture, header, shown)
