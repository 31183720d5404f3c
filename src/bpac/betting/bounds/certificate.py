"""Bounds on the loss of the drafts that were served, which is never seen (MATH section 7).

1. Given the past, the query and its loss, only the coin is random. ``S`` is the sum of the losses ``l`` of the drafts
   that were served. For each rate η, ``exp(η S)`` times a factor for each audit by coin is a martingale with mean 1.
2. The same holds for ``l − g`` with any guess ``g`` that is made before the coin. The guesses of the drafts that were
   served are known, so that only the sum of the rest is bounded. Then audits *without* loss count, too: they show that
   the guess was too high. The guess is a constant here. Guesses by score, learned from all audits, are no better,
   because losses of drafts that are accepted are rare whatever their score (``bpac reproduce certificate``).
3. No rate is the best for all lengths of a stream. A mixture of martingales is a martingale, and nearly as good as its
   best part: many rates near the best one for some ten losses seen, and a few small ones for streams without end.
4. How much better could it be? With losses of 0 or 1, a factor is given by its values for a kept draft with and without
   loss, which are a rate and a guess. A mixture is never above its best part, so no choice of weights gives a bound
   below that of the best rate, which is known in hindsight only (``best_upper``). It is shown beside the bound.
"""

import math
from dataclasses import dataclass
from typing import Any

from bpac.betting.bounds.mixtures import LARGEST_GUESS, RATE_MIXTURES, CertificateKind, LowerBound, UpperBound
from bpac.betting.ledgers.ledger import Round
from bpac.betting.payoff import Terms


@dataclass(frozen=True, slots=True)
class Certificate:
    """Bounds on the loss served so far, valid at all times at once.

    Parameters
    ----------
    rounds: queries answered so far.
    lower, upper: bounds on the sum of the losses of the drafts that were served.
    confidence: each of the two bounds holds at all times with at least this probability.
    """

    rounds: int
    lower: float
    upper: float
    confidence: float

    @property
    def average_upper(self) -> float:
        """The average loss over all rounds is at most this."""
        return self.upper / self.rounds if self.rounds else 0.0

    @property
    def average_lower(self) -> float:
        """The average loss over all rounds is at least this."""
        return self.lower / self.rounds if self.rounds else 0.0

    def __str__(self) -> str:
        return (
            f"served loss ≤ {self.average_upper:.2%} with {self.confidence:.0%} confidence after {self.rounds} rounds"
        )


class ServedLoss:
    """Follows the audits of a route and bounds the loss of the drafts it served.

    Given the past, the query and its loss, only the coin is random. So the bounds hold on any
    stream, drifting and hostile ones included.

    Parameters
    ----------
    terms: the terms of the bets; without exploration only trivial bounds exist.
    alpha: chance of failure of each bound.
    kind: ``plain``: four rates and no guess (MATH section 7), or ``sharp``: more rates, and a guess of 2ε.
    """

    __slots__ = (
        "_alpha",
        "_guess",
        "_log_bar",
        "_lower",
        "_solved_lower",
        "_solved_upper",
        "_uncovered",
        "_upper",
        "kept",
    )

    def __init__(self, terms: Terms, alpha: float, kind: CertificateKind = "plain") -> None:
        self._alpha = alpha
        self._log_bar = -math.log(alpha)
        mixture = RATE_MIXTURES[kind]
        self._guess = min(mixture.guess * terms.epsilon, LARGEST_GUESS)
        # Drafts served because the coin did not call the expert; the route counts them.
        self.kept = 0
        explores = terms.floor > 0.0
        self._upper = UpperBound(terms, mixture, self._guess, sign=1) if explores else None
        self._lower = LowerBound(terms, mixture, self._guess, sign=-1) if explores else None
        self._uncovered = 0.0
        # The bounds before uncovered losses, until something changes them.
        self._solved_upper: float | None = None
        self._solved_lower: float | None = None

    def served_instead(self, loss: float = 1.0) -> None:
        """A draft was served in place of an expert that failed or refused: no coin covers it, so it counts in full."""
        self._uncovered += loss

    def audited(self, propensity: float) -> None:
        """Book an audit by coin, before its outcome is known; what it loses is booked on top of it."""
        if self._guess and self._upper and self._lower:  # without a guess an audit without loss changes nothing
            self._upper.audited(propensity)
            self._lower.audited(propensity)
            self._solved_upper = self._solved_lower = None

    def resolve(self, decision: Round, loss: float) -> None:
        """Book the loss of an audit that was not charged."""
        # Without a coin, or without a loss, nothing changes.
        if self._upper and self._lower and loss > 0.0 and decision.propensity < 1.0:
            self._upper.resolve(decision, loss)
            self._lower.resolve(decision, loss)
            self._solved_upper = self._solved_lower = None

    def charge(self, decision: Round) -> None:
        """Count an unresolved audit as loss 1 for the upper bound."""
        if self._upper and decision.propensity < 1.0:
            self._upper.charge(decision)
            self._solved_upper = None

    def refund(self, decision: Round, loss: float) -> None:
        """Replace the charge by the true loss."""
        if self._upper and self._lower and decision.propensity < 1.0:
            self._upper.refund(decision, loss)
            self._lower.refund(decision, loss)
            self._solved_upper = self._solved_lower = None

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Book the loss of the other round instead of the charge."""
        if charged:
            self.refund(decision, loss)
        else:
            self.resolve(decision, loss)

    def decided(self, decision: Round) -> None:
        """Nothing: only audits carry information."""

    def forfeit(self, decision: Round) -> None:
        """Leave the charge where it is."""

    def upper(self) -> float:
        """An upper bound on the loss served so far, and on what this round's coin may add to it."""
        if self._solved_upper is None:
            self._solved_upper = self._upper.bound(self._log_bar) if self._upper else math.inf
        return self._solved_upper + self._guess * self.kept + self._uncovered

    def upper_after(self, audits: int, propensity: float) -> float:
        """What the upper bound would be after so many more audits by coin without an outcome.

        Parameters
        ----------
        audits: how many.
        propensity: the least with which any of them was made.
        """
        solved = self._upper.bound_after(audits, propensity, self._log_bar) if self._upper else math.inf
        return solved + self._guess * self.kept + self._uncovered

    def certificate(self, rounds: int, kept: int) -> Certificate:
        """Both bounds as a value.

        Parameters
        ----------
        rounds: queries answered so far.
        kept: drafts served so far because the coin did not call the expert.
        """
        self.kept = kept
        upper = self.upper()
        if self._solved_lower is None:
            self._solved_lower = self._lower.bound(self._log_bar) if self._lower else -math.inf
        return Certificate(
            rounds=rounds,
            lower=max(0.0, self._solved_lower + self._guess * kept),
            upper=min(upper, kept + self._uncovered),
            confidence=1.0 - self._alpha,
        )

    def best_upper(self, kept: int) -> float:
        """What the upper bound would be if the best of its rates had been known before the first round.

        It is no bound, because it is known afterwards only; but no weights of the rates give a bound below it.

        Parameters
        ----------
        kept: drafts served so far because the coin did not call the expert.
        """
        best = self._upper.best(self._log_bar) + self._guess * kept if self._upper else math.inf
        return min(best, kept) + self._uncovered

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {
            "uncovered": self._uncovered,
            "upper": self._upper.logs if self._upper else None,
            "lower": self._lower.logs if self._lower else None,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._uncovered = state["uncovered"]
        if self._upper and self._lower:
            self._upper.logs, self._lower.logs = list(state["upper"]), list(state["lower"])
        self._solved_upper = self._solved_lower = None
