"""The state of a route: a fold over its entries, and nothing else.

Nothing here checks anything: ``Router`` checks what callers hand in, ``rebuild`` what a journal says.
"""

import math
from collections import Counter
from typing import Any

from bpac.betting.bounds.certificate import Certificate, ServedLoss
from bpac.betting.drift.drift import Drift
from bpac.betting.ledgers.ledger import Account
from bpac.routing.bettors import ByArrival, SplitScores
from bpac.routing.decision import Decision
from bpac.routing.exploration.learned_rates import LearnedRates
from bpac.routing.journal.entries import Labelled, Resolved
from bpac.routing.rule import Rule
from bpac.routing.settings import Settings

CROWDED_OUT = "crowded out"
# Audits over which the share of those without a verdict is averaged.
SHARE_MEMORY = 100.0


class Route:
    """One betting game: its wealth, what it served, and the audits whose outcome is outstanding.

    Audits are charged as loss 1 when the next decision is made, not before: an outcome that comes
    at once then costs no detour. Nobody can tell, because a refund undoes its charge to the bit.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.terms = settings.terms
        self.floor = settings.exploration.floor
        # A refused audit counts as this loss at score 0: a weighted loss of ε/π at every threshold (MATH section 13).
        self.fair_loss = min(self.terms.epsilon / self.terms.kept_share, 1.0)
        self.rule = Rule(settings.explore == "shadow", settings.policy.certain_while_closed)
        self.score_names = settings.policy.score_names
        self.in_order = settings.policy.in_order
        self._commutes = settings.policy.commutes
        self._max_owed = settings.max_owed
        self.served = ServedLoss(self.terms, settings.alpha)
        self.step = 0
        self.labelled = 0
        self.expert_calls = 0
        self.drafts_served = 0
        self.outcomes = 0
        self.ticket_entries = 0
        self.withdrawals = 0
        self.refusals = 0
        self.commitments = 0
        self.forfeits: Counter[str] = Counter()
        self.forfeit_share = 0.0
        # The latest audit, as long as no later decision needs to know its outcome; the earlier ones
        # without an outcome, all charged; and those given up whose outcome would still be taken.
        self.uncharged: Decision | None = None
        self.owed: dict[int, Decision] = {}
        self.given_up: dict[int, Decision] = {}
        # Whether queries take tickets now; and the order of arrival, once they did.
        self.running = False
        self.by_arrival: ByArrival | None = None
        self.epoch = 0
        self._start_epoch()

    def _start_epoch(self) -> None:
        """Forget the wealth; what was decided before belongs to the old epoch."""
        settings = self.settings
        self.epoch += 1
        self.epoch_start = self.step
        self.game = settings.policy.start(self.terms, settings.alpha_of(self.epoch), self.served)
        self.rates = settings.exploration.start(self.terms)
        self._set_steady()
        # Rates that learn from the rounds follow them like the game does.
        self._learner = self.rates if isinstance(self.rates, LearnedRates) else None
        self._set_accounts(self.game)
        if self.by_arrival is not None:
            self._follow_arrivals()  # queries under way arrived in the old epoch: their rounds belong to it
        alarm = settings.policy.alarm
        self.drift = Drift(self.terms, alarm) if alarm else None

    def _set_accounts(self, player: Account[Decision]) -> None:
        """Set who is told of an outcome, in this order: what was served counts for ever, the rest in its epoch."""
        learners = (self._learner,) if self._learner is not None else ()
        self._player = player
        self._lasting: tuple[Account[Decision], ...] = (self.served,)
        self._accounts: tuple[Account[Decision], ...] = (self.served, player, *learners)

    def _set_steady(self) -> None:
        steady_after = self.rates.steady_after
        self.steady_after = math.inf if steady_after is None else self.epoch_start + steady_after

    @property
    def active_score(self) -> int:
        """Which of several scores decides next."""
        return self.game.active if isinstance(self.game, SplitScores) else 0

    @property
    def rate(self) -> float:
        """The exploration rate of a query that arrives now (ρ)."""
        step, drift = self.step + 1, self.drift
        rate = self.floor if step > self.steady_after else self.rates.rate(step - self.epoch_start)
        return rate if drift is None or rate >= drift.careful_rate else drift.careful_rate

    def decided(self, decision: Decision) -> None:
        """Apply a decision. ``charge`` must have been called before it was made."""
        # Taken apart once: looking up each field by name costs more than all the rest.
        self.step, uncertainty, threshold, _, least_propensity, call_expert, serve_draft, epoch, _, _, _ = decision
        if serve_draft:
            self.drafts_served += 1
        current = epoch == self.epoch
        if current:
            self._player.decided(decision)
            learner = self._learner
            if learner is not None:  # what its ``decided`` does, without the call
                recent = learner.recent
                recent.append(uncertainty)
                learner.audits += least_propensity
                if len(recent) >= learner.pause:
                    learner.look(threshold)
                    self._set_steady()
        if call_expert:
            self.expert_calls += 1
            self.uncharged = decision
            if len(self.owed) >= self._max_owed:
                # Give up on the oldest, so that a route's memory is bounded.
                self._give_up(self.owed[next(iter(self.owed))], CROWDED_OUT)
        elif self.drift is not None and current:
            drift, alarm = self.drift, self.drift.alarm
            if drift.stirred or alarm.least_propensity != least_propensity:
                drift.fade(least_propensity)
            else:
                alarm.quiet += 1  # what ``fade`` comes to in nearly every round

    def charge(self) -> None:
        """Count the latest audit as loss 1: its outcome did not come in time."""
        decision = self.uncharged
        if decision is None:
            return
        self.uncharged = None
        self.owed[decision.step] = decision
        for account in self._accounts if decision.epoch == self.epoch else self._lasting:
            account.charge(decision)

    def settle(self, decision: Decision, entry: Resolved) -> None:
        """Apply what the journal says about the outcome of an audit.

        Parameters
        ----------
        decision: the audit, as ``find`` returned it.
        entry: its outcome.
        """
        if entry.refused:
            self.refused(decision, entry.draft_served)
        elif entry.loss is not None:
            self.resolved(decision, entry.loss)
        else:
            self.forfeited(decision, entry.cause, entry.draft_served)

    def resolved(self, decision: Decision, loss: float) -> None:
        """Apply the outcome of an audit that is owed or given up."""
        self.outcomes += 1
        current, late = decision.epoch == self.epoch, decision.step in self.given_up
        if decision is self.uncharged:
            self.uncharged = None
            if loss > 0.0:
                for account in self._accounts if current else self._lasting:
                    account.resolve(decision, loss)
            elif current:
                self._player.resolve(decision, 0.0)  # the others have nothing to book
        else:
            self._close(decision)
            for account in self._accounts if current else self._lasting:
                account.refund(decision, loss)
        if not late:
            self._counted(decision, given_up=0.0)
        if current and self.drift is not None:
            if loss == 0.0 or decision.uncertainty >= decision.threshold:
                self.drift.fade(decision.least_propensity)
            else:
                self.drift.known(decision, loss, given_up=late)
                self._reset_if_rung(self.drift)

    def refused(self, decision: Decision, draft_served: bool) -> None:
        """The expert refused to answer: a fair round, which pays nothing on average at any threshold (MATH 13)."""
        self.outcomes += 1
        self.refusals += 1
        charged = decision is not self.uncharged
        if charged:
            self._close(decision)
        else:
            self.uncharged = None
        epsilon = self.terms.epsilon
        self.served.replace(decision, decision, epsilon, charged=charged)
        if draft_served:
            self.served.served_instead(epsilon)
        if decision.epoch != self.epoch:
            return
        instead = decision.at_zero()
        for account in self._accounts[1:]:
            account.replace(decision, instead, self.fair_loss, charged=charged)
        # Where every draft was audited the round pays exactly nothing.
        if self.drift is not None and decision.propensity < 1.0:
            self.drift.known(instead, self.fair_loss)
            self._reset_if_rung(self.drift)

    def forfeited(self, decision: Decision, cause: str, draft_served: bool) -> None:
        """Give up on the outcome of an owed audit: it keeps its charge."""
        self.outcomes += 1
        if draft_served:
            self.served.served_instead()
        self._give_up(decision, cause)

    def _give_up(self, decision: Decision, cause: str) -> None:
        self.charge()
        del self.owed[decision.step]
        self.forfeits[cause] += 1
        self._counted(decision, given_up=1.0)
        current = decision.epoch == self.epoch
        for account in self._accounts if current else self._lasting:
            account.forfeit(decision)
        if self._commutes:
            self.given_up[decision.step] = decision
            if len(self.given_up) > self._max_owed:
                del self.given_up[next(iter(self.given_up))]
        if current and self.drift is not None:
            self.drift.given_up(decision)

    def _close(self, decision: Decision) -> None:
        """Take a charged audit off the lists of those whose outcome would be taken."""
        self.charge()
        if self.owed.pop(decision.step, None) is None:
            del self.given_up[decision.step]

    def _counted(self, decision: Decision, given_up: float) -> None:
        """Follow the share of the audits of accepted drafts that have no verdict."""
        if decision.uncertainty < decision.threshold:
            self.forfeit_share += (given_up - self.forfeit_share) / SHARE_MEMORY

    def _reset_if_rung(self, drift: Drift) -> None:
        if drift.rings:
            self.charge()  # the latest audit belongs to the epoch that ends here
            self._start_epoch()

    def started(self) -> None:
        """Queries take tickets from here on; those under way before, if any, were cut off."""
        self.ticket_entries += 1
        self.charge()
        if self.by_arrival is None:
            self._follow_arrivals()
        elif self.running:
            self.by_arrival.cut_off()
        self.running = True

    def stopped(self) -> None:
        """No query is under way."""
        self.ticket_entries += 1
        self.running = False
        if self.by_arrival is not None:
            self.by_arrival.start()

    def withdrawn(self, number: int) -> None:
        """A ticket comes to no decision."""
        self.ticket_entries += 1
        self.withdrawals += 1
        self.charge()
        if self.by_arrival is not None:
            self.by_arrival.withdrawn(number)

    def overdue(self, number: int) -> None:
        """A ticket no longer holds up those behind it."""
        self.ticket_entries += 1
        self.charge()
        if self.by_arrival is not None:
            self.by_arrival.overdue(number)

    def _follow_arrivals(self) -> None:
        """Put the order of arrival between the rounds and the game."""
        policy = self.settings.policy
        if not policy.in_order:
            return
        self.by_arrival = ByArrival(
            self.game,
            self.terms,
            len(self.score_names),
            commutes=policy.commutes,
            weighs=policy.passes_over,
            most_held=self._max_owed,
        )
        self._set_accounts(self.by_arrival)

    def learned(self, row: Labelled) -> None:
        """Apply a row of history as a round."""
        self.labelled += 1
        self.epoch_start -= 1
        certain = row.propensity == 1.0 and row.least_propensity == 1.0
        closed = self.rule.decide(0, 0.0, 0.0, self.rates.rate(self.labelled), 0.0)
        decision = Decision(
            step=1 - self.labelled,  # steps below 1 are history's
            uncertainty=row.uncertainties[0],
            threshold=0.0,
            propensity=row.propensity,
            least_propensity=closed.least_propensity if certain else row.least_propensity,
            call_expert=row.loss is not None or row.refused,
            serve_draft=False,
            uncertainties=row.uncertainties if self.score_names else (),
        )
        for account in self._accounts[1:]:  # nothing was served
            account.decided(decision)
            if row.refused:
                account.replace(decision, decision.at_zero(), self.fair_loss, charged=False)
            elif row.loss is not None:
                account.resolve(decision, row.loss)
        self._set_steady()

    def committed(self) -> None:
        """Take note of a commitment to the coins to come: it changes nothing but the number of entries."""
        self.commitments += 1

    @property
    def entries(self) -> int:
        """How many entries of a journal this state comes from."""
        return 1 + self.labelled + self.step + self.outcomes + self.ticket_entries + self.commitments

    def find(self, step: int) -> Decision | None:
        """The audit of that step, if its outcome would still be taken."""
        if self.uncharged is not None and self.uncharged.step == step:
            return self.uncharged
        return self.owed.get(step) or self.given_up.get(step)

    def certificate(self) -> Certificate:
        """Bounds on the loss served so far."""
        self.charge()
        return self.served.certificate(self.step, self.drafts_served)

    def state(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        self.charge()
        return {
            "step": self.step,
            "labelled": self.labelled,
            "expert_calls": self.expert_calls,
            "drafts_served": self.drafts_served,
            "outcomes": self.outcomes,
            "ticket_entries": self.ticket_entries,
            "withdrawals": self.withdrawals,
            "refusals": self.refusals,
            "commitments": self.commitments,
            "forfeits": dict(self.forfeits),
            "forfeit_share": self.forfeit_share,
            "owed": [list(decision) for decision in self.owed.values()],
            "given_up": [list(decision) for decision in self.given_up.values()],
            "running": self.running,
            "by_arrival": self.by_arrival.state() if self.by_arrival else None,
            "epoch": self.epoch,
            "epoch_start": self.epoch_start,
            "game": self.game.state(),
            "learner": self._learner.state() if self._learner else None,
            "drift": self.drift.state() if self.drift else None,
            "served": self.served.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.epoch = state["epoch"] - 1
        self._start_epoch()
        for name in (
            *("step", "labelled", "expert_calls", "drafts_served", "outcomes", "ticket_entries", "commitments"),
            *("withdrawals", "refusals", "forfeit_share", "epoch_start", "running"),
        ):
            setattr(self, name, state[name])
        self.forfeits = Counter(state["forfeits"])
        self.owed = {decision.step: decision for decision in map(Decision.from_list, state["owed"])}
        self.given_up = {decision.step: decision for decision in map(Decision.from_list, state["given_up"])}
        if state["by_arrival"] is not None:
            self._follow_arrivals()
        if self.by_arrival is not None:
            self.by_arrival.load(state["by_arrival"])
        self.served.load(state["served"])
        self.game.load(state["game"])
        if self._learner:
            self._learner.load(state["learner"])
        self._set_steady()
        if self.drift:
            self.drift.load(state["drift"])
