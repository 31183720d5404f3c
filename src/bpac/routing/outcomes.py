"""The outcomes of audits: owed, charged, reported, refunded, given up.

1. An audit without an outcome is *owed*. It counts as loss 1 from the next decision on (``charge``); an outcome that is
   reported before that is booked directly. A refund undoes its charge exactly, so that both lead to the same state.
2. An audit may be *given up*: it keeps its charge. Where outcomes are sums, a loss that is reported later still counts.
3. What was served counts permanently. Everything else belongs to the current epoch, and is reset by the drift alarm.
"""

from collections import Counter
from typing import cast

from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.bounds.mixtures import CertificateKind
from bpac.betting.drift.drift import Drift
from bpac.betting.ledgers.ledger import Account
from bpac.routing.cascade.rounds import StageOutcomes
from bpac.routing.decision import Decision
from bpac.routing.epoch import NOTHING_EXPECTED, Epoch
from bpac.routing.journal.entries import Resolved
from bpac.routing.learning.learning import Learning
from bpac.routing.settings import Settings

# Audits over which the share of those without a verdict is averaged.
SHARE_MEMORY = 100.0


class Outcomes:
    """The part of a route that is about outcomes; ``Route`` adds the decisions.

    Parameters
    ----------
    settings: the settings of the router.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.terms = settings.terms
        self._commutes = settings.policy.commutes
        self._max_owed = settings.max_owed
        self.served = ServedLoss(self.terms, settings.alpha, cast(CertificateKind, settings.certificate))
        self._lasting: tuple[Account[Decision], ...] = (self.served,)
        self.current = Epoch(settings, self.terms, self.served, number=1, start=0)
        self.expected = NOTHING_EXPECTED
        learned = settings.policy.learned
        self.learning = Learning(learned, settings.epsilon) if learned is not None else None
        self.step = 0
        self.outcomes = 0
        self.refusals = 0
        self.forfeits: Counter[str] = Counter()
        self.forfeit_share = 0.0
        # The latest audit, as long as no later decision needs to know its outcome; the earlier ones
        # without an outcome, all charged; and those given up whose outcome would still be taken.
        self.uncharged: Decision | None = None
        self.owed: dict[int, Decision] = {}
        self.given_up: dict[int, Decision] = {}

    def find(self, step: int) -> Decision | None:
        """The audit of that step, if its outcome would still be taken."""
        if self.uncharged is not None and self.uncharged.step == step:
            return self.uncharged
        return self.owed.get(step) or self.given_up.get(step)

    def charge(self) -> None:
        """Count the latest audit as loss 1: its outcome did not come in time."""
        decision = self.uncharged
        if decision is None:
            return
        self.uncharged = None
        self.owed[decision.step] = decision
        for account in self._accounts(decision):
            account.charge(decision)

    def settle(self, decision: Decision, entry: Resolved) -> None:
        """Apply what the journal says about the outcome of an audit.

        Parameters
        ----------
        decision: the audit, as ``find`` returned it.
        entry: its outcome.
        """
        if entry.refused:
            self._refused(decision, entry.draft_served)
        elif entry.stages is not None:
            self._stages_known(decision, entry.stages, entry.loss or 0.0)
        elif entry.loss is not None:
            self.resolved(decision, entry.loss)
        else:
            self.outcomes += 1
            if entry.draft_served:
                self.served.served_instead()
            self.give_up(decision, entry.cause)

    def resolved(self, decision: Decision, loss: float) -> None:
        """Apply the loss of an audit that is owed or given up."""
        self.outcomes += 1
        epoch, late = self.current, False
        current = decision[7] == epoch.number
        if self.learning is not None and current and self.learning.wants_more:
            self.learning.observed(decision, loss)
        if decision is self.uncharged:
            self.uncharged = None
            if loss > 0.0:
                for account in epoch.accounts if current else self._lasting:
                    account.resolve(decision, loss)
            elif current:
                epoch.receiver.resolve(decision, 0.0)  # the others have nothing to book
        else:
            late = decision.step in self.given_up
            self._close(decision)
            for account in epoch.accounts if current else self._lasting:
                account.refund(decision, loss)
        if self.forfeit_share and decision.uncertainty < decision.threshold and not late:
            self.forfeit_share -= self.forfeit_share / SHARE_MEMORY
        if current and epoch.drift is not None:
            self._watch(epoch.drift, decision, loss, late)

    def _stages_known(self, decision: Decision, stages: StageOutcomes, loss: float) -> None:
        """Apply what an audit of a cascade found.

        Parameters
        ----------
        decision: the audit.
        stages: the answers and losses of all models that were asked.
        loss: loss of the answer that was accepted; 0 if none was.
        """
        self.outcomes += 1
        epoch, late = self.current, decision.step in self.given_up
        charged = decision is not self.uncharged
        if charged:
            self._close(decision)
            self.served.refund(decision, loss)
        else:
            self.uncharged = None
            self.served.resolve(decision, loss)
        accepted = decision.uncertainty < decision.threshold
        if accepted and not late and self.forfeit_share:
            self.forfeit_share -= self.forfeit_share / SHARE_MEMORY
        if decision.epoch != epoch.number or decision.cascade is None:
            return
        known = decision._replace(cascade=decision.cascade._replace(outcome=stages))
        worst = max((found for found in stages.losses if found is not None), default=0.0)
        if charged:
            epoch.receiver.refund(known, worst)
        else:
            epoch.receiver.resolve(known, worst)
        if epoch.drift is not None:
            self._watch(epoch.drift, decision, loss, late)
        epoch.set_rate(self.step)

    def _watch(self, drift: Drift, decision: Decision, loss: float, late: bool) -> None:
        """Let the drift alarm see an outcome of the current epoch."""
        if loss > 0.0 and decision.uncertainty < decision.threshold:
            drift.known(decision, loss, given_up=late)
            self._heed(drift)
            return
        raised = drift.raised
        drift.fade(decision.least_propensity)
        if raised:
            self.current.set_rate(self.step)

    def _refused(self, decision: Decision, draft_served: bool) -> None:
        """The expert refused to answer: a fair round, which pays nothing on average at any threshold (MATH 13)."""
        self.outcomes += 1
        self.refusals += 1
        charged = decision is not self.uncharged
        if charged:
            self._close(decision)
        else:
            self.uncharged = None
        epsilon, fair_loss, epoch = self.terms.epsilon, self.terms.fair_loss, self.current
        self.served.replace(decision, decision, epsilon, charged=charged)
        if draft_served:
            self.served.served_instead(epsilon)
        if decision.epoch != epoch.number:
            return
        instead = decision.at_zero()
        for account in epoch.accounts[1:]:
            account.replace(decision, instead, fair_loss, charged=charged)
        # Where every draft was audited the round pays exactly nothing.
        if epoch.drift is not None and decision.propensity < 1.0:
            epoch.drift.known(instead, fair_loss)
            self._heed(epoch.drift)

    def give_up(self, decision: Decision, cause: str) -> None:
        """Give up on the outcome of an owed audit: it keeps its charge."""
        self.charge()
        del self.owed[decision.step]
        self.forfeits[cause] += 1
        if decision.uncertainty < decision.threshold:
            self.forfeit_share += (1.0 - self.forfeit_share) / SHARE_MEMORY
        for account in self._accounts(decision):
            account.forfeit(decision)
        if self._commutes:
            self.given_up[decision.step] = decision
            if len(self.given_up) > self._max_owed:
                del self.given_up[next(iter(self.given_up))]
        epoch = self.current
        if self.learning is not None and decision.epoch == epoch.number and self.learning.wants_more:
            self.learning.observed(decision, 1.0)  # as it counts in the wealth
        if decision.epoch == epoch.number and epoch.drift is not None:
            epoch.drift.given_up(decision)
            epoch.set_rate(self.step)

    def _accounts(self, decision: Decision) -> tuple[Account[Decision], ...]:
        """The accounts that follow a round: what was served counts permanently, the rest in its epoch."""
        return self.current.accounts if decision.epoch == self.current.number else self._lasting

    def _close(self, decision: Decision) -> None:
        """Take a charged audit off the lists of those whose outcome would be taken."""
        self.charge()
        if self.owed.pop(decision.step, None) is None:
            del self.given_up[decision.step]

    def _heed(self, drift: Drift) -> None:
        """Start a new epoch if the alarm rings; if not, use the rate that it asks for."""
        old = self.current
        if drift.rings:
            self.charge()  # the latest audit belongs to the epoch that ends here
            self.current = Epoch(
                self.settings, self.terms, self.served, old.number + 1, self.step, expected=self.expected
            )
            if self.learning is not None:
                self.learning.start_epoch()
            if old.by_arrival is not None:
                self.current.follow_arrivals()  # queries under way arrived in the old epoch: their rounds belong to it
        else:
            old.set_rate(self.step)
