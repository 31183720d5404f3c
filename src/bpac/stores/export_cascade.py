"""The audited rounds of a cascade as rows of a table: one set of columns per model."""

import json
import random
from typing import Any

from bpac.routing.cascade.rounds import CascadeRound, StageOutcomes
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved
from bpac.stores.export import GradedRounds
from bpac.stores.store import Game, Store


def is_cascade_game(game: Game) -> bool:
    """Whether a game is that of a cascade, by its terms."""
    try:
        terms = json.loads(game.terms)
    except ValueError:
        return False
    router = terms.get("router") if isinstance(terms, dict) else None
    policy = router.get("policy") if isinstance(router, dict) else None
    return isinstance(policy, dict) and policy.get("kind") == "Cascade"


def cascade_rows(store: Store, game: Game, *, all_audits: bool = False, seed: int = 0) -> GradedRounds:
    """The rounds of a cascade in which all models were asked, as rows of a table for replays.

    As in the table of a pair, each round gets a row with a probability such that all rounds of the traffic are equally
    likely to be in the table. A round that was given up counts as loss 1 of every model at uncertainty 0. The table
    ends at the first round whose outcome has not come yet. A model that failed has uncertainty 1, at which it is always
    passed over.

    Parameters
    ----------
    store, game: where the journal is.
    all_audits: whether all audited rounds get a row, with their propensity (default: false).
    seed: random seed of the choice (default: 0).
    """
    decided: dict[int, tuple[Decision, dict[str, Any]]] = {}
    outcomes: dict[int, tuple[Resolved, dict[str, Any]]] = {}
    least = 1.0
    for entry, note in store.entries(game):
        if isinstance(entry, Decision) and entry.cascade is not None and entry.cascade.full:
            decided[entry.step] = entry, dict(note)
            least = min(least, entry.cascade.full_propensity)
        elif isinstance(entry, Resolved) and entry.step in decided:
            outcomes[entry.step] = entry, dict(note)
    found = GradedRounds([], least_propensity=least)
    draws = random.Random(seed)
    for step, (decision, note) in decided.items():
        part = decision.cascade
        assert part is not None  # only such decisions were kept
        outcome, more = outcomes.get(step, (None, {}))
        if found.cut:
            found.left_out += 1
            continue
        if outcome is not None and outcome.refused:
            found.refused += 1
            continue
        found.cut = outcome is None
        known = outcome.stages if outcome is not None else None
        found.graded += known is not None
        found.given_up += known is None and not found.cut
        if all_audits or found.cut or draws.random() < least / part.full_propensity:
            row = _row(step, part, known, {**note, **more})
            found.rows.append(row | ({"propensity": part.full_propensity} if all_audits else {}))
    return found


def _row(step: int, part: CascadeRound, known: StageOutcomes | None, note: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"step": step}
    for stage in range(1, len(part.answers) + 1):
        uncertainty, loss = 0.0, 1.0
        if known is not None:
            answer, graded = known.answers[stage - 1], known.losses[stage - 1]
            uncertainty, loss = (answer[0] if answer else 1.0), (1.0 if graded is None else graded)
        row |= {f"uncertainty_{stage}": uncertainty, f"loss_{stage}": loss}
        row[f"tokens_{stage}"] = note.get(f"stage_{stage}_tokens")
    row[f"tokens_{len(part.answers) + 1}"] = note.get("expert_tokens")
    return row
