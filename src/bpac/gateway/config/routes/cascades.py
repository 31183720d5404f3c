"""A route with more than two models: checks its settings, and says what its calls cost relative to each other."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from bpac.errors import SettingsError
from bpac.gateway.config.models.models import ModelSettings
from bpac.scores import Otherwise

if TYPE_CHECKING:
    from bpac.gateway.config.routes.routes import RouteSettings


# Where nothing is known about prices, each call costs so many times the one before.
STEP = 4.0
CALL_PRICES_REMEDY = "give call_prices, what a call of each model costs on average, in any unit"


class CallPrices(NamedTuple):
    """What a call of each model of a cascade costs, relative to the others.

    Parameters
    ----------
    prices: one for each model, in order.
    assumed: whether they are a guess, because the file does not say enough.
    """

    prices: tuple[float, ...]
    assumed: bool = False


def call_prices(route: "RouteSettings") -> CallPrices:
    """The prices by which a cascade weighs calls: ``call_prices``, or else the models' prices of generated tokens.

    The latter are used if every model has one and they rise from each model to the next: then the models, and not only
    the lengths of their answers, differ. Otherwise each call is assumed to cost four times the one before.
    """
    if route.call_prices:
        return CallPrices(route.call_prices)
    outputs = tuple(model.price.output for model in route.models if model.price is not None)
    if len(outputs) == len(route.models) and all(one < other for one, other in pairwise((0.0, *outputs))):
        return CallPrices(outputs)
    return CallPrices(tuple(STEP**stage for stage in range(len(route.models))), assumed=True)


def assumed_prices(routes: Mapping[str, "RouteSettings"]) -> Iterator[str]:
    """What to say about each cascade whose prices of calls are assumed.

    Parameters
    ----------
    routes: the routes by name.
    """
    for name, route in routes.items():
        if route.models and (found := call_prices(route)).assumed:
            listed = " : ".join(f"{price:g}" for price in found.prices)
            yield (
                f"routes.{name} has no call_prices, and its models have no price that rises from each to the next, so "
                f"new games assume that calls of {', '.join(model.name for model in route.models)} cost {listed}"
            )


def check_cascade(route: "RouteSettings") -> None:
    """Raise ``SettingsError`` unless the settings are those of a cascade."""
    for key, usual in (("policy", "portfolio"), ("assume", None), ("minimise", "calls"), ("learn", None)):
        if getattr(route, key) != usual and not (key == "learn" and route.learn is False):
            raise SettingsError(f"{key} is for routes with two models: leave it out with models = [...]")
    if route.loss["name"] == "external":
        raise SettingsError(
            "loss: external reports one loss, and a cascade needs that of every model: let the gateway grade the "
            "answers (for prose, with a judge), or list two models"
        )
    if len(route.call_prices) not in (0, len(route.models)):
        raise SettingsError(
            f"call_prices has {len(route.call_prices)} prices, and models has {len(route.models)} models"
        )
    for (before, price), (after, next_price) in pairwise(zip(route.models, route.call_prices, strict=False)):
        if 0.0 < next_price < price:
            raise SettingsError(
                f"call_prices falls from {price:g} for models.{before.name} to {next_price:g} for "
                f"models.{after.name}: models are asked in order, so list the cheapest first"
            )
    _check_efforts(route.models)
    for model in route.models[:-1]:
        if not model.gives_logprobs and route.score.needs.logprobs and not isinstance(route.score, Otherwise):
            raise SettingsError(
                f"score: {route.score_name} needs log-probabilities, but requests to models.{model.name} are sent "
                'without logprobs (drop, or api = "messages", which has none): set score = "auto" or '
                '"agreement_and_confidence"'
            )


def _check_efforts(models: Sequence[ModelSettings]) -> None:
    efforts: dict[str, str] = {}
    for model in models:
        if model.effort is None:
            continue
        if other := efforts.get(model.effort):
            raise SettingsError(
                f"models: models.{other} and models.{model.name} both have the reasoning_effort {model.effort}: "
                "give each an effort of its own, so that a caller can ask for one of them, or leave it out of one"
            )
        efforts[model.effort] = model.name
