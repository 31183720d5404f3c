"""Bets on the thresholds of all stopping rules at once; the cheapest rule is in force.

1. There is one wealth per rule, each with its share of α. The shares are fixed before the first round, also those of
   rules that are fitted later: their places are empty until they join (MATH section 14).
2. A rule that joins sees only queries that arrive after it was fitted. A decision carries one number for each rule
   known at its arrival: the level at which the rule is charged while the audit is open.
3. A round is *known* to a rule if the models that the rule asks, and the reference, were asked. Where the rule in force
   asks them all, that has the probability of calling the reference; otherwise, that of asking all models.
4. Now and then, what each rule would cost is estimated from the rounds that all models answered. The cheapest is in
   force, and audits are made while what they could save is worth their price. The past decides, so this is valid.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from bpac.betting.payoff import Terms
from bpac.betting.wealth.envelope import EnvelopeWealth
from bpac.routing.cascade.booking import charge_level, charge_of, found_losses
from bpac.routing.cascade.full_audits import Estimates, FullAudits
from bpac.routing.cascade.rounds import CascadeRound, StageAnswer, StageOutcomes
from bpac.routing.cascade.rules import JoiningRule, Rule, UncertaintyRule, rule_from_json
from bpac.routing.decision import Decision

# Rounds between two looks at the costs: few at first, then a share of all.
LOOK_EVERY, LOOK_SHARE, LONGEST_PAUSE = 64, 16, 1024
# Fewest rounds of the sample before rules are compared.
FEWEST_ROUNDS = 32


class Seen(NamedTuple):
    """A round as one wealth sees it."""

    least_propensity: float
    call_expert: bool


class CascadeBettor:
    """The wealths of all rules of a cascade.

    Parameters
    ----------
    rules: the rules that are there first.
    wealths: one for each rule, and one for each that may join later.
    fit_at: number of rounds known to all rules at which each further rule is fitted.
    prices: price of a call of each model, the reference last.
    terms: the terms of the bets.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        wealths: Sequence[EnvelopeWealth],
        fit_at: Sequence[int],
        prices: Sequence[float],
        terms: Terms,
    ) -> None:
        self.rules: list[Rule] = list(rules)
        # The number of journal entries before which each rule was not known.
        self.joined_at = [0] * len(rules)
        self._first = len(rules)
        self._wealths = tuple(wealths)
        self._fit_at = tuple(fit_at)
        self._prices = tuple(prices)
        self._terms = terms
        self._estimates = [self._estimates_of(rule) for rule in rules]
        self.sample = FullAudits()
        self.active = 0
        self.threshold = 0.0
        self.rounds = 0
        # Audits, if each round counts by its least propensity: of all rounds, and before each rule joined.
        self._audits = 0.0
        self._audits_before = [0.0] * len(rules)
        self._promising = 0  # the rule that could save most
        self.gain = math.inf  # what audits could save, in prices of an audit of all that is accepted
        self._next_look = LOOK_EVERY

    @property
    def fit_due(self) -> bool:
        """Whether a rule should be fitted before the next query arrives."""
        fitted = len(self.rules) - self._first
        return fitted < len(self._fit_at) and self.sample.seen >= self._fit_at[fitted]

    @property
    def joined_rules(self) -> list[JoiningRule]:
        """The rules that joined after the first round."""
        return cast(list[JoiningRule], self.rules[self._first :])

    @property
    def stages_by_uncertainty(self) -> list[tuple[int, ...]]:
        """The stages of each rule that decides by uncertainty."""
        return [rule.stages for rule in self.rules if isinstance(rule, UncertaintyRule)]

    @property
    def audits(self) -> float:
        """What the rule that could save most has seen of audits, if each round counts by its least propensity."""
        return self._audits - self._audits_before[self._promising]

    def join(self, rule: JoiningRule, entries: int) -> None:
        """Let a rule join.

        Parameters
        ----------
        rule: the rule.
        entries: number of journal entries, with the one that records the rule.
        """
        self.rules.append(rule)
        self.joined_at.append(entries)
        self._audits_before.append(self._audits)
        self._estimates.append(self._estimates_of(rule, self.sample.seen))

    def rules_known_at(self, seen: int) -> int:
        """How many rules there were when the journal had that many entries."""
        return sum(joined <= seen for joined in self.joined_at)

    def charge_levels(self, answers: Sequence[StageAnswer], seen: int) -> tuple[float, ...]:
        """For each rule known at a query's arrival, the level at which it is charged while an audit is open.

        Parameters
        ----------
        answers: the answers made before the decision.
        seen: number of journal entries at the arrival.
        """
        return tuple(
            charge_level(rule, answers)
            for rule, joined in zip(self.rules, self.joined_at, strict=True)
            if joined <= seen
        )

    def decided(self, decision: Decision) -> None:
        """Every rule known at the arrival wins the round, until a loss is booked."""
        part = cast(CascadeRound, decision.cascade)
        least = decision.least_propensity
        asked, full = Seen(least, decision.call_expert), Seen(least, part.full)
        for index in range(len(decision.uncertainties)):
            self._wealths[index].decided(asked if self._follows_active(index, part) else full)  # type: ignore[arg-type]
        self.rounds += 1
        self._audits += least
        if self.rounds >= self._next_look:
            self._look()
        self.threshold = self._wealths[self.active].threshold

    def resolve(self, decision: Decision, loss: float) -> None:
        """Book what an audit found that was not charged."""
        self._book(decision, charged=False)

    def charge(self, decision: Decision) -> None:
        """Book a loss of 1 at every threshold at which the round could have one."""
        for index, propensity in self._known_to(decision):
            self._wealths[index].book(charge_of(decision, index), propensity, decision.least_propensity)
        self.threshold = self._wealths[self.active].threshold

    def refund(self, decision: Decision, loss: float) -> None:
        """Replace a charge by what the audit found."""
        if decision.cascade is None:  # an open ticket that was passed over
            self._unbook(decision)
        else:
            self._book(decision, charged=True)
        self.threshold = self._wealths[self.active].threshold

    def forfeit(self, decision: Decision) -> None:
        """Leave the charges where they are."""

    def replace(self, decision: Decision, instead: Decision, loss: float, *, charged: bool) -> None:
        """Book a loss at every threshold: the reference refused (MATH section 13)."""
        for index, propensity in self._known_to(decision):
            self._wealths[index].book(((0.0, loss),), propensity, decision.least_propensity)
        if charged:
            self._unbook(decision)
        self.threshold = self._wealths[self.active].threshold

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {
            "fitted": [rule.to_json() for rule in self.joined_rules],
            "joined_at": self.joined_at[self._first :],
            "fitted_on": [estimates.fitted_on for estimates in self._estimates[self._first :]],
            "wealths": [wealth.state() for wealth in self._wealths],
            "sample": self.sample.state(),
            "active": self.active,
            "rounds": self.rounds,
            "audits": self._audits,
            "audits_before": self._audits_before[self._first :],
            "promising": self._promising,
            "gain": self.gain if math.isfinite(self.gain) else None,
            "next_look": self._next_look,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        for rule, entries in zip(state["fitted"], state["joined_at"], strict=True):
            self.join(rule_from_json(rule), entries)
        for estimates, rounds in zip(self._estimates[self._first :], state.get("fitted_on", ()), strict=False):
            estimates.fitted_on = rounds
        for wealth, part in zip(self._wealths, state["wealths"], strict=True):
            wealth.load(part)
        self.sample.load(state["sample"])
        self.active, self.rounds, self._audits = state["active"], state["rounds"], state["audits"]
        self._audits_before[self._first :] = state["audits_before"]
        self._promising = state["promising"]
        self.gain = math.inf if state["gain"] is None else state["gain"]
        self._next_look = state["next_look"]
        self.threshold = self._wealths[self.active].threshold

    def _estimates_of(self, rule: Rule, fitted_on: int = 0) -> Estimates:
        return Estimates(rule, self._prices, self._terms.floor, fitted_on)

    def _follows_active(self, index: int, part: CascadeRound) -> bool:
        """Whether a round is known to this rule whenever the reference was called."""
        return set(self.rules[index].stages) <= set(self.rules[part.rule].stages)

    def _known_to(self, decision: Decision) -> list[tuple[int, float]]:
        """The rules to which an audited round is known, and the probability that it was."""
        part = decision.cascade
        if part is None:
            return [(index, decision.propensity) for index in range(len(decision.uncertainties))]
        known = []
        for index in range(len(decision.uncertainties)):
            if self._follows_active(index, part):
                known.append((index, decision.propensity))
            elif part.full:
                known.append((index, part.full_propensity))
        return known

    def _book(self, decision: Decision, *, charged: bool) -> None:
        part = cast(CascadeRound, decision.cascade)
        outcome = cast(StageOutcomes, part.outcome)  # the route has put it there
        for index, propensity in self._known_to(decision):
            steps = found_losses(self.rules[index], outcome, self._terms.fair_loss)
            self._wealths[index].book(steps, propensity, decision.least_propensity)
        if charged:
            self._unbook(decision)
        if part.full:
            self.sample.add(outcome, 1.0 / part.full_propensity)
        self.threshold = self._wealths[self.active].threshold

    def _unbook(self, decision: Decision) -> None:
        for index, propensity in self._known_to(decision):
            self._wealths[index].unbook(charge_of(decision, index), propensity, decision.least_propensity)

    def _look(self) -> None:
        """Choose the rule in force, and find out what audits could save."""
        self._next_look = self.rounds + max(LOOK_EVERY, min(self.rounds // LOOK_SHARE, LONGEST_PAUSE))
        if len(self.sample) < FEWEST_ROUNDS:
            return
        weights = np.array(self.sample.weights)
        costs: dict[int, tuple[float, float, float]] = {}
        possible = math.inf
        for index, estimates in enumerate(self._estimates):
            estimates.follow(self.sample)
            threshold = self._wealths[index].threshold
            if threshold > 0.0:
                costs[index] = estimates.cost(weights, threshold)
            cost = estimates.possible(weights, self._terms.epsilon / self._terms.kept_share, threshold)
            if cost < possible:
                possible, self._promising = cost, index
        if not costs:
            return
        best = min(costs, key=lambda index: costs[index][0])
        if self.active not in costs or costs[best][0] < costs[self.active][0]:
            self.active = best
        cost, _, audit = costs[self.active]
        self.gain = max(cost - possible, 0.0) / audit if audit else math.inf
