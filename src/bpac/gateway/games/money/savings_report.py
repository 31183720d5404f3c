"""What was spent and saved, in tokens and in money, with bounds that hold at all times.

1. In money the bounds cover the whole bill: prompts, cached prompts and answers of drafts, expert and judges. For this
   every model of the route needs a price of its prompts. Otherwise only generated tokens are priced, and it is said so.
2. What the expert was spared is bounded for each kind of token by itself, each with its part of the probability of
   failure, so that prices may change without a new start.
3. An estimate outside its bounds is moved to the nearest bound. If the bounds cross, which each does only with the
   probability of failure, both are widened until they do not.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from bpac.betting.bounds.unseen import UnseenSum
from bpac.dashboard.savings import TokenSavings
from bpac.gateway.config.models.prices import Price
from bpac.gateway.games.money.followed import NONE_FOLLOWED, Followed
from bpac.gateway.games.money.spending import Prices, Spent

# Each of the two bounds fails at some time with at most this probability.
ALPHA = 0.05
# What a report about money covers.
BILL, OUTPUT = "bill", "output"


class Spared(NamedTuple):
    """Tokens that the expert was spared, which are not seen: generated ones, and those of prompts.

    Parameters
    ----------
    completions: generated tokens.
    prompts, fresh, cached: tokens of prompts: all, those not in the server's cache, and those in it.
    """

    completions: UnseenSum
    prompts: UnseenSum
    fresh: UnseenSum
    cached: UnseenSum


class Bounded(NamedTuple):
    """An estimate with bounds; the upper one may be infinite."""

    estimate: float
    least: float
    most: float

    @classmethod
    def ordered(cls, estimate: float, least: float, most: float) -> "Bounded":
        """Bounds that do not cross, and an estimate within them.

        >>> Bounded.ordered(5.0, least=6.0, most=9.0)
        Bounded(estimate=6.0, least=6.0, most=9.0)
        """
        low, high = min(least, most), max(least, most)
        return cls(min(max(estimate, low), high), low, high)

    def less(self, cost: float) -> "Bounded":
        """The same after a cost that is known."""
        return Bounded(*(value - cost for value in self))

    def share(self, cost: float, asked: float, least_cost: float | None = None) -> "Bounded | None":
        """What was saved as a share of what always asking the expert would have spent; none if that is nothing.

        Parameters
        ----------
        cost: of drafts and judges.
        asked: spent on the expert.
        least_cost: what drafts and judges cost at least (default: the cost is known).
        """
        if self.estimate + asked <= 0.0 or self.least + asked <= 0.0:
            return None
        # The share grows with what was spared, so its bounds follow from those of what was spared.
        costs = (cost, cost, cost if least_cost is None else least_cost)
        return Bounded(
            *((1.0 if math.isinf(one) else (one - c) / (one + asked)) for one, c in zip(self, costs, strict=True))
        )


@dataclass(frozen=True, slots=True)
class SavingsReport(TokenSavings):
    """What was spent and saved, with bounds on what was saved.

    Parameters
    ----------
    tokens_saved_at_least, tokens_saved_at_most: each holds with the confidence; no upper bound may be known.
    longest_answer_assumed: the upper bound holds if no answer of the expert has more tokens than this; none if nothing
        needs to be assumed, or if there is no upper bound.
    confidence: of each bound.
    share_saved, share_saved_at_least, share_saved_at_most: generated tokens saved, as a share of what always asking the
        expert would have generated; none before there is anything to compare with.
    usage: tokens spent by ``draft``, ``expert`` and ``judge``, each by kind; estimates are counted and also marked.
    prompts_unknown: answers of the expert whose prompt tokens are not known, so that they count as nothing saved.
    money_saved, money_saved_at_least, money_saved_at_most: the same in money; none where prices are not known.
    money_share_saved, money_share_saved_at_least, money_share_saved_at_most: the same as a share of ``always_money``.
    money_spent, always_money: spent in all, and what always asking the expert would have cost.
    money_covers: ``bill`` if all tokens are priced, ``output`` if only generated tokens are.
    currency: the currency; empty if it is not configured.
    followed: later requests of episodes, where sessions are sticky: how many, their tokens, and their cost; they are in
        none of the other sums, because nothing was decided about them (none if there were none).
    longest_prompt_assumed: the upper bound in money holds if no prompt has more tokens than this.
    """

    tokens_saved_at_least: float
    tokens_saved_at_most: float | None
    longest_answer_assumed: float | None
    confidence: float
    share_saved: float | None = None
    share_saved_at_least: float | None = None
    share_saved_at_most: float | None = None
    usage: dict[str, dict[str, int]] = field(default_factory=dict)
    prompts_unknown: int = 0
    money_saved: float | None = None
    money_saved_at_least: float | None = None
    money_saved_at_most: float | None = None
    money_share_saved: float | None = None
    money_share_saved_at_least: float | None = None
    money_share_saved_at_most: float | None = None
    money_spent: float | None = None
    always_money: float | None = None
    money_covers: str | None = None
    currency: str | None = None
    longest_prompt_assumed: float | None = None
    followed: dict[str, Any] | None = None

    @classmethod
    def of(
        cls,
        spent: Spent,
        spared: Spared,
        prompts_unknown: int,
        prices: Prices | None,
        followed: Followed = NONE_FOLLOWED,
    ) -> "SavingsReport":
        """The report on what was spent and spared.

        Parameters
        ----------
        spent, spared: tokens spent, and tokens that the expert was spared.
        prompts_unknown: answers of the expert whose prompt tokens are not known.
        prices: the prices of the route; none if money does not matter.
        followed: later requests of episodes, which are in none of the other sums (default: none).
        """
        answers = spared.completions
        tokens = Bounded.ordered(answers.estimate, answers.at_least(ALPHA), answers.at_most(ALPHA))
        cost, asked = spent.drafts.completion + spent.judges.completion, spent.experts.completion
        saved = tokens.less(cost)
        return cls(
            draft_tokens=spent.drafts.completion,
            expert_tokens=asked,
            judge_tokens=spent.judges.completion,
            always_tokens=asked + tokens.estimate,
            tokens_saved=saved.estimate,
            tokens_saved_at_least=saved.least,
            tokens_saved_at_most=_finite(saved.most),
            longest_answer_assumed=_finite(answers.ceiling),
            confidence=1.0 - ALPHA,
            usage={
                whose: usage.to_json() for whose, usage in zip(("draft", "expert", "judge"), spent[:3], strict=True)
            },
            prompts_unknown=prompts_unknown,
            followed=_followed(followed, prices) if followed.requests else None,
            **_bounds("share_saved", tokens.share(cost, asked)),
            **_money(spent, spared, prices),
        )

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values; without prices there is no key about money."""
        values = asdict(self)
        if self.followed is None:
            del values["followed"]
        if self.money_saved is None:
            return {name: value for name, value in values.items() if name not in _OF_MONEY}
        return values


_OF_MONEY = {"always_money", "currency", "longest_prompt_assumed"} | {
    name for name in SavingsReport.__dataclass_fields__ if name.startswith("money_")
}


def _followed(followed: Followed, prices: Prices | None) -> dict[str, Any]:
    """What a report says about later requests of episodes, with their cost where prices are known."""
    values = followed.to_json()
    if prices is None or prices.draft is None or prices.expert is None:
        return values
    spent = prices.draft.millionths(followed.drafts) + prices.expert.millionths(followed.experts)
    return values | {"money_spent": spent / 1e6}


def _money(spent: Spent, spared: Spared, prices: Prices | None) -> dict[str, Any]:
    """What a report says about money."""
    if prices is None or prices.expert is None or prices.judge is None or not (drafting := prices.drafting):
        return {}
    covers = BILL if all(price.input is not None for price in (*drafting, prices.expert, prices.judge)) else OUTPUT
    if covers == OUTPUT:
        spent = spent.of_output()
    value = _value_spared(spared, prices.expert, covers)
    most, least = spent.cost_of_drafts(drafting)
    judged = prices.judge.millionths(spent.judges)
    cost, least_cost = most + judged, least + judged
    asked = prices.expert.millionths(spent.experts)
    saved = value.less(cost)
    return {
        "money_saved": saved.estimate / 1e6,
        "money_saved_at_least": saved.least / 1e6,
        "money_saved_at_most": _finite(value.less(least_cost).most / 1e6),
        **_bounds("money_share_saved", value.share(cost, asked, least_cost)),
        "money_spent": (cost + asked) / 1e6,
        "always_money": (asked + value.estimate) / 1e6,
        "money_covers": covers,
        "currency": prices.expert.currency,
        "longest_prompt_assumed": _finite(spared.prompts.ceiling) if covers == BILL else None,
    }


def _value_spared(spared: Spared, price: Price, covers: str) -> Bounded:
    """What the expert was spared, in millionths of money."""
    answers = (price.output, spared.completions)
    below, above = [answers], [answers]
    if covers == BILL and price.input is not None and price.cached_input is not None:
        prompts = (price.input, spared.prompts)
        above.append(prompts)
        # Cached tokens cost less than others, so the upper bound may count all of them as others.
        cheaper = price.cached_input < price.input
        below += [(price.input, spared.fresh), (price.cached_input, spared.cached)] if cheaper else [prompts]
    below, above = _priced(below), _priced(above)
    return Bounded.ordered(
        sum(each * unseen.estimate for each, unseen in below),
        sum(each * unseen.at_least(ALPHA / len(below)) for each, unseen in below),
        sum(each * unseen.at_most(ALPHA / len(above)) for each, unseen in above),
    )


def _priced(parts: Iterable[tuple[float, UnseenSum]]) -> list[tuple[float, UnseenSum]]:
    return [(price, unseen) for price, unseen in parts if price > 0.0]


def _bounds(name: str, bounded: Bounded | None) -> dict[str, Any]:
    if bounded is None:
        return {}
    return {name: bounded.estimate, f"{name}_at_least": bounded.least, f"{name}_at_most": bounded.most}


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
