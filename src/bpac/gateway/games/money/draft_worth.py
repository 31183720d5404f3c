"""Whether drafts are worth their money (``minimise = "money"``): if not, most requests go to the expert directly.

1. A draft of a request costs money whether it is accepted or not. What it can save is the expert's price of the
   requests whose draft is accepted and not audited.
2. While a threshold may still be found, every draft may come to be accepted. So at first drafts are given up only if
   they would not even pay if all of them were accepted; later, if they do not pay at the share that is accepted.
3. A small share of the requests is drafted in any case, so that a change of prices, traffic or threshold is noticed.
4. Whether a request is drafted depends on earlier requests and on a coin of its own, never on the request. So the
   drafted requests are traffic as before, and the promise about them holds (docs/decisions/0009).
"""

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from bpac.gateway.config.models.prices import Price
from bpac.gateway.games.money.spending import Prices
from bpac.routing.decision import Decision
from bpac.wire.usage import Usage

# Share of the requests that are drafted although drafts do not pay.
PROBES = 0.05
# Requests over which averages are taken, and how many are needed for a verdict.
WINDOW, FEWEST = 500, 20
# Rounds of an epoch in which a threshold may still be found: at least so many, and so many divided by epsilon.
LEAST_SEARCH, SEARCH = 2000, 50


def _zeros() -> list[float]:
    return [0.0] * 4


@dataclass(slots=True)
class RecentTokens:
    """Moving averages over the last rounds of a game: tokens by kind, and the share of accepted drafts.

    Parameters
    ----------
    epoch, rounds: the current epoch, and its rounds so far.
    accepted: share of drafts below the threshold.
    drafts, experts, judges: number of calls, uncached prompt tokens, cached prompt tokens and generated tokens; older
        ones count less.
    """

    epoch: int = 1
    rounds: int = 0
    accepted: float = 0.0
    drafts: list[float] = field(default_factory=_zeros)
    experts: list[float] = field(default_factory=_zeros)
    judges: list[float] = field(default_factory=_zeros)

    def decided(self, decision: Decision, draft: Usage) -> None:
        """Count a round and its draft."""
        if decision.epoch != self.epoch:
            self.epoch, self.rounds = decision.epoch, 0
        self.rounds += 1
        weight = max(1.0 / WINDOW, 1.0 / self.rounds)
        self.accepted += weight * ((decision.uncertainty < decision.threshold) - self.accepted)
        _count(self.drafts, draft)

    def resolved(self, expert: Usage, judge: Usage) -> None:
        """Count an answer of the expert, and the grading of its draft."""
        _count(self.experts, expert)
        _count(self.judges, judge)


def _count(sums: list[float], usage: Usage) -> None:
    for at, value in enumerate((1, usage.prompt - usage.cached, usage.cached, usage.completion)):
        sums[at] = sums[at] * (1.0 - 1.0 / WINDOW) + value


def _average(sums: list[float], price: Price) -> float:
    calls, fresh, cached, completion = sums
    return ((price.input or 0.0) * fresh + (price.cached_input or 0.0) * cached + price.output * completion) / calls


class MoneyTerms(NamedTuple):
    """What matters of the settings of a game.

    Parameters
    ----------
    prices: the prices of its models.
    epsilon: the largest risk.
    audited: least share of accepted drafts that are audited.
    """

    prices: Prices
    epsilon: float
    audited: float


def drafts_pay(recent: RecentTokens, terms: MoneyTerms) -> bool:
    """Whether drafts are expected to save more money than they cost; yes if it is not known.

    Parameters
    ----------
    recent: tokens of the last rounds.
    terms: the settings of the game.
    """
    draft, expert, judge = terms.prices.draft, terms.prices.expert, terms.prices.judge
    if draft is None or expert is None or judge is None or min(recent.drafts[0], recent.experts[0]) < FEWEST:
        return True
    searching = recent.rounds < max(LEAST_SEARCH, SEARCH / terms.epsilon)
    accepted = 1.0 if searching else recent.accepted
    called = 1.0 - accepted * (1.0 - terms.audited)
    spared = (1.0 - called) * _average(recent.experts, expert)
    return spared > _average(recent.drafts, draft) + called * _average(recent.judges, judge)


def skips_draft(recent: RecentTokens, terms: MoneyTerms, coin: random.Random) -> bool:
    """Whether the next request goes to the expert without a draft.

    Parameters
    ----------
    recent, terms: as for ``drafts_pay``.
    coin: a random source that callers cannot predict.
    """
    return not drafts_pay(recent, terms) and coin.random() >= PROBES
