"""A decision, as a value."""

from typing import Any, NamedTuple

from bpac.routing.cascade.rounds import CascadeRound, round_from_json


class Decision(NamedTuple):
    """What was decided for one query, with the probability it was decided with.

    It is recorded before anything is sent, and nothing in it is ever computed again.
    (A named tuple rather than a frozen dataclass: one is made for every query, in a third of the time.)

    Parameters
    ----------
    step: number of the query in its route, from 1 (t).
    uncertainty: score of the draft (U).
    threshold: the threshold in force (û).
    propensity: probability of calling the expert (π).
    least_propensity: the least that any query could have had in this round (p).
    call_expert: whether the expert is called (ξ).
    serve_draft: whether the caller gets the draft; with shadow audits also where the expert is called.
    epoch: number of the epoch in which the query arrived, from 1; a drift alarm starts a new one.
    uncertainties: all scores of the draft, where a router has several; 1 for a learned one that has retired.
    ticket: number of the query's ticket in its epoch; 0 where tickets are not in use.
    seen: entries in the journal when the query arrived, where tickets are in use.
    features: what was known of the draft beside its score, where scores are learned from it.
    cascade: what only a cascade has; none for a pair of models.
    """

    step: int
    uncertainty: float
    threshold: float
    propensity: float
    least_propensity: float
    call_expert: bool
    serve_draft: bool
    epoch: int = 1
    uncertainties: tuple[float, ...] = ()
    ticket: int = 0
    seen: int = 0
    features: tuple[float | str | None, ...] = ()
    cascade: CascadeRound | None = None

    @property
    def own_score(self) -> float:
        """The score that was there first; where scores are learned, another one may have decided."""
        return self.uncertainties[0] if self.features else self.uncertainty

    def at_zero(self) -> "Decision":
        """The same round with a score of 0, which every threshold sees."""
        return self._replace(uncertainty=0.0, uncertainties=(0.0,) * len(self.uncertainties))

    def to_list(self) -> list[Any]:
        """The decision as a list for JSON, without features and cascade where it has none."""
        if self.cascade is not None:
            return list(self)
        return list(self[:-1] if self.features else self[:-2])

    @staticmethod
    def from_list(values: list[Any]) -> "Decision":
        """The decision that was written to JSON as a list."""
        plain, (uncertainties, ticket, seen, *rest) = values[:8], values[8:]
        features = tuple(rest[0]) if rest else ()
        cascade = round_from_json(rest[1]) if len(rest) > 1 else None
        return Decision._make((*plain, tuple(uncertainties), ticket, seen, features, cascade))
