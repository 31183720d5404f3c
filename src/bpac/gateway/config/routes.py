"""Settings of a route: two models, a score, a loss and a promise."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bpac.arguments import one_of, positive, whole
from bpac.errors import SettingsError
from bpac.gateway.config.models import HEADER_NAME, ModelSettings
from bpac.gateway.config.tables import Section, at, named
from bpac.grading.equality import RULES
from bpac.routing.coins import Coins
from bpac.routing.router import Router
from bpac.scores import FirstTokens, Otherwise, Score, named_score


def _at_least_one(value: Any, name: str) -> None:
    whole(value, name, 1)


def _true_or_false(value: Any, name: str) -> None:
    if not isinstance(value, bool):
        raise SettingsError(f"{name} must be true or false, got {value!r}")


# The losses, and what checks each of their settings.
LOSSES: Mapping[str, Mapping[str, Callable[[Any, str], object]]] = {
    "answer": {"equal": lambda value, name: one_of(value, name, ("final", "text", "mathematics"))},
    "judge": {
        "judge": lambda value, name: None,
        "votes": _at_least_one,
        "attempts": _at_least_one,
        "timeout": positive,
    },
    "embedding": {},
    "tool_call": {"ordered": _true_or_false},
    "external": {},
}
# What may divide the traffic, by itself or followed by a name.
SEGMENTS_BY, SEGMENTS_BY_NAME = ("api_key", "user", "model"), ("header", "metadata")


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """One route: two models, a score, a loss, a promise.

    Parameters
    ----------
    name: what clients ask for as ``model``.
    draft, expert: the two models.
    epsilon, alpha, explore: as for ``Router``.
    policy, memory, assume, alpha_epochs: as for ``Router``.
    score: how unsure a draft is.
    score_settings: the same as the configuration puts it.
    loss: how a draft is graded: the name in ``name``, and its settings.
    judge: the model that grades, for ``loss = "judge"``.
    segment_by: what divides the traffic: ``header:NAME``, ``metadata:FIELD``, ``api_key``, ``user``, or
        ``model`` (clients ask for ``ROUTE:SEGMENT``); none for nothing.
    most_segments: how many games there may be; the last one is shared by all further segments.
    alpha_scope: whether alpha is the chance of failure of ``each`` segment or of ``all`` together.
    on_expert_failure: ``error``, or ``draft``: the draft is served and counted as loss 1.
    on_takeover: what becomes of a draft whose beginning was scored and not accepted: ``cancel`` it unless its grade
        can still lift the threshold, or always ``finish`` it in the background.
    deadline: seconds after which an outcome that has not come is given up.
    draft_deadline: seconds after which a draft that has not come no longer holds up the requests that arrived later.
    max_owed: as for ``Router``.
    """

    name: str
    draft: ModelSettings
    expert: ModelSettings
    epsilon: float
    alpha: float = 0.1
    explore: Literal["serve", "shadow"] = "serve"
    policy: str = "portfolio"
    memory: str | None = None
    assume: str | None = None
    alpha_epochs: Literal["all", "each"] = "all"
    score: Score = field(default_factory=lambda: named_score("mean_token_probability"))
    score_settings: Any = "mean_token_probability"
    loss: Mapping[str, Any] = field(default_factory=lambda: {"name": "answer"})
    judge: ModelSettings | None = None
    segment_by: str | None = None
    most_segments: int = 100
    alpha_scope: Literal["each", "all"] = "each"
    on_expert_failure: Literal["error", "draft"] = "error"
    on_takeover: Literal["cancel", "finish"] = "cancel"
    deadline: float = 3600.0
    draft_deadline: float = 60.0
    max_owed: int = 4096

    @classmethod
    def read(cls, name: str, table: Section, models: Mapping[str, ModelSettings]) -> "RouteSettings":
        """The settings in a table ``[routes.NAME]``."""

        def choice(key: str, choices: tuple[str, ...]) -> Any:
            value = table.take(key, str, choices[0])
            one_of(value, table.at(key), choices)
            return value

        score_settings = table.peek("score") or "mean_token_probability"
        loss = _loss(table, models)
        route = cls(
            name=name,
            draft=_model(table, "draft", models),
            expert=_model(table, "expert", models),
            epsilon=table.take("epsilon", float),
            alpha=table.take("alpha", float, 0.1),
            explore=choice("explore", ("serve", "shadow")),
            policy=table.take("policy", str, "portfolio"),
            memory=table.take("memory", str, None),
            assume=table.take("assume", str, None),
            alpha_epochs=choice("alpha_epochs", ("all", "each")),
            score=named(table, "score", "mean_token_probability", named_score),
            score_settings=score_settings,
            loss=loss,
            judge=models[loss["judge"]] if "judge" in loss else None,
            segment_by=table.take("segment_by", str, None),
            most_segments=whole(table.take("most_segments", int, 100), table.at("most_segments"), 1),
            alpha_scope=choice("alpha_scope", ("each", "all")),
            on_expert_failure=choice("on_expert_failure", ("error", "draft")),
            on_takeover=choice("on_takeover", ("cancel", "finish")),
            deadline=positive(table.take("deadline", float, 3600.0), table.at("deadline")),
            draft_deadline=positive(table.take("draft_deadline", float, 60.0), table.at("draft_deadline")),
            max_owed=whole(table.take("max_owed", int, 4096), table.at("max_owed"), 1),
        )
        kind, _, field_name = (route.segment_by or "").partition(":")
        by_name = kind in SEGMENTS_BY_NAME and bool(
            HEADER_NAME.fullmatch(field_name) if kind == "header" else field_name
        )
        if route.segment_by is not None and route.segment_by not in SEGMENTS_BY and not by_name:
            raise SettingsError(
                f"{table.at('segment_by')} must be header:NAME, metadata:FIELD, api_key, user or model, "
                f"got {route.segment_by!r}"
            )
        if route.policy == "oracle":
            raise SettingsError(f"{table.at('policy')}: the oracle needs to know all losses, and is for replays only")
        table.end()
        at(table.path, route.new_router)
        return route

    def new_router(
        self,
        alpha: float | None = None,
        journal: Callable[[Any], object] | None = None,
        coins: Coins | None = None,
    ) -> Router:
        """A router with the promise of this route."""
        return Router(
            self.epsilon,
            self.alpha if alpha is None else alpha,
            self.policy,
            memory=self.memory,
            assume=self.assume,
            explore=self.explore,
            alpha_epochs=self.alpha_epochs,
            max_owed=self.max_owed,
            coins=coins,
            journal=journal,
        )

    def terms(self, router: Router) -> str:
        """What the promise is about; if any of it changes, another game begins."""
        return json.dumps(
            {
                "draft": [self.draft.model, self.draft.body],
                "expert": [self.expert.model, self.expert.body],
                "judge": [self.judge.model, self.judge.body] if self.judge else None,
                "score": self.score_settings,
                "loss": self.loss,
                "verdicts": RULES,
                "router": router.settings.to_json(),
            },
            sort_keys=True,
            default=str,  # TOML knows dates
        )

    @property
    def first_tokens(self) -> int | None:
        """After how many tokens of the draft its score is known; none if only after the last."""
        if self.score.needs.suffix:
            return None  # a draft that ends in its confidence, for want of another score, is cut before it is shown
        score = self.score.score if isinstance(self.score, Otherwise) else self.score
        return score.count if isinstance(score, FirstTokens) else None


def _model(table: Section, key: str, models: Mapping[str, ModelSettings]) -> ModelSettings:
    name = table.take(key, str)
    if name not in models:
        raise SettingsError(f"{table.at(key)}: there is no model {name!r}; there are {', '.join(models) or 'none'}")
    return models[name]


def _loss(table: Section, models: Mapping[str, ModelSettings]) -> Mapping[str, Any]:
    def make(name: str, **settings: Any) -> Mapping[str, Any]:
        one_of(name, "name", tuple(LOSSES))
        known = LOSSES[name]
        for key, value in settings.items():
            if key not in known:
                raise SettingsError(f'loss "{name}" has no setting {key!r}; it has {", ".join(known) or "none"}')
            known[key](value, key)
        if name == "judge" and settings.get("judge") not in models:
            raise SettingsError(f"judge must be the name of a model, one of {', '.join(models)}")
        return {"name": name, **settings}

    loss: Mapping[str, Any] = named(table, "loss", "answer", make)
    return loss
