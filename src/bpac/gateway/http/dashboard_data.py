"""What ``/dashboard/data`` says about the whole gateway: its models, and the troubles that an operator should see."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from bpac.dashboard.troubles import (
    ScoredGame,
    Trouble,
    constant_score_troubles,
    missed_tokens,
    model_troubles,
    store_trouble,
    unscored_troubles,
)
from bpac.gateway.config.file import Config
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.savings import Prices
from bpac.gateway.service import Service
from bpac.gateway.telemetry.counters import Metrics

UPSTREAM_FAILURES = "bpac_upstream_failures_total"


def models_document(service: Service) -> dict[str, Any]:
    """The models of a gateway with their health, by name, as JSON values."""
    return {name: {"health": _counted_health(service.metrics, name)} for name in service.config.models}


def troubles_document(service: Service, models: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The troubles of a gateway, the most serious first, as JSON values.

    Parameters
    ----------
    service: the gateway.
    models: what ``models_document`` returned.
    """
    games = [_scored_game(game) for game in service.live_games()]
    troubles: list[Trouble] = []
    if service.store.failure is not None:
        troubles.append(store_trouble(service.store.failure))
    troubles += model_troubles(models, _routes_by_model(service.config))
    troubles += unscored_troubles(games)
    troubles += constant_score_troubles(games)
    return [trouble.to_json() for trouble in troubles]


def unscored_cost(game: LiveGame) -> float:
    """Tokens that the requests of a game without a score would have saved, estimated from the others."""
    unscored = game.history.unscored.reasons.total()
    return missed_tokens(game.router.step, _tokens_saved(game), unscored) if unscored else 0.0


def _scored_game(game: LiveGame) -> ScoredGame:
    return ScoredGame(game.route.name, game.router.step, game.history, lambda: _tokens_saved(game))


def _tokens_saved(game: LiveGame) -> float:
    return game.savings.report(Prices.of(game.route)).tokens_saved


def _routes_by_model(config: Config) -> dict[str, list[str]]:
    routes: dict[str, list[str]] = {}
    for name, route in config.routes.items():
        models = {model.name for model in (route.draft, route.expert, route.judge) if model is not None}
        for model in sorted(models):
            routes.setdefault(model, []).append(name)
    return routes


def _counted_health(metrics: Metrics, model: str) -> dict[str, Any]:
    """Health as far as it follows from the counters: whether a model works now is not known from them."""
    counted: Counter[str] = Counter()
    for (name, labels), count in metrics.counts.items():
        values = dict(labels)
        if name == UPSTREAM_FAILURES and values.get("model") == model:
            counted[values.get("kind", "")] += count
    kinds = [{"kind": kind, "status": None, "count": count} for kind, count in counted.most_common()]
    return {"ok": None, "error": None, "since": None, "failures": counted.total(), "kinds": kinds, "last": None}
