"""Searching the recent decisions of a game."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bpac.dashboard.decisions import DecisionView
from bpac.gateway.auth.keys import ANONYMOUS, Identity
from bpac.gateway.games.shown.shown_game import ShownGame
from bpac.gateway.http.bad_request import BadRequest
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved
from bpac.stores.store import Game, Store, StoredRound

MOST_SHOWN = 200
# Rounds that one search reads at most, and how many at a time: other readers wait meanwhile.
MOST_READ, PORTION = 10_000, 500
CHOICES = {
    "answered_by": ("draft", "expert"),
    "state": ("kept", "open", "resolved", "refused", "forfeited"),
    "loss": ("some", "none"),
}


@dataclass(frozen=True, slots=True)
class DecisionQuery:
    """Which decisions are searched for.

    Parameters
    ----------
    answered_by, state, loss: one of the choices (default: empty, any).
    min_uncertainty, max_uncertainty: both included (default: 0 and 1).
    before: only steps below this (default: none, all steps).
    limit: the largest number of decisions (default: 50).
    identity: who asks; decisions made for others are shown to operators only.
    """

    answered_by: str = ""
    state: str = ""
    loss: str = ""
    min_uncertainty: float = 0.0
    max_uncertainty: float = 1.0
    before: int | None = None
    limit: int = 50
    identity: Identity = ANONYMOUS

    @classmethod
    def read(cls, parameters: Mapping[str, str], identity: Identity = ANONYMOUS) -> "DecisionQuery":
        """The query in the parameters of a URL, or ``BadRequest`` with the parameter that is wrong."""
        for name, choices in CHOICES.items():
            if parameters.get(name) and parameters[name] not in choices:
                raise BadRequest(f"{name} must be one of {', '.join(choices)}", 422, name, "invalid_value")
        return cls(
            **{name: parameters.get(name, "") for name in CHOICES},
            min_uncertainty=_score(parameters, "min_uncertainty", 0.0),
            max_uncertainty=_score(parameters, "max_uncertainty", 1.0),
            before=whole_number(parameters, "before", 1) if parameters.get("before") else None,
            limit=whole_number(parameters, "limit", 1, MOST_SHOWN) if parameters.get("limit") else 50,
            identity=identity,
        )

    def matches(self, view: DecisionView) -> bool:
        """Whether a decision is searched for."""
        loss = view.outcome.loss if view.outcome else None
        return (
            self.identity.sees(view.note.get("caller"))
            and self.answered_by in ("", view.answered_by)
            and self.state in ("", view.state)
            and self.min_uncertainty <= view.decision.uncertainty <= self.max_uncertainty
            and (not self.loss or (loss is not None and (loss > 0.0) == (self.loss == "some")))
        )


@dataclass(frozen=True, slots=True)
class Search:
    """A search in a journal, which runs in another thread while its game goes on.

    Parameters
    ----------
    store, game: where the journal is.
    owed: steps that waited for their outcome before the store was asked to make everything durable. So a round that is
        not among them, and has no outcome in the store, has none.
    step: the last decision at that time.
    """

    store: Store
    game: Game
    owed: frozenset[int]
    step: int

    @classmethod
    def begin(cls, game: ShownGame) -> "Search":
        """A search in a live game; what was appended so far must be durable before it reads."""
        owed = frozenset(decision.step for decision in game.router.owed)
        return cls(game.store, game.kept, owed, game.router.step)

    def find(self, query: DecisionQuery) -> tuple[list[DecisionView], int | None]:
        """The decisions that match, newest first, and the step below which to continue; none if there are no more."""
        found: list[DecisionView] = []
        step = 0
        before = min(query.before or self.step + 1, self.step + 1)
        for count, view in enumerate(self._open(before) if query.state == "open" else self._all(before), start=1):
            step = view.decision.step
            if query.matches(view):
                found.append(view)
            if len(found) == query.limit or count == MOST_READ:
                return found, step if step > 1 else None
        return found, None

    def one(self, step: int) -> DecisionView | None:
        """The decision of that step."""
        view = next(self._rounds(step + 1, 1), None) if 1 <= step <= self.step else None
        return view if view is not None and view.decision.step == step else None

    def _open(self, before: int) -> Iterator[DecisionView]:
        for step in sorted(self.owed, reverse=True):
            if step < before and (view := self.one(step)) is not None:
                yield view

    def _all(self, before: int) -> Iterator[DecisionView]:
        while before > 1:
            last = before
            for view in self._rounds(before, PORTION):
                before = view.decision.step
                yield view
            if before == last:
                return

    def _rounds(self, before: int, limit: int) -> Iterator[DecisionView]:
        for kept in self.store.rounds(self.game, before, limit):
            yield _view(kept, self.owed)


def _view(kept: StoredRound, owed: frozenset[int]) -> DecisionView:
    decision, note = kept.decided
    if not isinstance(decision, Decision):
        raise TypeError(f"the store returned {decision!r} for a decision")
    outcome, outcome_note = kept.outcome or (None, {})
    resolved = outcome if isinstance(outcome, Resolved) else None
    return DecisionView(decision, resolved, decision.step in owed, note, outcome_note)


def whole_number(parameters: Mapping[str, str], name: str, least: int, most: int = (1 << 63) - 1) -> int:
    """A whole number in the parameters of a URL, or ``BadRequest``."""
    text = parameters.get(name, "")
    if text.isascii() and text.isdecimal() and len(text) < 20 and least <= int(text) <= most:
        return int(text)
    upto = f" and at most {most}" if most < (1 << 63) - 1 else ""
    raise BadRequest(f"{name} must be a whole number, at least {least}{upto}", 422, name, "out_of_range")


def _score(parameters: Mapping[str, str], name: str, default: float) -> float:
    text = parameters.get(name) or ""
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise BadRequest(f"{name} must be a number in [0, 1]", 422, name, "out_of_range")
    return value


def decision_document(view: DecisionView, game: ShownGame, *, texts: bool = False) -> dict[str, Any]:
    """A decision as JSON values.

    Parameters
    ----------
    view: the decision and its outcome.
    game: the game it belongs to.
    texts: whether to include both answers, where they are kept (default: false; they would make a list too long).
    """
    step = view.decision.step
    unit = "request" if game.route.sticky_by is None else "episode"
    document = view.document(game.decision_id(step), game.number, game.route.name, game.segment, unit)
    return document | {"texts": game.answers(step) if texts else None}
