"""May the new model replace the old one? The answer at this moment, which is valid whenever it is asked for.

Drafts are the new model's answers, and the expert is the old model. Every draft is equally sure (a score of 0), so that
the only thresholds are "nothing" and "everything".

1. *Yes* if everything is certified: the bet that the loss per request is at most ε has reached 1/α.
2. *No* if a lower bound on the mean loss is above what ε allows. Both bets are on the same audits, and each answer is
   wrong at any time with probability at most α. Should both hold, the answer is no.
3. *Not yet* otherwise, with an estimate of how many more requests it takes if the loss stays as it is.

The loss per request is ``κ · E[l]``: where audits are served by the old model, a share ``1 − κ`` of the requests loses
nothing. So ε allows a mean loss of ``ε/κ``; in the shadow, and after the old model is gone, κ is 1.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bpac.betting.bounds.mean_loss import FROM_BELOW
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router
from bpac.routing.switching.evidence import SwitchEvidence

Answer = Literal["yes", "not_yet", "no"]


@dataclass(frozen=True, slots=True)
class SwitchVerdict:
    """Whether the new model may replace the old one.

    Parameters
    ----------
    answer: ``yes``, ``not_yet`` or ``no``.
    epsilon, alpha: the loss per request that is allowed, and the probability with which each answer may be wrong.
    allowed: the mean loss of the new model that ε allows while audits go on.
    estimate: mean loss of the audits so far; none before the first.
    at_least, at_most: bounds on the mean loss, each valid at all times with the confidence.
    confidence: of each bound.
    rounds: requests since the last drift alarm.
    audits: those whose loss is known.
    unknown: audits whose loss has not come or will not come: they count as no loss in ``at_least`` and as 1 in
        ``at_most``.
    more: how many more audits an answer is likely to take if the loss stays as it is; none if there is one already,
        or if none is in sight.
    epoch: number of the epoch: 1 plus the number of resets by the drift alarm.
    """

    answer: Answer
    epsilon: float
    alpha: float
    allowed: float
    estimate: float | None
    at_least: float
    at_most: float
    confidence: float
    rounds: int
    audits: int
    unknown: int
    more: int | None
    epoch: int

    @property
    def text(self) -> str:
        """The answer in one sentence."""
        sure = f"{self.confidence:.1%} confidence"
        if self.answer == "yes":
            going_on = "" if self.allowed == self.epsilon else f", and at most {self.epsilon:.2%} while audits go on"
            return f"yes: its average loss is at most {self.allowed:.2%}{going_on} ({sure}; {self.audits:,} audits)"
        if self.answer == "no":
            found = f"its average loss is at least {self.at_least:.2%}, and {self.allowed:.2%} is allowed"
            return f"no: {found} ({sure}; estimated {self.estimate or 0.0:.2%} from {self.audits:,} audits)"
        between = (
            f"its average loss is between {self.at_least:.2%} and {self.at_most:.2%}, and {self.allowed:.2%} is allowed"
        )
        so_far = "none has a loss" if self.estimate is None else "the loss stays as it is"
        more = "" if self.more is None else f"; about {self.more:,} more audits if {so_far}"
        return f"not yet: {between} ({sure} each; {self.audits:,} audits){more}"

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self) | {"text": self.text}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "SwitchVerdict":
        """What ``to_json`` wrote."""
        return cls(**{name: value for name, value in values.items() if name != "text"})


def switch_verdict(router: Router, evidence: SwitchEvidence) -> SwitchVerdict:
    """The verdict at this moment.

    Parameters
    ----------
    router: the router of the game, in which every draft has the score 0.
    evidence: from all entries of its journal.

    >>> evidence = SwitchEvidence()
    >>> router = Router(epsilon=0.1, journal=evidence.follow, seed=1)
    >>> switch_verdict(router, evidence).answer
    'not_yet'
    >>> for _ in range(100):
    ...     decision = router.decide(0.0)
    ...     if decision.call_expert:
    ...         router.observe(decision, 0.0)
    >>> switch_verdict(router, evidence).answer
    'yes'
    """
    settings = router.settings
    # A drift alarm may have reset the router after the latest decision, which the evidence is still about.
    known = evidence if evidence.epoch == router.epoch else SwitchEvidence()
    level = settings.alpha_of(router.epoch)
    allowed = min(settings.epsilon / settings.terms.kept_share, 1.0)
    at_least, at_most = known.loss.at_least(level), known.loss.at_most(level)
    answer: Answer = "not_yet"
    if at_least > allowed:
        answer = "no"
    elif router.threshold > 0.0:
        answer = "yes"
    return SwitchVerdict(
        answer=answer,
        epsilon=settings.epsilon,
        alpha=settings.alpha,
        allowed=allowed,
        estimate=known.estimate,
        at_least=at_least,
        at_most=max(at_least, at_most),
        confidence=1.0 - level,
        rounds=known.loss.rounds,
        audits=known.audits,
        unknown=known.unknown + known.forfeits,
        more=_more(router, known, allowed, level) if answer == "not_yet" else None,
        epoch=router.epoch,
    )


def _more(router: Router, evidence: SwitchEvidence, allowed: float, level: float) -> int | None:
    """The number of further requests until an answer, if each is audited and loses as those before."""
    loss, policy = evidence.estimate or 0.0, router.settings.policy
    if loss <= allowed and isinstance(policy, Portfolio):
        terms = router.settings.terms
        bound = terms.payoff_bound(1.0)
        win, lose = terms.epsilon / bound, terms.payoff(1.0, 1.0) / bound
        growths = [_growth(loss, 1.0 + stake * win, 1.0 + stake * lose) for stake in policy.stakes.fractions]
        weights, money = policy.stakes.weights, router.log_wealth(1.0)
    else:
        growths = [_growth(loss, 1.0 - stake, 1.0 + stake * (1.0 / allowed - 1.0)) for stake in FROM_BELOW]
        weights, money = (), evidence.loss.log_money_below(allowed)
    if max(growths) <= 0.0:
        return None
    shares = weights or (1.0 / len(growths),) * len(growths)
    return max(1, math.ceil(_rounds(-math.log(level), growths, shares) - _rounds(money, growths, shares)))


def _rounds(log_money: float, growths: Sequence[float], shares: Sequence[float]) -> float:
    """After how many audits gamblers who grow at these rates, from these shares, have the money together.

    Below what they begin with, the number is negative: as many as the fastest one takes to win it back.
    """
    fastest = max(growths)
    if log_money <= 0.0:
        return log_money / fastest
    low, high = 0.0, (log_money - math.log(shares[growths.index(fastest)])) / fastest
    for _ in range(50):
        middle = (low + high) / 2.0
        together = sum(share * math.exp(growth * middle) for share, growth in zip(shares, growths, strict=True))
        low, high = (middle, high) if math.log(together) < log_money else (low, middle)
    return high


def _growth(loss: float, without: float, with_loss: float) -> float:
    """How fast the logarithm of the money grows per audit if losses are 1 with the probability ``loss``, and else 0."""
    return (1.0 - loss) * math.log(without) + loss * math.log(with_loss)
