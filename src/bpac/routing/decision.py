"""A decision, as a value."""

from typing import Any, NamedTuple


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
    epoch: the betting game this round belongs to; a drift alarm starts a new one.
    uncertainties: all scores of the draft, where a router has several.
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

    @staticmethod
    def from_list(values: list[Any]) -> "Decision":
        """The decision that was written to JSON as a list."""
        return Decision._make((*values[:-1], tuple(values[-1])))
