"""The state of a route: a fold over its entries, and nothing else.

Nothing here checks anything: ``Router`` checks what callers hand in, ``rebuild`` what a journal says.
"""

import math
from collections import Counter
from typing import Any

from bpac.betting.alarm import DriftAlarm
from bpac.betting.certificate import Certificate, ServedLoss
from bpac.betting.ledger import Account
from bpac.routing.decision import Decision
from bpac.routing.games import SplitScores
from bpac.routing.journal import Labelled
from bpac.routing.learnt_rates import LearntRates
from bpac.routing.settings import Settings

CROWDED_OUT = "crowded out"


class Route:
    """One betting game: its wealth, what it served, and the audits whose outcome is outstanding.

    Audits are charged as loss 1 when the next decision is made, not before: an outcome that comes
    at once then costs no detour. Nobody can tell, because a refund undoes its charge to the bit.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.terms = settings.terms
        self.floor = settings.exploration.floor
        self.shadow = settings.explore == "shadow"
        self.score_names = settings.policy.score_names
        self.certain_while_closed = settings.policy.certain_while_closed
        self._commutes = settings.policy.commutes
        self._max_owed = settings.max_owed
        self.served = ServedLoss(self.terms, settings.alpha)
        self.step = 0
        self.labelled = 0
        self.expert_calls = 0
        self.drafts_served = 0
        self.outcomes = 0
        self.commitments = 0
        self.forfeits: Counter[str] = Counter()
        # The latest audit, as long as no later decision needs to know its outcome; the earlier ones
        # without an outcome, all charged; and those given up whose outcome would still be taken.
        self.uncharged: Decision | None = None
        self.owed: dict[int, Decision] = {}
        self.given_up: dict[int, Decision] = {}
        self.epoch = 0
        self._start_epoch()

    def _start_epoch(self) -> None:
        """Forget the wealth; what was decided before belongs to the old epoch."""
        settings = self.settings
        self.epoch += 1
        self.epoch_start = self.step
        alpha = settings.alpha
        if settings.alpha_epochs == "all":
            alpha *= 6.0 / (math.pi * self.epoch) ** 2
        self.game = settings.policy.start(self.terms, alpha, self.served)
        self.rates = settings.exploration.start(self.terms)
        self._set_steady()
        # Rates that learn from the rounds follow them like the game does.
        self._learner = self.rates if isinstance(self.rates, LearntRates) else None
        learners = (self._learner,) if self._learner is not None else ()
        # Who is told of an outcome, in this order: what was served counts for ever, the rest in its epoch.
        self._lasting: tuple[Account, ...] = (self.served,)
        self._accounts: tuple[Account, ...] = (self.served, self.game, *learners)
        alarm = settings.policy.alarm
        self.alarm = DriftAlarm(self.terms, alarm) if alarm else None

    def _set_steady(self) -> None:
        steady_after = self.rates.steady_after
        self.steady_after = math.inf if steady_after is None else self.epoch_start + steady_after

    @property
    def active_score(self) -> int:
        """Which of several scores decides next."""
        return self.game.active if isinstance(self.game, SplitScores) else 0

    def decided(self, decision: Decision) -> None:
        """Apply a decision. ``charge`` must have been called before it was made."""
        # Taken apart once: looking up each field by name costs more than all the rest.
        self.step, uncertainty, threshold, _, least_propensity, call_expert, serve_draft, _, _ = decision
        self.game.decided(decision)
        learner = self._learner
        if learner is not None:  # what its ``decided`` does, without the call
            recent = learner.recent
            recent.append(uncertainty)
            learner.audits += least_propensity
            if len(recent) >= learner.pause:
                learner.look(threshold)
                self._set_steady()
        if serve_draft:
            self.drafts_served += 1
        if call_expert:
            self.expert_calls += 1
            self.uncharged = decision
            if len(self.owed) >= self._max_owed:
                # Give up on the oldest, so that a route's memory is bounded.
                self._give_up(self.owed[next(iter(self.owed))], CROWDED_OUT)
        elif self.alarm is not None:
            alarm = self.alarm
            if alarm.careful_rate or alarm.least_propensity != least_propensity:
                alarm.fade(least_propensity)
            else:
                alarm.quiet += 1  # what ``fade`` comes to in nearly every round

    def charge(self) -> None:
        """Count the latest audit as loss 1: its outcome did not come in time."""
        decision = self.uncharged
        if decision is None:
            return
        self.uncharged = None
        self.owed[decision.step] = decision
        for account in self._accounts:
            account.charge(decision)

    def resolved(self, decision: Decision, loss: float) -> None:
        """Apply the outcome of an audit that is owed or given up."""
        self.outcomes += 1
        current = news = True
        if decision is self.uncharged:
            # It is of this epoch: whatever begins a new one charges the latest audit first.
            self.uncharged = None
            if loss > 0.0:
                for account in self._accounts:
                    account.resolve(decision, loss)
            else:
                self.game.resolve(decision, 0.0)  # the others have nothing to book
        else:
            self.charge()
            current = decision.epoch == self.epoch
            news = self.owed.pop(decision.step, None) is not None
            if not news:
                del self.given_up[decision.step]
            for account in self._accounts if current else self._lasting:
                account.refund(decision, loss)
        if current and news and self.alarm is not None:
            if loss == 0.0 or decision.uncertainty >= decision.threshold:
                self.alarm.fade(decision.least_propensity)
            else:
                self._sound(self.alarm, decision, loss)

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
        current = decision.epoch == self.epoch
        for account in self._accounts if current else self._lasting:
            account.forfeit(decision)
        if self._commutes:
            self.given_up[decision.step] = decision
            if len(self.given_up) > self._max_owed:
                del self.given_up[next(iter(self.given_up))]
        if current and self.alarm is not None:
            self._sound(self.alarm, decision, 1.0)

    def learned(self, row: Labelled) -> None:
        """Apply a row of labelled history: a round in which every query went to the expert."""
        self.labelled += 1
        self.epoch_start -= 1
        decision = Decision(
            step=1 - self.labelled,  # steps below 1 are history's
            uncertainty=row.uncertainties[0],
            threshold=0.0,
            propensity=1.0,
            least_propensity=1.0 if self.certain_while_closed else self.rates.rate(self.labelled),
            call_expert=True,
            serve_draft=False,
            uncertainties=row.uncertainties if self.score_names else (),
        )
        for account in self._accounts[1:]:  # nothing was served
            account.decided(decision)
            account.resolve(decision, row.loss)
        self._set_steady()

    def committed(self) -> None:
        """Take note of a commitment to the coins to come: it changes nothing but the number of entries."""
        self.commitments += 1

    @property
    def entries(self) -> int:
        """How many entries of a journal this state comes from."""
        return 1 + self.labelled + self.step + self.outcomes + self.commitments

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
            "commitments": self.commitments,
            "forfeits": dict(self.forfeits),
            "owed": [list(decision) for decision in self.owed.values()],
            "given_up": [list(decision) for decision in self.given_up.values()],
            "epoch": self.epoch,
            "epoch_start": self.epoch_start,
            "game": self.game.state(),
            "learner": self._learner.state() if self._learner else None,
            "alarm": self.alarm.state() if self.alarm else None,
            "served": self.served.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.epoch = state["epoch"] - 1
        self._start_epoch()
        self.step, self.labelled = state["step"], state["labelled"]
        self.expert_calls, self.drafts_served = state["expert_calls"], state["drafts_served"]
        self.outcomes, self.commitments = state["outcomes"], state["commitments"]
        self.forfeits = Counter(state["forfeits"])
        self.owed = {decision.step: decision for decision in map(Decision.from_list, state["owed"])}
        self.given_up = {decision.step: decision for decision in map(Decision.from_list, state["given_up"])}
        self.epoch_start = state["epoch_start"]
        self.served.load(state["served"])
        self.game.load(state["game"])
        if self._learner:
            self._learner.load(state["learner"])
        self._set_steady()
        if self.alarm:
            self.alarm.load(state["alarm"])

    def _sound(self, alarm: DriftAlarm, decision: Decision, loss: float) -> None:
        """Tell the alarm what came of an audit of this epoch."""
        alarm.known(decision, loss)
        if alarm.rings:
            self._start_epoch()
