"""Checks of learned scores: each follows from the entries before it, and scores the drafts after it."""

from collections.abc import Iterator
from typing import Any

from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Learned
from bpac.routing.learning.model import RETIRED, FrozenModel
from bpac.routing.route import Route

# Two machines may compute different last digits.
SAME_SCORE, SAME_TERM = 1e-7, 1e-3


def learned_differences(route: Route, entry: Learned) -> Iterator[tuple[str, Any, Any]]:
    """What differs from the score that the earlier rounds lead to: name, recorded value, computed value.

    A score that was learned together with other games cannot be computed from one journal.
    """
    learning = route.learning
    if learning is None or entry.shared:
        return
    name = f"learned score {entry.score}"
    if not learning.enough:
        yield f"{name}: audits with an outcome", entry.rounds, learning.samples.count
        return
    computed = learning.fitted(entry.tickets)
    if computed.rounds != entry.rounds:
        yield f"{name}: audits with an outcome", entry.rounds, computed.rounds
    if abs(computed.gain - entry.gain) > SAME_TERM:
        yield f"{name}: estimated gain", entry.gain, computed.gain
    if not _alike(entry.model, computed.model):
        yield name, entry.model, computed.model


def score_differences(route: Route, decision: Decision, score: int) -> Iterator[tuple[str, Any, Any]]:
    """Scores of a decision that do not follow from its features and the models.

    Parameters
    ----------
    route: the state before it.
    decision: what was recorded.
    score: index of the score that was in force when the query arrived.
    """
    learning, recorded = route.learning, decision.uncertainties
    if learning is None or decision.epoch != route.epoch:
        return
    count, known = route.current.scores_at(decision.ticket), (recorded[0], *decision.features)
    computed = (recorded[0], *[joined.model.score(known) for joined in learning.joined[: count - 1]])
    differ = {at for at, values in enumerate(zip(computed, recorded, strict=False)) if not _same(*values)}
    # A score that has retired need not be computed, unless the query arrived while it was in force.
    if differ - {at for at in learning.retired - {score} if recorded[at : at + 1] == (RETIRED,)}:
        yield f"scores of step {decision.step}", recorded, computed
    if score < len(recorded) and decision.uncertainty != recorded[score]:
        yield f"score in force at step {decision.step}", decision.uncertainty, recorded[score]


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME_SCORE


def _alike(one: Any, other: Any) -> bool:
    """Whether two models are the same, up to the last digits of their terms."""
    flat, other_flat = _flat(one), _flat(other)
    return flat.keys() == other_flat.keys() and all(abs(flat[key] - other_flat[key]) <= SAME_TERM for key in flat)


def _flat(data: Any) -> dict[tuple[Any, ...], float]:
    if data is None:
        return {}
    model = FrozenModel(data).to_json()
    flat: dict[tuple[Any, ...], float] = {("intercept",): model["intercept"]}
    for index, term in enumerate(model["terms"]):
        flat[index, "missing"] = term["missing"]
        flat |= {(index, "knot", knot): value for knot, value in zip(term["knots"], term["values"], strict=True)}
        flat |= {(index, "word", word): value for word, value in term["words"].items()}
    return flat
