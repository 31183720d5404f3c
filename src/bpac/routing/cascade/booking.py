"""What a round of a cascade is booked as: the losses that an audit found, and the charge while it is open."""

from collections.abc import Sequence

from bpac.betting.wealth.envelope import Steps, envelope
from bpac.routing.cascade.full_audits import all_answered, rounded_losses
from bpac.routing.cascade.rounds import StageAnswer, StageOutcomes
from bpac.routing.cascade.rules import Rule, values
from bpac.routing.decision import Decision


def found_losses(rule: Rule, outcome: StageOutcomes, fair_loss: float) -> Steps:
    """Where the loss of a round rises by a rule, and to what.

    A model that fails is passed over, so that the answers of better models count while it is down. Such rounds say
    nothing about the answers that it gives when it is back. So they pay nothing at any threshold, as rounds without a
    score (MATH section 13), and losses count as always.
    """
    steps = envelope(*rounded_losses(rule, outcome))
    if all_answered(rule, outcome.answers):
        return steps
    return [(0.0, fair_loss), *(step for step in steps if step[1] > fair_loss)]


def charge_level(rule: Rule, answers: Sequence[StageAnswer]) -> float:
    """The lowest value of a rule's answers if all are made; 0, where every threshold is charged, if not."""
    return min(values(rule, answers)) if all_answered(rule, answers) else 0.0


def charge_of(decision: Decision, index: int) -> Steps:
    """What a rule is charged while an audit is open: a loss of 1 at every threshold at which it could have one."""
    return ((decision.uncertainties[index], 1.0),)
