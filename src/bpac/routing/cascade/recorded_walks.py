"""The walk of a query through a cascade as it is recorded, and the decision that follows from it.

Everything that is computed from the answers is computed once, where they are: the lowest value, the levels at which the
rules are charged, and the probability of asking all models. The decision only compares these numbers with the terms of
the query and with its coin, so that every machine decides the same to the bit.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bpac.routing.cascade.booking import charge_level
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import CascadeRound, StageAnswer
from bpac.routing.cascade.rules import JoiningRule, Rule
from bpac.routing.cascade.walk import Walk
from bpac.routing.decision import Decision
from bpac.routing.rule import decide_query
from bpac.routing.tickets.ticket import Ticket


class RecordedWalk(NamedTuple):
    """A walk that has ended.

    Parameters
    ----------
    value: the lowest value of an answer.
    accepted: the stage whose answer is below the threshold of the query, from 1; 0 if there is none.
    answers: the answers that were made, by stage.
    levels: for each rule that was known at the arrival, the level at which it is charged while an audit is open; empty
        if a drift alarm has rung since the arrival.
    full_propensity: the probability of asking all models if no answer is accepted, once a threshold is certified.
    """

    value: float
    accepted: int
    answers: tuple[StageAnswer, ...]
    levels: tuple[float, ...]
    full_propensity: float


def walk_on_terms(policy: Cascade, terms: Ticket, joined: Sequence[JoiningRule]) -> Walk:
    """Send a query on its way without the state of its game.

    Parameters
    ----------
    policy: of the game.
    terms: the ticket of the query.
    joined: the rules that had joined when it arrived.
    """
    rule = _known_rules(policy, joined)[terms.score]
    return Walk(rule, terms, policy.stages, policy.features, issued=True)


def recorded_walk(policy: Cascade, walk: Walk, joined: Sequence[JoiningRule]) -> RecordedWalk:
    """A walk that has ended, as it is recorded.

    Parameters
    ----------
    policy: of the game.
    walk: the walk.
    joined: the rules that had joined when its query arrived.
    """
    levels = tuple(charge_level(rule, walk.answers) for rule in _known_rules(policy, joined))
    full_propensity = policy.full_propensity(walk.rule, walk.terms.rate)
    return RecordedWalk(walk.value, walk.accepted or 0, tuple(walk.answers), levels, full_propensity)


def decide_walk(terms: Ticket, walk: RecordedWalk, step: int, draw: float, stages: int, *, shadow: bool) -> Decision:
    """The decision of a query.

    Parameters
    ----------
    terms: on which it is decided.
    walk: through the models.
    step: its place among the decisions of the game.
    draw: the coin of that step.
    stages: number of models, with the reference.
    shadow: whether audits run behind the answer, which is served at once.
    """
    number, epoch, threshold, rate, rule, seen = terms
    accepted = walk.value < threshold
    if not walk.levels:
        full_propensity = 0.0  # the rules of its epoch are no longer there to learn anything
    elif accepted:
        full_propensity = rate
    else:
        full_propensity = 1.0 if threshold == 0.0 else walk.full_propensity
    stage = walk.accepted if accepted and walk.accepted else stages
    full = True if draw < full_propensity else False  # noqa: SIM210  # numpy's numbers compare to numpy's booleans
    part = CascadeRound(rule, stage, walk.answers, full, full_propensity)
    return decide_query(
        *(step, walk.value, threshold, rate, draw, shadow, True, epoch, walk.levels, number),
        *(seen if number else 0, (), part),
    )


def _known_rules(policy: Cascade, joined: Sequence[JoiningRule]) -> list[Rule]:
    return [*policy.first_rules, *joined]
