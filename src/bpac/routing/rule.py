"""The rule that decides a query. It exists once: the router follows it, rebuilding and auditing a journal check it.

1. A draft is *accepted* if its uncertainty is below the threshold.
2. The expert is called for every draft that is not accepted. For an accepted draft it is called with the exploration
   rate as probability. The probability with which the expert is called is the *propensity* of the round.
3. The *least propensity* is the smallest that any query could have had in this round. It is the exploration rate, and 1
   while the threshold is 0, because no draft can be accepted then. (The paper's own policy always uses the rate.)
4. One uniform draw in [0, 1) is the coin: the expert is called if the draw is below the propensity.
5. The caller gets the draft if the expert is not called. With shadow audits the caller gets every accepted draft,
   unless the rate is 1: while every draft is audited, no draft is served.
"""

from bpac.routing.cascade.rounds import CascadeRound
from bpac.routing.decision import Decision

# A recorded coin stands for one of these draws: if neither of them leads to it, no draw does.
CALLS, KEEPS = 0.0, 1.0 - 2.0**-53
# ``Decision(*values)`` without the cost of naming the fields: one decision is made for every query.
new_tuple = tuple.__new__


def decide_query(  # noqa: PLR0917  # by position, because it is called for every query
    step: int,
    uncertainty: float,
    threshold: float,
    rate: float,
    draw: float,
    shadow: bool,
    certain_while_closed: bool,
    epoch: int = 1,
    uncertainties: tuple[float, ...] = (),
    ticket: int = 0,
    seen: int = 0,
    features: tuple[float | str | None, ...] = (),
    cascade: CascadeRound | None = None,
) -> Decision:
    """Decide one query.

    Parameters
    ----------
    step, uncertainty, epoch, uncertainties, ticket, seen, features, cascade: as in ``Decision``.
    threshold: the threshold in force for this query (û).
    rate: the exploration rate in force for this query (ρ).
    draw: the coin, a number in [0, 1).
    shadow: whether audits run behind the draft, which is served at once.
    certain_while_closed: whether the policy knows that every query goes to the expert while the threshold is 0.

    >>> decision = decide_query(7, 0.2, threshold=0.5, rate=0.05, draw=0.3, shadow=False, certain_while_closed=True)
    >>> decision.propensity, decision.call_expert, decision.serve_draft
    (0.05, False, True)
    """
    if uncertainty < threshold:
        propensity = least_propensity = rate
        call_expert = True if draw < rate else False  # noqa: SIM210  # numpy's numbers compare to numpy's booleans
        serve_draft = rate < 1.0 if shadow else not call_expert
    else:
        propensity, call_expert, serve_draft = 1.0, True, False
        least_propensity = 1.0 if threshold == 0.0 and certain_while_closed else rate
    return new_tuple(
        Decision,
        (
            step,
            uncertainty,
            threshold,
            propensity,
            least_propensity,
            call_expert,
            serve_draft,
            epoch,
            uncertainties,
            ticket,
            seen,
            features,
            cascade,
        ),
    )


def decide_again(
    decision: Decision, *, threshold: float, rate: float, shadow: bool, certain_while_closed: bool
) -> Decision:
    """Decide a recorded query again, with the same coin.

    Parameters
    ----------
    decision: what was recorded.
    threshold, rate: what was in force for it (û, ρ).
    shadow, certain_while_closed: as for ``decide_query``.
    """
    step, uncertainty, _, _, _, call_expert, _, epoch, uncertainties, ticket, seen, features, cascade = decision
    coin = CALLS if call_expert else KEEPS
    return decide_query(
        *(step, uncertainty, threshold, rate, coin, shadow, certain_while_closed),
        *(epoch, uncertainties, ticket, seen, features, cascade),
    )
