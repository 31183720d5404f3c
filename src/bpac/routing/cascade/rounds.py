"""A round of a cascade: which answers were made, which stage answered, and what an audit found."""

from typing import Any, NamedTuple

# The answer of a model: its uncertainty, then further numbers that are known before the decision. ``()`` where the
# model was not asked, none where it failed.
StageAnswer = tuple[float, ...] | None
NOT_ASKED: StageAnswer = ()
FAILED: StageAnswer = None


class StageOutcomes(NamedTuple):
    """What an audit found out.

    Parameters
    ----------
    answers: the answer of each model but the last.
    losses: loss of each against the last model's answer; none where there is no answer.
    """

    answers: tuple[StageAnswer, ...]
    losses: tuple[float | None, ...]


class CascadeRound(NamedTuple):
    """The part of a decision that only a cascade has.

    Parameters
    ----------
    rule: number of the stopping rule in force at the query's arrival, from 0.
    stage: the stage whose answer was accepted, from 1; the last stage if none was.
    answers: the answers made before the decision, by stage.
    full: whether all models are asked, so that the round is known to every rule.
    full_propensity: probability of that.
    outcome: what an audit found out; it is not part of the journal's decision.
    """

    rule: int
    stage: int
    answers: tuple[StageAnswer, ...]
    full: bool
    full_propensity: float
    outcome: StageOutcomes | None = None


def answers_from_json(values: Any) -> tuple[StageAnswer, ...]:
    """Answers that were written to JSON as lists."""
    return tuple(None if answer is None else tuple(map(float, answer)) for answer in values)


def outcomes_from_json(values: Any) -> StageOutcomes:
    """Outcomes that were written to JSON as a list."""
    answers, losses = values
    return StageOutcomes(answers_from_json(answers), tuple(None if loss is None else float(loss) for loss in losses))


def round_from_json(values: Any) -> CascadeRound:
    """The part of a decision that was written to JSON as a list."""
    rule, stage, answers, full, full_propensity, *outcome = values
    known = outcomes_from_json(outcome[0]) if outcome and outcome[0] is not None else None
    return CascadeRound(rule, stage, answers_from_json(answers), full, float(full_propensity), known)
