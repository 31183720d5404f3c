"""Wealth of a portfolio of fixed fractions (MATH section 3): one threshold to find, no grid to sweep."""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import add as plus
from operator import mul as times
from operator import sub as minus
from typing import Any

import numpy as np

from bpac.betting.ledgers.ledger import Ledger, Round
from bpac.betting.ledgers.levels import Levels
from bpac.betting.ledgers.loss_table import LossTable
from bpac.betting.payoff import LOG_UNIT, Terms, log_units

NEVER = 1 << 62


class PortfolioWealth(Ledger):
    """Log-wealth of gamblers at fixed fractions, as a falling step function of the threshold.

    A round multiplies each gambler by the same number at every threshold, unless a loss was seen:
    then thresholds above its score are multiplied by less. So the common part is a count of rounds
    and only losses are kept by level.

    Parameters
    ----------
    terms: the terms of the bets.
    bar: the log-wealth that certifies a threshold.
    fractions: stakes of the gamblers, as shares of the largest payoff bound (θ).
    levels: where losses are booked.
    latched: whether a threshold certified once stays certified.
    score: which of several scores this wealth is about.
    floor_fractions: stakes in rounds whose least propensity is the exploration floor, as many as ``fractions``; empty
        for the same. They depend on what is known before the round, so the wealth is still that of a fair game.
    weights: shares of the money with which the gamblers begin, which sum to 1; empty for equal shares. Where they are
        given, both lists of stakes must be ascending.
    """

    __slots__ = (
        "_bar",
        "_changes",
        "_common",
        "_first",
        "_floor_fractions",
        "_fractions",
        "_late",
        "_least_propensity",
        "_level",
        "_levels",
        "_next_check",
        "_rounds",
        "_score",
        "_table",
        "_terms",
        "_tried",
        "_tried_wealth",
        "_win",
        "latched",
        "threshold",
    )

    def __init__(
        self,
        terms: Terms,
        bar: float,
        fractions: Sequence[float],
        levels: Levels,
        *,
        latched: bool,
        score: int | None = None,
        floor_fractions: Sequence[float] = (),
        weights: Sequence[float] = (),
    ) -> None:
        self._terms = terms
        self._bar = bar
        # Ascending, which LossTable requires.
        self._fractions = tuple(sorted(fractions))
        self._floor_fractions = tuple(sorted(floor_fractions or fractions))
        self._levels = levels
        self._level = levels.code
        self.latched = latched
        self._score = score
        # For each set of gamblers that was added later: the score without which a round was decided before.
        self._late: list[int] = []
        # Most losses are 0 or 1, and propensities take few values.
        self._changes = lru_cache(maxsize=64)(self._compute_changes)
        self._table = LossTable(len(self._fractions), levels.top)
        # What each gambler begins with, relative to an equal share.
        self._first = [log_units(weight * len(weights)) for weight in weights] or [0] * len(self._fractions)
        self._common = self._first
        # Rounds since ``_common`` was brought up to date, all with the same least propensity.
        self._rounds = 0
        self._least_propensity = 0.0
        self._win = [0] * len(self._fractions)
        self._next_check = 1
        # The gamblers' log-wealth on the stretch that was tried last, and that of all of them.
        self._tried = self._common
        self._tried_wealth = 0.0
        self.threshold = 0.0

    def decided(self, decision: Round) -> None:
        """Every gambler wins the round at every threshold, until a loss is booked."""
        if decision.least_propensity != self._least_propensity:
            self._change_bound(decision.least_propensity)
        self._rounds += 1
        if self._late:
            self._skip(decision)
        # After an audit nothing is looked at until its outcome or its charge is booked: before that its
        # loss is not counted at all, and a threshold could latch on it.
        if self._rounds >= self._next_check and not decision.call_expert:
            self._climb()

    def quiet_rounds(self, least_propensity: float) -> int:
        """How many rounds with this least propensity may come before the threshold is looked at; below 1 for none.

        Such rounds may be counted later (``count``), if that is before anything else happens.
        """
        return self._next_check - self._rounds if least_propensity == self._least_propensity else 0

    def count(self, rounds: int) -> None:
        """Count rounds that were quiet."""
        self._rounds += rounds

    def resolve(self, decision: Round, loss: float) -> None:
        """Book the loss of a round that was not charged."""
        if loss > 0.0:
            self.add(decision, loss)
        if self._rounds >= self._next_check:
            self._climb()

    def charge(self, decision: Round) -> None:
        """Book a loss of 1."""
        self.resolve(decision, 1.0)

    def add(self, decision: Round, loss: float) -> None:
        """Book a loss: thresholds above its score lose the round instead of winning it."""
        code = self._level(decision.uncertainty if self._score is None else decision.uncertainties[self._score])
        self._table.add(code, self._taken(decision, loss))
        if not self.latched and code < self._table.limit:
            self._collect()
            self._next_check = 1
            self._table.fall(self._passes)
            self.threshold = self._levels.value(self._table.limit)

    def remove(self, decision: Round, loss: float) -> None:
        """Take a booked loss out again; thresholds may rise."""
        code = self._level(decision.uncertainty if self._score is None else decision.uncertainties[self._score])
        self._table.add(code, [-change for change in self._taken(decision, loss)])
        # The stretch just above the limit sees losses up to the limit, and no others.
        if code <= self._table.limit:
            self._climb()

    def reinforce(self, share: float, score: int) -> None:
        """Add gamblers with money of their own, who bet on rounds that are decided from here on.

        Parameters
        ----------
        share: their money, relative to what the first gamblers began with.
        score: rounds from here on carry the score with this index, and those before do not.
        """
        self._collect()
        self._late.append(score)
        self._common = [*self._common, *(log_units(share) + first for first in self._first)]
        self._table.widen(len(self._fractions))
        # The next round finds out what each of them wins.
        self._least_propensity, self._win = 0.0, [0] * len(self._common)
        self._next_check = 1

    def log_wealth(self, threshold: float) -> float:
        """Log-wealth of the gamblers who bet that ``threshold`` is safe (log K)."""
        self._collect()
        code = self._levels.code(threshold)
        code += threshold > self._levels.value(code)  # between two levels, losses booked at the lower one are seen
        return self._log_wealth(list(map(plus, self._common, self._table.sums_below(code))))

    def hopeless_from(self, log_bar: float, charged: Iterable[Round]) -> float:
        """The least score above which no threshold has more than that log-wealth; infinite if there is none.

        Parameters
        ----------
        log_bar: the log-wealth.
        charged: rounds that are charged and are taken to be won.
        """
        self._collect()
        codes, sums = self._table.arrays()
        logs = sums.astype(np.float64)  # levels that are dead may add up to more than 64 bits
        for decision in charged:
            code = self._level(decision.uncertainty if self._score is None else decision.uncertainties[self._score])
            at = int(np.searchsorted(codes, code))
            if at < len(codes) and codes[at] == code:
                logs[at] -= self._taken(decision, 1.0)
        logs = (np.cumsum(logs, axis=0) + self._common) / LOG_UNIT
        most = logs.max(axis=1, keepdims=True)
        means = most[:, 0] + np.log(np.exp(logs - most).sum(axis=1) / len(self._fractions))
        hopeless = np.flatnonzero(means <= log_bar)
        return self._levels.value(int(codes[hopeless[0]])) if len(hopeless) else math.inf

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        self._collect()
        late = {"late": self._late} if self._late else {}
        return {"common": self._common, "limit": self._table.limit, "losses": self._table.rows(), **late}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        for score in state.get("late", ()):
            self.reinforce(1.0, score)
        self._common = list(state["common"])
        self._table.load(state["losses"], state["limit"])
        self.threshold = self._levels.value(self._table.limit)

    def _skip(self, decision: Round) -> None:
        """Take the win of a round from the gamblers who were added after it was decided."""
        betting = len(self._fractions) * self._sets_in(decision)
        if betting < len(self._common):
            self._common = [*self._common[:betting], *map(minus, self._common[betting:], self._win[betting:])]

    def _sets_in(self, decision: Round) -> int:
        """How many sets of gamblers bet on a round."""
        return 1 + sum(score < len(decision.uncertainties) for score in self._late)

    def _taken(self, decision: Round, loss: float) -> list[int]:
        """What the loss of a round takes from each gambler's log-wealth at thresholds above its score."""
        changes = self._changes(decision.propensity, decision.least_propensity, loss)
        if not self._late:
            return changes
        betting = self._sets_in(decision)
        return changes * betting + [0] * (len(changes) * (1 + len(self._late) - betting))

    def _compute_changes(self, propensity: float, least_propensity: float, loss: float) -> list[int]:
        """What a loss takes from each gambler's log-wealth at thresholds above its score."""
        payoff = self._terms.payoff(loss, propensity)
        bound, stakes = self._bound(least_propensity), self._stakes(least_propensity)
        return [
            log_units(1.0 + fraction * payoff / bound) - win
            for fraction, win in zip(stakes, self._wins(bound, stakes), strict=True)
        ]

    def _stakes(self, least_propensity: float) -> tuple[float, ...]:
        return self._floor_fractions if least_propensity <= self._terms.floor else self._fractions

    def _bound(self, least_propensity: float) -> float:
        return self._terms.payoff_bound(least_propensity)

    def _wins(self, bound: float, stakes: Sequence[float] | None = None) -> list[int]:
        return [log_units(1.0 + fraction * self._terms.epsilon / bound) for fraction in stakes or self._fractions]

    def _change_bound(self, least_propensity: float) -> None:
        self._collect()
        self._least_propensity = least_propensity
        wins = self._wins(self._bound(least_propensity), self._stakes(least_propensity))
        self._win = wins * (1 + len(self._late))
        self._next_check = 1

    def _collect(self) -> None:
        """Bring the common part up to date."""
        if self._rounds:
            self._common = [c + self._rounds * w for c, w in zip(self._common, self._win, strict=True)]
            self._next_check -= self._rounds
            self._rounds = 0

    def _climb(self) -> None:
        self._collect()
        self._table.climb(self._passes)
        self.threshold = self._levels.value(self._table.limit)
        self._next_check = self._fewest_rounds() if self._table.limit < self._table.top else NEVER

    def _passes(self, sums: Sequence[int]) -> bool:
        self._tried = tried = list(map(plus, self._common, sums))
        self._tried_wealth = wealth = self._log_wealth(tried)
        return wealth >= self._bar

    def _fewest_rounds(self) -> int:
        """The fewest rounds in which the stretch tried last could pass: until then the check can be skipped."""
        logs, wins = self._tried, self._win
        if not any(wins):
            return 1  # a state that was loaded has not seen a round yet, or a round wins next to nothing
        now = self._tried_wealth
        missing = self._bar - now
        # The log of a mean of exponentials is convex in the number of rounds: its tangent reaches
        # the bar too late, and its chord up to there too early, if only just.
        weights = [math.exp(log / LOG_UNIT - now) for log in logs]
        slope = sum(map(times, weights, wins)) / (len(self._fractions) * LOG_UNIT)
        late = missing / slope
        chord = self._log_wealth([log + late * win for log, win in zip(logs, wins, strict=True)]) - now
        fewest: int = math.ceil(late * missing / chord * (1.0 - 1e-9))
        return max(1, fewest)

    def _log_wealth(self, logs: Sequence[float]) -> float:
        """The logarithm of all gamblers' wealth, relative to what the first set of them began with."""
        most = max(logs)
        total = 0.0
        for log in logs:
            total += math.exp((log - most) / LOG_UNIT)
        return most / LOG_UNIT + math.log(total / len(self._fractions))


class ConstantBoundWealth(PortfolioWealth):
    """Portfolio wealth whose payoff bound never changes: on any stream, a plain average (MATH section 4)."""

    __slots__ = ()

    def _bound(self, least_propensity: float) -> float:
        return self._terms.payoff_bound(self._terms.floor)
