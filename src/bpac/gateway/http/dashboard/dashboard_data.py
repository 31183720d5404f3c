"""What ``/dashboard/data`` says about the whole gateway: its models, and the troubles that an operator should see."""

from collections.abc import Mapping
from typing import Any

from bpac.dashboard.replicas import archive_troubles, process_troubles, replica_troubles
from bpac.dashboard.troubles import (
    ScoredGame,
    missed_tokens,
    model_troubles,
    refusal_troubles,
    reload_trouble,
    score_troubles,
    store_trouble,
    unscored_troubles,
    upkeep_trouble,
    warning_trouble,
)
from bpac.gateway.config.file import Config
from bpac.gateway.games.money.savings import Prices
from bpac.gateway.games.shown.shown_game import ShownGame
from bpac.gateway.service import Service


def troubles_document(service: Service, models: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The troubles of a gateway, the most serious first, as JSON values.

    Parameters
    ----------
    service: the gateway.
    models: what is known about each model, as in ``/v1/status``.
    """
    games = [_scored_game(game) for game in service.live_games()]
    store = service.store_status()
    failing = {name for name, model in models.items() if model["health"]["ok"] is False}
    troubles = [] if store["ok"] else [store_trouble(store)]
    troubles += model_troubles(models, _routes_by_model(service.config))
    troubles += unscored_troubles(games)
    troubles += refusal_troubles(games)
    troubles += score_troubles(games)
    troubles += map(warning_trouble, service.warnings())
    troubles += map(upkeep_trouble, service.upkeep.to_json())
    if service.reloads is not None and service.reloads.failure is not None:
        troubles.append(reload_trouble(service.reloads.failure))
    shared = service.shared_games()
    troubles += replica_troubles(shared) + archive_troubles(shared)
    if (workers := service.workers()) is not None:
        troubles += process_troubles(workers)
    return [trouble.to_json() for trouble in troubles] + service.monitor.troubles(failing)


def unscored_cost(game: ShownGame) -> float:
    """Tokens that the requests of a game without a score would have saved, estimated from the others."""
    unscored = game.history.unscored.reasons.total()
    return missed_tokens(game.router.step, _tokens_saved(game), unscored) if unscored else 0.0


def _scored_game(game: ShownGame) -> ScoredGame:
    wrong = game.score_trouble
    shown = None if wrong is None else (wrong.what, wrong.cost, wrong.remedy)
    return ScoredGame(game.route.name, game.router.step, game.history, lambda: _tokens_saved(game), shown)


def _tokens_saved(game: ShownGame) -> float:
    return game.savings.report(Prices.of(game.route)).tokens_saved


def _routes_by_model(config: Config) -> dict[str, list[str]]:
    routes: dict[str, list[str]] = {}
    for name, route in config.routes.items():
        used = (route.draft, route.expert, route.judge, *route.models)
        models = {model.name for model in used if model is not None}
        for model in sorted(models):
            routes.setdefault(model, []).append(name)
    return routes
