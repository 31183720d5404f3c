"""A query on its way through a cascade: which model to ask next, and whether its answer is accepted."""

import math

from bpac.arguments import fraction
from bpac.errors import InputError
from bpac.routing.cascade.rounds import FAILED, NOT_ASKED, StageAnswer
from bpac.routing.cascade.rules import Rule
from bpac.routing.tickets.ticket import Ticket


class Walk:
    """Asks the models of a rule one after the other, until an answer is accepted.

    Parameters
    ----------
    rule: the rule in force when the query arrived.
    terms: what else was in force then.
    stages: number of models, with the reference.
    features: how many numbers each answer has besides its uncertainty.
    issued: whether the terms are a ticket that the router gave out.
    """

    __slots__ = ("_index", "accepted", "answers", "features", "issued", "rule", "terms", "value")

    def __init__(self, rule: Rule, terms: Ticket, stages: int, features: int, *, issued: bool) -> None:
        self.rule = rule
        self.features = features
        self._index = 0
        self.terms = terms
        self.issued = issued
        self.answers: list[StageAnswer] = [NOT_ASKED] * (stages - 1)
        # The stage whose answer is accepted, and the lowest value so far.
        self.accepted: int | None = None
        self.value = 1.0

    @property
    def next_stage(self) -> int | None:
        """The model to ask next, from 1; none if the query can be decided."""
        if self.accepted is not None or self._index == len(self.rule.stages):
            return None
        return self.rule.stages[self._index]

    def answered(self, uncertainty: float, *features: float) -> bool:
        """Report the answer of the model that was asked; whether it is accepted.

        Parameters
        ----------
        uncertainty: its score in [0, 1].
        features: what else is known of it, as finite numbers.
        """
        return self._take((fraction(uncertainty, "uncertainty"), *checked_features(features, self.features)))

    def failed(self) -> None:
        """Report that the model that was asked gave no answer, or one without a score: it is passed over."""
        self._take(FAILED)

    def _take(self, answer: StageAnswer) -> bool:
        stage = self.next_stage
        if stage is None:
            raise InputError("this query has passed all its models: decide it")
        self.answers[stage - 1] = answer
        value = self.rule.value(self._index, self.answers)
        self._index += 1
        self.value = min(self.value, value)
        if value < self.terms.threshold:
            self.accepted = stage
        return self.accepted is not None


def checked_features(features: tuple[float, ...], count: int) -> tuple[float, ...]:
    """The features of an answer as floats; ``InputError`` if they are not that many finite numbers."""
    try:
        numbers = tuple(float(number) for number in features)
    except (TypeError, ValueError) as error:
        raise InputError(f"the features of an answer must be numbers, got {features!r}") from error
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise InputError(f"an answer of this cascade has {count} features, all finite, got {features!r}")
    return numbers
