"""Which threshold and rate were in force when a query arrived, computed again while a journal is audited."""

from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from bpac.routing.audit.scores import score_differences
from bpac.routing.bettors import BudgetBettor
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Started
from bpac.routing.route import Route
from bpac.routing.rule import decide_again


class _Terms(NamedTuple):
    """What was in force from an entry on, until the next one changed it.

    Parameters
    ----------
    since: how many entries the journal had.
    threshold, rate, epoch: in force then (û, ρ).
    run: how many entries it had when queries last began to take tickets.
    score: index of the score in force, where there are several.
    """

    since: int
    threshold: float
    rate: float
    epoch: int
    run: int
    score: int


class TermsInForce:
    """The threshold and rate at every moment: a query is decided on those in force when it arrived (MATH section 12).

    Parameters
    ----------
    route: the empty route that the first entry opened.
    """

    def __init__(self, route: Route) -> None:
        self._route = route
        self._terms = [self._now(0)]

    def followed(self, entry: Entry) -> None:
        """Remember what is in force after an entry that was applied to the route."""
        last = self._terms[-1]
        now = self._now(self._route.entries if isinstance(entry, Started) else last.run)
        if now[1:] != last[1:]:
            self._terms.append(now)

    def differences(self, decision: Decision) -> Iterator[tuple[str, Any, Any]]:
        """The values of a decision that differ from the rule: name, recorded value, computed value."""
        route, met = self._route, self._terms[-1]
        if decision.epoch != route.epoch:
            # An alarm has rung since it arrived: nothing that was certified before is used. One of several gateways may
            # not have known of it yet, and have decided on the terms that it arrived with.
            met = self._terms[bisect_right(self._terms, decision.seen, key=itemgetter(0)) - 1]
            if met.epoch != decision.epoch or decision.threshold != met.threshold:
                met = met._replace(threshold=0.0, rate=1.0)
        elif decision.ticket and route.in_order:
            met = self._terms[bisect_right(self._terms, decision.seen, key=itemgetter(0)) - 1]
            last = self._terms[-1]
            if not met.run <= decision.seen <= route.entries or (met.run, met.epoch) != (last.run, route.epoch):
                yield f"entries seen by step {decision.step}", decision.seen, None
        elif decision.ticket and decision.threshold != met.threshold:
            met = self._of_budget(decision)
        yield from score_differences(route, decision, met.score)
        by_rule = decide_again(
            decision,
            threshold=met.threshold,
            rate=met.rate,
            shadow=route.shadow,
            certain_while_closed=route.certain_while_closed,
        )
        for name in ("threshold", "propensity", "least_propensity"):
            recorded, computed = getattr(decision, name), getattr(by_rule, name)
            if recorded != computed:
                yield f"{name} of step {decision.step}", recorded, computed

    def _of_budget(self, decision: Decision) -> _Terms:
        """Any threshold may be used while the budget has room, and none is always allowed (MATH section 7).

        One of several gateways decides on the threshold that was in force when its query arrived.
        """
        bettor = self._route.bettor
        if not isinstance(bettor, BudgetBettor) or (decision.threshold > 0.0 and not bettor.has_room):
            return self._terms[-1]
        arrived = self._terms[bisect_right(self._terms, decision.seen, key=itemgetter(0)) - 1]
        return arrived if decision.threshold > 0.0 else arrived._replace(threshold=0.0, rate=1.0)

    def _now(self, run: int) -> _Terms:
        route = self._route
        route.charge()
        current = route.current
        return _Terms(route.entries, route.bettor.threshold, current.rate, route.epoch, run, current.active_score)
