"""The bettor that keeps the actual average loss below ε."""

from typing import Any

from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.ledgers.ledger import Round
from bpac.betting.ledgers.weighted_losses import WeightedLosses
from bpac.betting.payoff import Terms
from bpac.routing.bettors.sums import SumBettor


class BudgetBettor(SumBettor):
    """Budget (MATH section 7): no threshold unless the certificate has room, then up to twice the slack above ε.

    Parameters
    ----------
    losses: the sums; labelled history counts here, because it helps to choose the threshold.
    terms: the terms of the bets.
    served: the certificate. The budget grows with live rounds only.
    first: rounds before the first draft may be kept.
    """

    def __init__(self, losses: WeightedLosses, terms: Terms, served: ServedLoss, first: int) -> None:
        super().__init__(losses, self._allowance)
        self._terms = terms
        self._served = served
        self._first = first
        self._live = 0

    def decided(self, decision: Round) -> None:
        """Count the round; steps below 1 are labelled history."""
        self._live += decision.step > 0
        super().decided(decision)

    def forfeit(self, decision: Round) -> None:
        """Leave the charge where it is; a draft served in the expert's place has used up budget."""
        self._move()

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return super().state() | {"live": self._live}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        super().load(state)
        self._live = state["live"]

    @property
    def has_room(self) -> bool:
        """Whether a draft may be kept in the next round."""
        return self.needs(0) <= self._terms.epsilon * (self._live + 1)

    def needs(self, audits: int) -> float:
        """A draft may be kept in round t if ``ε·t`` is at least this, after so many more audits without an outcome.

        A kept draft does not move the bound. An audit moves it most if it has the least propensity and a loss of 1.
        """
        # With shadow audits this round's own loss may be served *and* seen, which moves the bound after
        # the decision; keeping room for it is what makes the average hold at every round.
        own_loss = 1.0 if self._terms.shadow else 0.0
        bound = self._served.upper_after(audits, self._terms.floor) if audits else self._served.upper()
        return bound + own_loss

    def _allowance(self, rounds: int) -> float:
        epsilon, live, bound = self._terms.epsilon, self._live, self._served.upper()
        if rounds < self._first or not self.has_room:
            return -1.0
        slack = (epsilon * live - bound) / max(live, 1)
        return rounds * (epsilon + 2.0 * slack) - self._terms.kept_share / 2.0
