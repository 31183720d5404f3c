"""What messages between a front and the owner of the journals have in common.

A request is ``[kind, number, *values]``; number 0 asks for no reply. A reply is ``[number, OK, value]`` or
``[number, FAILED, kind of error, message, *details]``. What the owner sends unasked is ``[0, kind, *values]``.
"""

from typing import Any

from bpac.routing.cascade.rounds import StageAnswer, answers_from_json
from bpac.routing.cascade.rules import FittedRule, UncertaintyRule, rule_from_json
from bpac.routing.cascade.walk import Walk
from bpac.routing.tickets.ticket import Ticket

OK, FAILED = 0, 1


def stage_answers(values: Any) -> tuple[StageAnswer, ...]:
    """The answers of the models of a cascade."""
    return answers_from_json(values)


def walk_to_list(walk: Walk) -> list[Any]:
    """A walk that has just begun, for a message."""
    rule = walk.rule
    if not isinstance(rule, FittedRule | UncertaintyRule):
        raise TypeError(f"{rule!r} cannot be sent")
    return [rule.to_json(), len(walk.answers) + 1, walk.features]


def walk_from_list(values: list[Any], terms: Ticket) -> Walk:
    """The walk that ``walk_to_list`` wrote."""
    rule, stages, features = values
    return Walk(rule_from_json(rule), terms, stages, features, issued=True)
