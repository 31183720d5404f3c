"""The report of a demo, as text and as JSON."""

import shlex
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bpac.demo.dial import DialReport
from bpac.demo.directory import DemoDirectory
from bpac.demo.ground_truth import GroundTruth
from bpac.demo.status_lines import status_table, table_row
from bpac.gateway.games.shown.status import GameStatus


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The results of a demo.

    Parameters
    ----------
    pair: ``local`` or ``scripted``.
    instead_because: why the scripted pair was used although the local one was wanted; None otherwise.
    questions: number of questions that were answered.
    wanted: number of questions that were to be answered.
    seconds: time that they took.
    game: status of the gateway's game at the end.
    truth: actual losses and savings; None if the demo was stopped before they were known.
    dashboard: address of the dashboard.
    directory: the files.
    dial: the results of the effort dial; None if the models have none.
    """

    pair: str
    instead_because: str | None
    questions: int
    wanted: int
    seconds: float
    game: GameStatus
    truth: GroundTruth | None
    dashboard: str
    directory: DemoDirectory
    dial: DialReport | None = None

    @property
    def complete(self) -> bool:
        """Whether all questions were answered and the actual loss is known."""
        complete = self.questions >= self.wanted and self.truth is not None
        return complete and (self.dial is None or self.dial.complete)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        directory, truth = self.directory, None
        if self.truth is not None:
            truth = asdict(self.truth)
            del truth["losses"]
        return {
            "pair": self.pair,
            "instead_because": self.instead_because,
            "questions": self.questions,
            "complete": self.complete,
            "seconds": round(self.seconds, 3),
            "dashboard": self.dashboard,
            "game": {"route": self.game.route, **self.game.to_json()},
            "truth": truth,
            "dial": self.dial and self.dial.to_json(),
            "config": str(directory.config),
            "store": str(directory.store),
            "log": str(directory.log),
            "picture": str(directory.figure),
        }

    def __str__(self) -> str:
        game, directory = self.game, self.directory
        journal = _quoted(directory.path / "journal.jsonl")
        lines = [
            f"The {self.pair} pair behind the gateway: {self.questions:,} questions in {self.seconds:.0f} s, "
            f"ε = {game.summary.epsilon:g}, α = {game.summary.alpha:g}",
            *status_table(game),
            *self._actual(),
            *(self.dial.lines() if self.dial is not None else ()),
            "Next steps:",
            f"  {program()} status {_quoted(directory.config)}",
            f"  {program()} export {_quoted(directory.config)} --route {game.route} --out {journal}",
            f"  {program()} audit {journal}",
            f"  figure: {directory.figure}",
        ]
        return "\n".join(lines)

    def _actual(self) -> list[str]:
        truth = self.truth
        if truth is None:
            return [
                "The actual loss is not known: the demo was stopped before both models had answered every question."
            ]
        first = f"the first {truth.questions:,} questions" if truth.questions < self.questions else "every question"
        return [
            f"Actual results, which a gateway cannot know, from answers of both models to {first}:",
            table_row("actual loss", f"{truth.served_loss:.2%}", f"limit: {self.game.summary.epsilon:.2%}; "
                      f"always serving the draft: {truth.draft_loss:.2%}"),
            table_row("tokens saved", f"{truth.tokens_saved:,}",
                      f"of {truth.expert_tokens:,} for always calling the expert"),
            table_row("correct", f"{truth.served_right:.1%}", f"always serving the expert: {truth.expert_right:.1%}; "
                      f"the draft: {truth.draft_right:.1%}"),
        ]  # fmt: skip


def program() -> str:
    """The command that runs this program again."""
    called = Path(sys.argv[0])
    if called.name != "bpac" or shutil.which("bpac") == str(called):
        return "bpac"
    return shlex.quote(str(called))


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
