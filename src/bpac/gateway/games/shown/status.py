"""Where games stand: the values behind ``/v1/status``, ``/metrics`` and ``bpac status``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from bpac.betting.bounds.certificate import Certificate
from bpac.dashboard.history.history import History
from bpac.dashboard.history.refusals import RefusalReport
from bpac.dashboard.history.unscored import UnscoredReport
from bpac.dashboard.state import State, state_of
from bpac.gateway.games.money.savings import SavingsReport
from bpac.gateway.games.shown.troubles import GameTrouble, refused_by_expert, troubles_of
from bpac.gateway.games.terms import score_of
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.journal.units import Unit, unit_of
from bpac.routing.learning.standing import ScoreStanding
from bpac.routing.router import Router
from bpac.routing.summary import Summary
from bpac.routing.switching import SwitchVerdict, switch_verdict
from bpac.stores.store import Game, LostEntries


@dataclass(frozen=True, slots=True)
class GameStatus:
    """Where one game stands.

    Parameters
    ----------
    route, segment: the route, and the segment of its traffic; empty if the route is not divided.
    number: the number of the game in its store.
    summary: the summary of its router.
    state: whether it routes, in one word.
    unscored: the requests without a score.
    refusals: the requests that only the expert refused.
    savings: what was spent and saved.
    troubles: what an operator should repair (default: nothing).
    scores: the scores that compete, where scores are learned (default: none).
    stages: name of each model of a cascade, and how many requests it answered (default: no cascade).
    score: name of the score that it is about; empty if it is not known.
    shared: which replica folds the game and how far it is, where several gateways share it, as JSON values (default:
        none, one gateway has it).
    switch: whether the draft's model may replace the expert, in a game that asks for it (default: none).
    unit: what a round is: a ``request``, or an ``episode``, where sessions are sticky (default: a request).
    sessions: the sessions of a running gateway, as JSON values (default: none, they are not sticky or it does not run).
    """

    route: str
    segment: str
    number: int
    summary: Summary
    state: State
    unscored: UnscoredReport
    refusals: RefusalReport
    savings: SavingsReport
    troubles: Sequence[GameTrouble] = ()
    scores: Sequence[ScoreStanding] = ()
    stages: Sequence[Mapping[str, Any]] = ()
    shared: Mapping[str, Any] | None = None
    switch: SwitchVerdict | None = None
    unit: Unit = "request"
    sessions: Mapping[str, Any] | None = None
    score: str = ""

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values, without the name of the route."""
        return {
            "segment": self.segment,
            "game": self.number,
            **self.summary.to_json(),
            "state": self.state,
            "unit": self.unit,
            "score": self.score,
            "unscored": self.unscored.to_json(),
            "refusals": self.refusals.to_json(),
            "troubles": [trouble.to_json() for trouble in self.troubles],
            "savings": self.savings.to_json(),
            **({"scores": [score._asdict() for score in self.scores]} if self.scores else {}),
            **({"shared": dict(self.shared)} if self.shared is not None else {}),
            **({"switch": self.switch.to_json()} if self.switch is not None else {}),
            **({"sessions": dict(self.sessions)} if self.sessions is not None else {}),
            **({"stages": [dict(stage) for stage in self.stages], "cost": self.cost} if self.stages else {}),
        }

    @property
    def cost(self) -> dict[str, float] | None:
        """Price of all calls per request of a cascade, and of always asking its last model; none for a pair."""
        if not self.stages:
            return None
        total = sum(stage["asked"] * stage["call_price"] for stage in self.stages)
        return {"mean": total / max(self.summary.steps, 1), "always": self.stages[-1]["call_price"]}

    @classmethod
    def from_json(cls, route: str, values: Mapping[str, Any]) -> "GameStatus":
        """The status that ``to_json`` wrote.

        Parameters
        ----------
        route: the name of the route.
        values: what ``/v1/status`` says about one of its games.
        """
        bounds = values["certificate"]
        certificate = Certificate(**{part.name: bounds[part.name] for part in fields(Certificate)})
        plain = {part.name: values[part.name] for part in fields(Summary) if part.name in values}
        return cls(
            route,
            values["segment"],
            values["game"],
            Summary(
                **plain | {"certificate": certificate, "best_average_upper": bounds.get("best_average_upper")},
            ),
            values["state"],
            UnscoredReport(**values["unscored"]),
            RefusalReport(**values["refusals"]),
            SavingsReport(**values["savings"]),
            tuple(GameTrouble(**trouble) for trouble in values.get("troubles", ())),
            tuple(ScoreStanding(**score) for score in values.get("scores", ())),
            tuple(values.get("stages", ())),
            values.get("shared"),
            SwitchVerdict.from_json(values["switch"]) if "switch" in values else None,
            values.get("unit", "request"),
            values.get("sessions"),
            values.get("score", ""),
        )


def game_status(
    game: Game,
    router: Router,
    history: History,
    savings: SavingsReport,
    scores: GameTrouble | None = None,
    *,
    models: Sequence[str] = (),
) -> GameStatus:
    """Where a game stands.

    Parameters
    ----------
    game: the game in its store.
    router, history: its state.
    savings: what was spent and saved in it.
    scores: what is wrong with its scores (default: nothing is known to be).
    models: the names of the models of a cascade (default: no cascade).
    """
    summary = router.summary()
    unscored = history.unscored.report(router.step)
    state = state_of(router, history, summary)
    only_unscored = history.unscored.only(summary.steps)
    refusals = history.refusals.report(summary.refused, summary.expert_calls)
    troubles = troubles_of(state == "not_routing", only_unscored, unscored, scores, refused_by_expert(history))
    return GameStatus(
        game.route,
        game.segment,
        game.number,
        summary,
        state,
        unscored,
        refusals,
        savings,
        troubles,
        scores=router.scores(),
        stages=stages_of(router, models),
        switch=None if history.switch is None else switch_verdict(router, history.switch),
        unit=unit_of(game.terms),
        score=score_of(game.terms),
    )


def stages_of(router: Router, models: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """The models of a cascade, how many requests each answered, and what share; empty for a pair.

    Parameters
    ----------
    router: the router of the game.
    models: the names of its models.
    """
    if not isinstance(router, CascadeRouter) or not models:
        return ()
    total = max(router.step, 1)
    return tuple(
        {
            "stage": stage,
            "model": name,
            "asked": router.asked[stage],
            "answered": count,
            "share": count / total,
            "call_price": price,
        }
        for (stage, count), name, price in zip(router.answered.items(), models, router.policy.prices, strict=True)
    )


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    """Where a running gateway stands.

    Parameters
    ----------
    routes: the games of each route.
    losses: journals that lost acknowledged entries.
    connections: open connections of callers.
    refused: requests that a limit or a check refused, by reason.
    models: what is known about each model, as JSON values (default: nothing).
    store: what is known about the store, as JSON values (default: nothing).
    warnings: settings that do not suit the traffic, as JSON values (default: none).
    upkeep: work beside the requests that fails at present, as JSON values (default: none).
    """

    routes: Mapping[str, Sequence[GameStatus]]
    losses: Sequence[LostEntries]
    connections: int
    refused: Mapping[str, int]
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    store: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[Mapping[str, Any]] = ()
    upkeep: Sequence[Mapping[str, Any]] = ()

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "routes": {name: [game.to_json() for game in games] for name, games in self.routes.items()},
            "models": {name: dict(model) for name, model in self.models.items()},
            "store": dict(self.store),
            "losses": [loss._asdict() for loss in self.losses],
            "warnings": [dict(warning) for warning in self.warnings],
            "upkeep": [dict(work) for work in self.upkeep],
            "callers": {"connections": self.connections, "refused": dict(self.refused)},
        }
