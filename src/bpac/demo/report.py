"""What came of a demo, for people and for scripts."""

import shlex
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bpac.demo.place import Place
from bpac.demo.truth import Truth
from bpac.demo.words import row, standing
from bpac.gateway.games.status import GameStatus


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a demo.

    Parameters
    ----------
    pair: ``local`` or ``scripted``.
    instead_because: why the scripted pair took the place of the local one, if it did unasked.
    questions: answers that came.
    wanted: how many were to come at the least.
    seconds: how long that took.
    game: where the gateway's game stands at the end.
    truth: what was really lost, where that was found out.
    dashboard: where it was to be seen.
    place: the files.
    """

    pair: str
    instead_because: str | None
    questions: int
    wanted: int
    seconds: float
    game: GameStatus
    truth: Truth | None
    dashboard: str
    place: Place

    @property
    def complete(self) -> bool:
        """Whether all questions were answered and what was really lost is known."""
        return self.questions >= self.wanted and self.truth is not None

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        place, truth = self.place, None
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
            "config": str(place.config),
            "store": str(place.store),
            "log": str(place.log),
            "picture": str(place.picture),
        }

    def __str__(self) -> str:
        game, place = self.game, self.place
        lines = [
            f"The {self.pair} pair behind the gateway: {self.questions:,} questions in {self.seconds:.0f} s, "
            f"ε = {game.summary.epsilon:g}, α = {game.summary.alpha:g}",
            *standing(game),
            *self._truth(),
            "To look closer:",
            f"  {program()} status {_quoted(place.config)}",
            f"  {program()} export {_quoted(place.config)} --out {_quoted(place.directory / 'journal.jsonl')}",
            f"  {program()} audit {_quoted(place.directory / 'journal.jsonl')}",
            f"  picture: {place.picture}",
        ]
        return "\n".join(lines)

    def _truth(self) -> list[str]:
        truth = self.truth
        if truth is None:
            return ["It was stopped before both models could be asked what was really lost."]
        of = f" of the first {truth.questions:,} questions" if truth.questions < self.questions else ""
        alone = f"of the {truth.expert_tokens:,} that the expert alone would have generated"
        return [
            f"What no gateway can see, found by asking both models afterwards{of}:",
            row("loss served", f"{truth.served_loss:.2%}", f"promised: at most {self.game.summary.epsilon:.2%}; "
                f"of every draft: {truth.draft_loss:.2%}"),
            row("tokens saved", f"{truth.tokens_saved:,}", alone),
            row("right answers", f"{truth.served_right:.1%}", f"the expert alone: {truth.expert_right:.1%}; "
                f"the draft alone: {truth.draft_right:.1%}"),
        ]  # fmt: skip


def program() -> str:
    """How this program was called, as far as one can call it so again."""
    called = Path(sys.argv[0])
    if called.name != "bpac" or shutil.which("bpac") == str(called):
        return "bpac"
    return shlex.quote(str(called))


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
