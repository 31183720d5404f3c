"""Rounds for the tests of accounts."""

from bpac.routing.decision import Decision


def a_round(
    uncertainty: float = 0.5,
    propensity: float = 1.0,
    least_propensity: float | None = None,
    *,
    step: int = 1,
    threshold: float = 1.0,
    call_expert: bool = True,
    uncertainties: tuple[float, ...] = (),
) -> Decision:
    """A decision in which a test names only the fields that matter to it."""
    return Decision(
        step=step,
        uncertainty=uncertainty,
        threshold=threshold,
        propensity=propensity,
        least_propensity=propensity if least_propensity is None else least_propensity,
        call_expert=call_expert,
        serve_draft=not call_expert,
        uncertainties=uncertainties,
    )
