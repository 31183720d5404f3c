"""What a game spent, in tokens, and the prices of its models."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from bpac.gateway.config.models.prices import Price
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.wire.usage import Usage

_FREE = Price(0.0, 0.0)


class Prices(NamedTuple):
    """Prices of the models of a route; none if not known. A route without a judge pays nothing for it.

    Parameters
    ----------
    draft, expert, judge: prices of these models; in a cascade the expert is the last model.
    stages: prices of the models of a cascade before the last, in order (default: no cascade).
    """

    draft: Price | None
    expert: Price | None
    judge: Price | None
    stages: tuple[Price | None, ...] = ()

    @classmethod
    def of(cls, route: RouteSettings) -> "Prices":
        """The prices in the settings of a route."""
        judge = route.judge.price if route.judge else _FREE
        if route.models:
            return cls(None, route.expert.price, judge, tuple(model.price for model in route.models[:-1]))
        return cls(route.draft.price, route.expert.price, judge)

    @property
    def drafting(self) -> tuple[Price, ...]:
        """The prices of the models that draft; empty if one of them is not known."""
        known = [price for price in self.stages or (self.draft,) if price is not None]
        return tuple(known) if len(known) == max(len(self.stages), 1) else ()


class Spent(NamedTuple):
    """Tokens spent by a game.

    Parameters
    ----------
    drafts, experts, judges: by role; in a cascade the drafts are those of all models before the last.
    stages: those of the drafts whose model is known, by its number in the cascade, from 1 (default: no cascade).
    """

    drafts: Usage
    experts: Usage
    judges: Usage
    stages: Mapping[int, Usage] = MappingProxyType({})

    def of_output(self) -> "Spent":
        """Generated tokens only."""
        return Spent(
            Usage(completion=self.drafts.completion),
            Usage(completion=self.experts.completion),
            Usage(completion=self.judges.completion),
            {stage: Usage(completion=usage.completion) for stage, usage in self.stages.items()},
        )

    def cost_of_drafts(self, prices: Sequence[Price]) -> tuple[float, float]:
        """What the drafts cost at most and at least, in millionths of money.

        The journal does not say which model of a cascade made a draft that no decision was made on. Such drafts cost at
        most as much as with the dearest of these models, and at least as much as with the cheapest.

        Parameters
        ----------
        prices: of the models that draft, in order.
        """
        known, rest = 0.0, self.drafts
        for stage, usage in self.stages.items():
            if stage <= len(prices):
                known += prices[stage - 1].millionths(usage)
                rest = rest.minus(usage)
        others = [price.millionths(rest) for price in prices]
        return known + max(others), known + min(others)
