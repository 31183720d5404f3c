"""Recent decisions of a game, found by what an operator asks for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bpac.dashboard.decisions import DecisionView
from bpac.gateway.auth.keys import ANYBODY, Identity
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.http.bad_request import BadRequest
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved
from bpac.stores.store import Game, KeptRound, Store

MOST_SHOWN = 200
# Rounds that one search looks at, and how many of them it reads at a time: other readers wait meanwhile.
MOST_READ, PORTION = 10_000, 500
CHOICES = {
    "answered_by": ("draft", "expert"),
    "state": ("kept", "open", "resolved", "refused", "forfeited"),
    "loss": ("some", "none"),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which decisions are asked for.

    Parameters
    ----------
    answered_by, state, loss: one of the choices; empty for any.
    min_uncertainty, max_uncertainty: both included.
    before: only steps below this; none for all.
    limit: how many at most.
    identity: who asks; others' decisions are shown to operators only.
    """

    answered_by: str = ""
    state: str = ""
    loss: str = ""
    min_uncertainty: float = 0.0
    max_uncertainty: float = 1.0
    before: int | None = None
    limit: int = 50
    identity: Identity = ANYBODY

    @classmethod
    def read(cls, query: Mapping[str, str], identity: Identity = ANYBODY) -> "Wanted":
        """What a query asks for, or ``BadRequest`` with the field that is wrong."""
        for name, choices in CHOICES.items():
            if query.get(name) and query[name] not in choices:
                raise BadRequest(f"{name} must be one of {', '.join(choices)}", 422, name, "invalid_value")
        return cls(
            **{name: query.get(name, "") for name in CHOICES},
            min_uncertainty=_score(query, "min_uncertainty", 0.0),
            max_uncertainty=_score(query, "max_uncertainty", 1.0),
            before=whole_of(query, "before", 1) if query.get("before") else None,
            limit=whole_of(query, "limit", 1, MOST_SHOWN) if query.get("limit") else 50,
            identity=identity,
        )

    def fits(self, told: DecisionView) -> bool:
        """Whether a round is asked for."""
        loss = told.outcome.loss if told.outcome else None
        return (
            self.identity.sees(told.note.get("caller"))
            and self.answered_by in ("", told.answered_by)
            and self.state in ("", told.state)
            and self.min_uncertainty <= told.decision.uncertainty <= self.max_uncertainty
            and (not self.loss or (loss is not None and (loss > 0.0) == (self.loss == "some")))
        )


@dataclass(frozen=True, slots=True)
class Search:
    """A look into a journal, which goes on in another thread while its game goes on in this one.

    Parameters
    ----------
    store, game: where the journal is.
    owed: steps that wait for their outcome, as they were before the store was asked to make everything durable. So a
        round that is not among them, and has no outcome in the store, has none.
    step: the last decision then.
    """

    store: Store
    game: Game
    owed: frozenset[int]
    step: int

    @classmethod
    def begin(cls, keeper: LiveGame) -> "Search":
        """Look at the game; before anything is read, what was appended so far must be durable."""
        owed = frozenset(decision.step for decision in keeper.router.owed)
        return cls(keeper.store, keeper.game, owed, keeper.router.step)

    def find(self, wanted: Wanted) -> tuple[list[DecisionView], int | None]:
        """Rounds that fit, newest first, and the step below which to go on; none if there is nothing more."""
        found: list[DecisionView] = []
        step = 0
        before = min(wanted.before or self.step + 1, self.step + 1)
        for count, told in enumerate(self._open(before) if wanted.state == "open" else self._all(before), start=1):
            step = told.decision.step
            if wanted.fits(told):
                found.append(told)
            if len(found) == wanted.limit or count == MOST_READ:
                return found, step if step > 1 else None
        return found, None

    def one(self, step: int) -> DecisionView | None:
        """The round of that step."""
        told = next(self._rounds(step + 1, 1), None) if 1 <= step <= self.step else None
        return told if told is not None and told.decision.step == step else None

    def _open(self, before: int) -> Iterator[DecisionView]:
        for step in sorted(self.owed, reverse=True):
            if step < before and (told := self.one(step)) is not None:
                yield told

    def _all(self, before: int) -> Iterator[DecisionView]:
        while before > 1:
            last = before
            for told in self._rounds(before, PORTION):
                before = told.decision.step
                yield told
            if before == last:
                return

    def _rounds(self, before: int, limit: int) -> Iterator[DecisionView]:
        for kept in self.store.rounds(self.game, before, limit):
            yield _view(kept, self.owed)


def _view(kept: KeptRound, owed: frozenset[int]) -> DecisionView:
    decision, note = kept.decided
    if not isinstance(decision, Decision):
        raise TypeError(f"the store gave {decision!r} for a decision")
    outcome, outcome_note = kept.outcome or (None, {})
    resolved = outcome if isinstance(outcome, Resolved) else None
    return DecisionView(decision, resolved, decision.step in owed, note, outcome_note)


def whole_of(query: Mapping[str, str], name: str, least: int, most: int = (1 << 63) - 1) -> int:
    """A whole number in a query, or ``BadRequest``."""
    text = query.get(name, "")
    if text.isascii() and text.isdecimal() and len(text) < 20 and least <= int(text) <= most:
        return int(text)
    upto = f" and at most {most}" if most < (1 << 63) - 1 else ""
    raise BadRequest(f"{name} must be a whole number, at least {least}{upto}", 422, name, "out_of_range")


def _score(query: Mapping[str, str], name: str, otherwise: float) -> float:
    text = query.get(name) or ""
    try:
        value = float(text) if text else otherwise
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise BadRequest(f"{name} must be a number in [0, 1]", 422, name, "out_of_range")
    return value


def shown(told: DecisionView, keeper: LiveGame, *, texts: bool = False) -> dict[str, Any]:
    """A round as JSON values.

    Parameters
    ----------
    told: the round.
    keeper: of its game.
    texts: whether to show both answers, where they are kept; a list of rounds would grow too long with them.
    """
    step = told.decision.step
    document = told.document(keeper.id_of(step), keeper.game.number, keeper.route.name, keeper.segment)
    return document | {"texts": keeper.answers(step) if texts else None}
