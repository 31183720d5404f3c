"""A bettor for scores that join on the way (MATH section 14)."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from bpac.betting.ledgers.ledger import Round
from bpac.betting.wealth.portfolio import PortfolioWealth


class NoWealth:
    """In place of the wealth of a score that is none: nothing is bet, and nothing is certified."""

    threshold = 0.0

    def log_wealth(self, threshold: float) -> float:
        """Nothing."""
        return -math.inf

    def hopeless_from(self, log_bar: float, charged: Iterable[Round]) -> float:
        """No threshold has any wealth."""
        return 0.0

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}


class Candidates:
    """One wealth per score, each with its share of α; the one that accepts most of the latest traffic is in force.

    A score that joins starts from a wealth of 1 and sees the rounds that carry it, and no others: those whose queries
    arrived after it had joined. What was kept for scores that turn out not to be worth joining goes back to the first:
    that much more is bet for it, on the rounds from then on. A score that has nothing left to gain retires: it bets no
    more, and is never in force again.

    In most rounds no wealth looks at its threshold: they are counted here, for all wealths at once, and told to them
    when anything else happens.

    Parameters
    ----------
    start: makes the wealth of a score, given its index.
    returned: what goes back to the first score if this one is not learned, given its index, relative to the first.
    most: how many scores there may be.
    retires: whether scores may retire.
    """

    MEMORY = 256  # rounds over which the share of accepted traffic is counted
    EVERY = 64  # rounds between two counts

    def __init__(
        self,
        start: Callable[[int], PortfolioWealth],
        returned: Callable[[int], float],
        *,
        most: int,
        retires: bool = False,
    ) -> None:
        self._start = start
        self._returned = returned
        self._most = most
        self._retires = retires
        first = start(0)
        self._wealths: list[PortfolioWealth | NoWealth] = [first]
        self._betting = [(0, first)]  # those of them that bet, with their index
        self._latched = first.latched
        # Rounds that no wealth has counted yet; how many may follow before one looks at its threshold, or before the
        # score in force is chosen again, as long as they have this least propensity.
        self._uncounted = 0
        self._quiet = 0
        self._least_propensity = math.nan
        self._recent: list[tuple[float, ...]] = []
        # How many of them were counted by the latest choice, and how many of these each threshold accepted.
        self._counted = 0
        self._below: list[tuple[float, int]] = []
        self._rounds = 0
        self.accepted = [0.0]
        self.active = 0
        self.threshold = 0.0

    @property
    def absent(self) -> set[int]:
        """The scores that do not bet, because they were not worth joining or have retired."""
        return set(range(len(self._wealths))) - {score for score, _ in self._betting}

    @property
    def wealths(self) -> list[PortfolioWealth | NoWealth]:
        """The wealth of each score."""
        self._count()
        return self._wealths

    def join(self) -> None:
        """Let the next score bet on the rounds from here on."""
        self._append(self._start(len(self._wealths)))

    def take_back(self) -> None:
        """Let the score that was there first bet what was kept for others, on the rounds from here on."""
        score = len(self._wealths)
        first = cast(PortfolioWealth, self.wealths[0])
        first.reinforce(self._returned(score), score)
        self._append(NoWealth())

    def may_retire(self, score: int) -> bool:
        """Whether a score may stop betting: not the one in force, nor the first while shares may still go back to it.

        Where thresholds may fall none may: any of them may be the best one again.
        """
        lasts = score == self.active or (score == 0 and len(self._wealths) < self._most)
        return self._retires and self._latched and not lasts

    def retire(self, score: int) -> None:
        """Let a score bet no more."""
        self._count()
        self._wealths[score] = NoWealth()
        self._changed()
        self._look()

    def _append(self, wealth: "PortfolioWealth | NoWealth") -> None:
        self._count()
        self._wealths.append(wealth)
        self.accepted.append(0.0)
        self._changed()

    def _changed(self) -> None:
        """Take note of which scores bet from here on."""
        wealths = enumerate(self._wealths)
        self._betting = [(score, wealth) for score, wealth in wealths if isinstance(wealth, PortfolioWealth)]
        self._below = []
        self._quiet = 0

    def decided(self, decision: Round) -> None:
        """Every score that the round carries bets on it; the score in force is chosen from the past."""
        scores, uncertainties = len(self._wealths), decision.uncertainties
        if len(uncertainties) == scores:
            if self._quiet > 1 and decision.least_propensity == self._least_propensity:
                self._recent.append(uncertainties)
                self._quiet -= 1
                self._uncounted += 1
                return
            if scores == 1:
                _, wealth = self._betting[0]
                wealth.decided(decision)
                self.threshold = wealth.threshold
                return
            self._recent.append(uncertainties)
        self._count()
        for wealth in self._carried_by(decision):
            wealth.decided(decision)
        self._least_propensity = decision.least_propensity
        self._rounds += 1
        if not self._rounds % self.EVERY:
            self._choose()
        self._look()

    def resolve(self, decision: Round, loss: float) -> None:
        """Every score books the loss."""
        if self._quiet > 0 and (loss == 0.0 or self._latched):
            # No wealth looks at its threshold, and a loss lowers none that is latched.
            if loss > 0.0:
                carried = len(decision.uncertainties)
                for score, wealth in self._betting:
                    if score < carried:
                        wealth.add(decision, loss)
            return
        self._count()
        for wealth in self._carried_by(decision):
            wealth.resolve(decision, loss)
        self._look()

    def charge(self, decision: Round) -> None:
        """Every score books a loss of 1."""
        self.resolve(decision, 1.0)

    def refund(self, decision: Round, loss: float) -> None:
        """Every score replaces its charge."""
        self._count()
        for wealth in self._carried_by(decision):
            wealth.refund(decision, loss)
        self._look()

    def forfeit(self, decision: Round) -> None:
        """Leave the charges where they are."""

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Every score books the loss of the other round."""
        self._count()
        for wealth in self._carried_by(decision):
            wealth.replace(decision, instead, loss, charged=charged)
        self._look()

    def log_wealth(self, threshold: float) -> float:
        """Log-wealth of the bet that a threshold of the score in force is safe."""
        return self.wealths[self.active].log_wealth(threshold)

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        self._count()
        return {
            "active": self.active,
            "rounds": self._rounds,
            "accepted": self.accepted,
            "recent": [list(scores) for scores in self._recent],
            "wealths": [wealth.state() for wealth in self.wealths],
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._wealths = [self._start(score) if part else NoWealth() for score, part in enumerate(state["wealths"])]
        self._changed()
        for score, wealth in self._betting:
            wealth.load(state["wealths"][score])
        self.active, self._rounds, self.accepted = state["active"], state["rounds"], list(state["accepted"])
        self._recent = [tuple(scores) for scores in state["recent"]]
        self._look()

    def _count(self) -> None:
        """Let every wealth count the rounds that were quiet."""
        if self._uncounted:
            for _, wealth in self._betting:
                wealth.count(self._uncounted)
            self._rounds += self._uncounted
            self._uncounted = 0

    def _look(self) -> None:
        """Take over the threshold in force, and find out how long nothing is going to change it."""
        self.threshold = self._wealths[self.active].threshold
        quiet, least = self.EVERY - self._rounds % self.EVERY, self._least_propensity
        for _, wealth in self._betting:
            quiet = min(quiet, wealth.quiet_rounds(least))
        self._quiet = quiet

    def _carried_by(self, decision: Round) -> list[PortfolioWealth]:
        """The wealths of the scores that a round carries."""
        return [wealth for score, wealth in self._betting if score < len(decision.uncertainties)]

    def _choose(self) -> None:
        """Put the score in force whose threshold accepts most of the latest traffic."""
        recent, count = self._recent, len(self._wealths)
        dropped = recent[: -self.MEMORY]
        if recent and len(recent[0]) < count:
            # Rounds before the latest score had joined do not carry it: they come first, and it would not accept them.
            recent = [(*scores, *(1.0,) * (count - len(scores))) for scores in recent]
            self._below = []
        kept, new = recent[len(dropped) :], recent[self._counted :]
        below: list[tuple[float, int]] = []
        for score, wealth in enumerate(self._wealths):
            limit = wealth.threshold
            before, accepted = self._below[score] if self._below else (math.nan, 0)
            if limit == before:  # as in most cases: only the rounds at both ends make a difference
                accepted += _accepted(new, score, limit) - _accepted(dropped, score, limit)
            else:
                accepted = _accepted(kept, score, limit)
            below.append((limit, accepted))
        del self._recent[: len(dropped)]
        self._counted = len(self._recent)
        self._below = below
        if self._recent:
            self.accepted = [accepted / self._counted for _, accepted in below]
        best = max(self.accepted)
        if self.accepted[self.active] < best:
            self.active = self.accepted.index(best)


def _accepted(rounds: Sequence[tuple[float, ...]], score: int, limit: float) -> int:
    """How many of the rounds a threshold accepts by its score."""
    return len([0 for scores in rounds if scores[score] < limit]) if limit else 0
