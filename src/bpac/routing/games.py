"""Betting games: how the outcomes of rounds move the threshold, for each family of policies.

``PortfolioWealth`` is a game by itself; here are the others.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bpac.betting.bounds import calibrate
from bpac.betting.certificate import ServedLoss
from bpac.betting.grid import GridWealth
from bpac.betting.ledger import Account, Round
from bpac.betting.payoff import Terms
from bpac.betting.portfolio import PortfolioWealth
from bpac.betting.weighted_losses import WeightedLosses
from bpac.routing.decision import Decision

Allowance = Callable[[int], float]


class Game(Account, Protocol):
    """An account that has a threshold."""

    threshold: float

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""


class FixedThreshold:
    """A threshold that nothing moves: always, never, the oracle."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def decided(self, decision: Round) -> None:
        """Nothing to learn."""

    def resolve(self, decision: Round, loss: float) -> None:
        """Nothing to learn."""

    def charge(self, decision: Round) -> None:
        """Nothing to charge."""

    def refund(self, decision: Round, loss: float) -> None:
        """Nothing to learn."""

    def forfeit(self, decision: Round) -> None:
        """Nothing to lose."""

    def state(self) -> dict[str, Any]:
        """The threshold."""
        return {"threshold": self.threshold}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a threshold."""
        self.threshold = state["threshold"]


class InOrder:
    """The paper's game: bets depend on the order of rounds, so each is settled when all before it are."""

    def __init__(self, wealth: GridWealth) -> None:
        self.wealth = wealth
        # [decision, loss, count] in decision order. The loss of an owed round is None. Kept drafts
        # that wait behind one are told apart by their rate only, so that a run of them is one entry.
        self._waiting: list[list[Any]] = []
        self._owed: dict[int, list[Any]] = {}
        self.threshold = 0.0

    def decided(self, decision: Round) -> None:
        """Settle a kept draft at once, unless an earlier round is owed."""
        if decision.call_expert:
            entry: list[Any] = [decision, None, 1]
            self._waiting.append(entry)
            self._owed[decision.step] = entry
        elif not self._waiting:
            self._settle(decision, 0.0)
        else:
            last = self._waiting[-1]
            if not last[0].call_expert and last[0].least_propensity == decision.least_propensity:
                last[2] += 1
            else:
                self._waiting.append([decision, 0.0, 1])

    def resolve(self, decision: Round, loss: float) -> None:
        """Settle the round and what it was holding back."""
        self._owed.pop(decision.step)[1] = loss
        ready = 0
        for waiting, known, count in self._waiting:
            if known is None:
                break
            for _ in range(count):
                self._settle(waiting, known)
            ready += 1
        del self._waiting[:ready]

    def charge(self, decision: Round) -> None:
        """Nothing: the rounds behind an owed one wait for it."""

    def refund(self, decision: Round, loss: float) -> None:
        """Nothing was charged."""
        self.resolve(decision, loss)

    def forfeit(self, decision: Round) -> None:
        """Settle the round with loss 1, for good."""
        self.resolve(decision, 1.0)

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"wealth": self.wealth.state(), "waiting": [[list(d), loss, count] for d, loss, count in self._waiting]}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.wealth.load(state["wealth"])
        self.threshold = self.wealth.threshold
        self._waiting = [[Decision.from_list(d), loss, count] for d, loss, count in state["waiting"]]
        self._owed = {entry[0].step: entry for entry in self._waiting if entry[1] is None}

    def _settle(self, decision: Round, loss: float) -> None:
        self.wealth.settle(decision.uncertainty, decision.propensity, decision.least_propensity, loss)
        self.threshold = self.wealth.threshold


class SumGame:
    """A threshold from sums of losses: the largest u with ``ΣZ(u) ≤ most(rounds)``.

    Parameters
    ----------
    losses: the sums.
    most: the largest sum that is allowed after so many rounds; below 0 for "no threshold at all".
    """

    def __init__(self, losses: WeightedLosses, most: Allowance) -> None:
        self._losses = losses
        self._most = most
        self._rounds = 0
        self.threshold = 0.0

    def decided(self, decision: Round) -> None:
        """Count the round."""
        self._rounds += 1
        self._move()

    def resolve(self, decision: Round, loss: float) -> None:
        """Book a loss."""
        if loss > 0.0:
            self._losses.resolve(decision, loss)
            self._move()

    def charge(self, decision: Round) -> None:
        """Book the worst, where the sums do."""
        self._losses.charge(decision)
        self._move()

    def refund(self, decision: Round, loss: float) -> None:
        """Replace the charge by the true loss."""
        self._losses.refund(decision, loss)
        self._move()

    def forfeit(self, decision: Round) -> None:
        """Leave the charge where it is."""

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"rounds": self._rounds, "threshold": self.threshold, "losses": self._losses.state()}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._rounds = state["rounds"]
        self.threshold = state["threshold"]
        self._losses.load(state["losses"])

    def _move(self) -> None:
        most = self._most(self._rounds)
        self.threshold = self._losses.largest(most) if most >= 0.0 else 0.0


def naive_allowance(terms: Terms) -> Allowance:
    """O-naive: an average of the seen losses up to ε."""
    return lambda rounds: terms.epsilon * rounds


def hoeffding_allowance(terms: Terms, alpha: float, grid_points: int) -> Allowance:
    """IPS+Hoeffding: ε less the width of Hoeffding's interval, at level ``6α/(π²t²)`` over the grid points."""
    scale = terms.kept_share / terms.floor

    def most(rounds: int) -> float:
        log_level = math.log(grid_points * math.pi**2 * rounds**2 / (6.0 * alpha))
        return rounds * (terms.epsilon - scale * math.sqrt(log_level / (2.0 * rounds)))

    return most


class BudgetGame(SumGame):
    """Budget (MATH section 7): nothing unless the certificate has room, then up to twice the slack above ε.

    Parameters
    ----------
    losses: the sums; labelled history counts here, because it helps to choose the threshold.
    terms: the terms of the game.
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

    def _allowance(self, rounds: int) -> float:
        epsilon, live, bound = self._terms.epsilon, self._live, self._served.upper()
        # With shadow audits this round's own loss may be served *and* seen, which moves the bound after
        # the decision; keeping room for it is what makes the average hold at every round.
        own_loss = 1.0 if self._terms.shadow else 0.0
        if rounds < self._first or bound + own_loss > epsilon * (live + 1):
            return -1.0
        slack = (epsilon * live - bound) / max(live, 1)
        return rounds * (epsilon + 2.0 * slack) - self._terms.kept_share / 2.0


class Calibration:
    """Offline PAC: every query goes to the expert until the calibration set is full, then one threshold for ever."""

    def __init__(self, terms: Terms, alpha: float, size: int, bound: str | None) -> None:
        self._terms = terms
        self._alpha = alpha
        self._size = size
        self._bound = bound
        self._losses: dict[int, list[Any]] = {}  # step: [uncertainty, loss or None]
        self._missing = size
        self.threshold = 0.0

    def decided(self, decision: Round) -> None:
        """Take the first rounds into the set."""
        if len(self._losses) < self._size:
            self._losses[decision.step] = [decision.uncertainty, None]

    def resolve(self, decision: Round, loss: float) -> None:
        """Fill in a loss; calibrate with the last one."""
        entry = self._losses.get(decision.step)
        if entry is None:
            return
        entry[1] = loss
        self._missing -= 1
        if not self._missing:
            self._calibrate()

    def charge(self, decision: Round) -> None:
        """Nothing: calibration waits."""

    def refund(self, decision: Round, loss: float) -> None:
        """Nothing was charged."""
        self.resolve(decision, loss)

    def forfeit(self, decision: Round) -> None:
        """A loss that will never be known counts as 1."""
        self.resolve(decision, 1.0)

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        losses = [[step, *entry] for step, entry in self._losses.items()]
        return {"missing": self._missing, "threshold": self.threshold, "losses": losses}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._missing, self.threshold = state["missing"], state["threshold"]
        self._losses = {step: [uncertainty, loss] for step, uncertainty, loss in state["losses"]}

    def _calibrate(self) -> None:
        uncertainties, losses = zip(*self._losses.values(), strict=True)
        binary = all(loss in (0.0, 1.0) for loss in losses)
        bound = self._bound or ("clopper-pearson" if binary else "hoeffding-bentkus")
        self.threshold = calibrate(uncertainties, losses, self._terms.epsilon, self._alpha, bound)


class SplitScores:
    """One wealth per score, each with its share of α; the score that accepts most is used (MATH section 8)."""

    MEMORY = 200.0  # rounds over which the share of accepted traffic is averaged

    def __init__(self, wealths: Sequence[PortfolioWealth]) -> None:
        self._wealths = tuple(wealths)
        self._accepted = [0.0] * len(self._wealths)
        self.active = 0
        self.threshold = 0.0

    def decided(self, decision: Round) -> None:
        """Every wealth sees the round; the score to use next is chosen from the past."""
        for index, wealth in enumerate(self._wealths):
            wealth.decided(decision)
            accepts = decision.uncertainties[index] < wealth.threshold
            self._accepted[index] += (accepts - self._accepted[index]) / self.MEMORY
        best = max(self._accepted)
        if self._accepted[self.active] < best:
            self.active = self._accepted.index(best)
        self.threshold = self._wealths[self.active].threshold

    def resolve(self, decision: Round, loss: float) -> None:
        """Every wealth books the loss at its own score."""
        for wealth in self._wealths:
            wealth.resolve(decision, loss)
        self.threshold = self._wealths[self.active].threshold

    def charge(self, decision: Round) -> None:
        """Every wealth books the worst."""
        for wealth in self._wealths:
            wealth.charge(decision)
        self.threshold = self._wealths[self.active].threshold

    def refund(self, decision: Round, loss: float) -> None:
        """Every wealth replaces its charge."""
        for wealth in self._wealths:
            wealth.refund(decision, loss)
        self.threshold = self._wealths[self.active].threshold

    def forfeit(self, decision: Round) -> None:
        """Leave the charges where they are."""

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"active": self.active, "accepted": self._accepted, "wealths": [w.state() for w in self._wealths]}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.active, self._accepted = state["active"], list(state["accepted"])
        for wealth, part in zip(self._wealths, state["wealths"], strict=True):
            wealth.load(part)
        self.threshold = self._wealths[self.active].threshold
