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

from typing import NamedTuple

from bpac.routing.decision import Decision

# A recorded coin stands for one of these draws: if neither leads to it, no draw does.
CALLS, KEEPS = 0.0, 1.0 - 2.0**-53
# ``Decision(*values)`` without the cost of naming the fields: one decision is made for every query.
new_tuple = tuple.__new__


class Rule(NamedTuple):
    """The settings that the rule depends on.

    Parameters
    ----------
    shadow: audits run behind the draft, which is served at once.
    certain_while_closed: the policy knows that every query goes to the expert while the threshold is 0.

    >>> rule = Rule(shadow=False, certain_while_closed=True)
    >>> decision = rule.decide(7, uncertainty=0.2, threshold=0.5, rate=0.05, draw=0.3)
    >>> decision.propensity, decision.call_expert, decision.serve_draft
    (0.05, False, True)
    """

    shadow: bool
    certain_while_closed: bool

    def decide(  # noqa: PLR0917  # by position, because it is called for every query
        self,
        step: int,
        uncertainty: float,
        threshold: float,
        rate: float,
        draw: float,
        epoch: int = 1,
        uncertainties: tuple[float, ...] = (),
        ticket: int = 0,
        seen: int = 0,
    ) -> Decision:
        """Decide one query.

        Parameters
        ----------
        step, uncertainty, epoch, uncertainties, ticket, seen: as in ``Decision``.
        threshold: the threshold in force for this query (û).
        rate: the exploration rate in force for this query (ρ).
        draw: the coin, a number in [0, 1).
        """
        shadow, certain_while_closed = self
        accepted = uncertainty < threshold
        propensity = rate if accepted else 1.0
        call_expert = True if draw < propensity else False  # noqa: SIM210  # numpy's numbers compare to numpy's booleans
        return new_tuple(
            Decision,
            (
                step,
                uncertainty,
                threshold,
                propensity,
                1.0 if threshold == 0.0 and certain_while_closed else rate,
                call_expert,
                accepted and rate < 1.0 if shadow else not call_expert,
                epoch,
                uncertainties,
                ticket,
                seen,
            ),
        )

    def again(self, decision: Decision, threshold: float, rate: float) -> Decision:
        """Decide a recorded query again, with the same coin.

        Parameters
        ----------
        decision: what was recorded.
        threshold, rate: what was in force for it (û, ρ).
        """
        step, uncertainty, _, _, _, call_expert, _, epoch, uncertainties, ticket, seen = decision
        draw = CALLS if call_expert else KEEPS
        return self.decide(step, uncertainty, threshold, rate, draw, epoch, uncertainties, ticket, seen)
