"""Checks the settings of a route with more than two models."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from bpac.errors import SettingsError
from bpac.gateway.config.models import ModelSettings
from bpac.scores import Otherwise

if TYPE_CHECKING:
    from bpac.gateway.config.routes import RouteSettings


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
