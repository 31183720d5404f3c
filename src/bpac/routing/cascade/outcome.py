"""Checks what an audit of a cascade found."""

from collections.abc import Sequence
from typing import cast

from bpac.arguments import fraction
from bpac.errors import InputError
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import CascadeRound, StageAnswer, StageOutcomes
from bpac.routing.cascade.walk import checked_features
from bpac.routing.decision import Decision


def checked_outcome(
    decision: Decision, answers: Sequence[StageAnswer], losses: Sequence[float | None], policy: Cascade
) -> StageOutcomes:
    """What an audit found, or ``InputError`` if it does not fit the decision."""
    part = cast(CascadeRound, decision.cascade)
    count = policy.stages - 1
    if len(answers) != count or len(losses) != count:
        raise InputError(f"this cascade needs {count} answers and as many losses, got {answers!r} and {losses!r}")
    checked: list[StageAnswer] = []
    graded: list[float | None] = []
    for stage, (answer, loss, before) in enumerate(zip(answers, losses, part.answers, strict=True), start=1):
        known: StageAnswer = None if answer is None else tuple(answer)
        if known:
            known = (fraction(known[0], "uncertainty"), *checked_features(known[1:], policy.features))
        if before not in ((), known):
            raise InputError(f"the answer of stage {stage} was {before!r} at the decision, and is {answer!r} now")
        if known == () and part.full:
            raise InputError(f"stage {stage} was not asked, and this audit needs all models: give None if it failed")
        if bool(known) != (loss is not None):
            raise InputError(f"stage {stage} needs a loss exactly if it has an answer, got {answer!r} and {loss!r}")
        checked.append(known)
        graded.append(None if loss is None else fraction(loss, "loss"))
    return StageOutcomes(tuple(checked), tuple(graded))
