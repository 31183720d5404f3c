"""A bettor for scores that join on the way (MATH section 14)."""

from collections.abc import Callable
from typing import Any

from bpac.betting.ledgers.ledger import Round
from bpac.betting.wealth.portfolio import PortfolioWealth


class Candidates:
    """One wealth per score, each with its share of α; the one that accepts most of the latest traffic is in force.

    A score that joins starts from a wealth of 1 and sees the rounds that carry it, and no others: those whose queries
    arrived after it had joined.

    Parameters
    ----------
    start: makes the wealth of a score, given its index.
    """

    MEMORY = 256  # rounds over which the share of accepted traffic is counted
    EVERY = 64  # rounds between two counts

    def __init__(self, start: Callable[[int], PortfolioWealth]) -> None:
        self._start = start
        self.wealths = [start(0)]
        self._recent: list[tuple[float, ...]] = []
        self._rounds = 0
        self.accepted = [0.0]
        self.active = 0
        self.threshold = 0.0

    def join(self) -> None:
        """Let the next score bet on the rounds from here on."""
        self.wealths.append(self._start(len(self.wealths)))
        self.accepted.append(0.0)

    def decided(self, decision: Round) -> None:
        """Every score that the round carries bets on it; the score in force is chosen from the past."""
        wealths = self.wealths
        if len(wealths) == 1:
            wealth = wealths[0]
            wealth.decided(decision)
            self.threshold = wealth.threshold
            return
        uncertainties = decision.uncertainties
        if len(uncertainties) == len(wealths):
            self._recent.append(uncertainties)
            for wealth in wealths:
                wealth.decided(decision)
        else:
            for wealth, _ in zip(wealths, uncertainties, strict=False):
                wealth.decided(decision)
        self._rounds += 1
        if not self._rounds % self.EVERY:
            self._choose()
        self.threshold = wealths[self.active].threshold

    def resolve(self, decision: Round, loss: float) -> None:
        """Every score books the loss."""
        for wealth, _ in zip(self.wealths, decision.uncertainties, strict=False):
            wealth.resolve(decision, loss)
        self.threshold = self.wealths[self.active].threshold

    def charge(self, decision: Round) -> None:
        """Every score books a loss of 1."""
        self.resolve(decision, 1.0)

    def refund(self, decision: Round, loss: float) -> None:
        """Every score replaces its charge."""
        for wealth, _ in zip(self.wealths, decision.uncertainties, strict=False):
            wealth.refund(decision, loss)
        self.threshold = self.wealths[self.active].threshold

    def forfeit(self, decision: Round) -> None:
        """Leave the charges where they are."""

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Every score books the loss of the other round."""
        for wealth, _ in zip(self.wealths, decision.uncertainties, strict=False):
            wealth.replace(decision, instead, loss, charged=charged)
        self.threshold = self.wealths[self.active].threshold

    def log_wealth(self, threshold: float) -> float:
        """Log-wealth of the bet that a threshold of the score in force is safe."""
        return self.wealths[self.active].log_wealth(threshold)

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {
            "active": self.active,
            "rounds": self._rounds,
            "accepted": self.accepted,
            "recent": [list(scores) for scores in self._recent],
            "wealths": [wealth.state() for wealth in self.wealths],
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        while len(self.wealths) < len(state["wealths"]):
            self.join()
        for wealth, part in zip(self.wealths, state["wealths"], strict=True):
            wealth.load(part)
        self.active, self._rounds, self.accepted = state["active"], state["rounds"], list(state["accepted"])
        self._recent = [tuple(scores) for scores in state["recent"]]
        self.threshold = self.wealths[self.active].threshold

    def _choose(self) -> None:
        """Put the score in force whose threshold accepts most of the latest traffic."""
        del self._recent[: -self.MEMORY]
        thresholds = [wealth.threshold for wealth in self.wealths]
        rounds = max(len(self._recent), 1)
        for index, threshold in enumerate(thresholds):
            accepts = [scores for scores in self._recent if index < len(scores) and scores[index] < threshold]
            self.accepted[index] = len(accepts) / rounds
        best = max(self.accepted)
        if self.accepted[self.active] < best:
            self.active = self.accepted.index(best)
