"""Settings of a route: the table ``[routes.NAME]``."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from bpac.errors import InputError, SettingsError
from bpac.gateway.config.models.models import HEADER_NAME, ModelSettings
from bpac.gateway.config.routes.auto_score import NOT_CHOSEN, ScoreToBeChosen, is_auto
from bpac.gateway.config.routes.cascades import call_prices, check_cascade
from bpac.gateway.config.routes.learning import Learn, learned_score, open_terms
from bpac.gateway.config.routes.losses import DEFAULT_LOSS, GRADED
from bpac.gateway.config.routes.sticky import check_sticky, sticky_terms
from bpac.gateway.config.routes.switches import check_switch
from bpac.gateway.config.toml_tables import ConfigTable, Count, Seconds
from bpac.grading.equality import RULES
from bpac.hours import MINUTES_OF_DAY, Hours
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.cascade.spreading import WIDTH as SPREAD
from bpac.routing.coins import Coins
from bpac.routing.dithering import WIDTH
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies import Policy, Portfolio, named_policy
from bpac.routing.policies.stakes import Stakes
from bpac.routing.router import Router
from bpac.scores import EquallySure, FirstTokens, Otherwise, Score, has_few_values, named_score

DEFAULT_SCORE = "mean_token_probability"
# The numbers that are known of each answer of a cascade besides its score: the logarithm of its length.
CASCADE_FEATURES = 1


class RouteSettings(ConfigTable, frozen=True, dict=True):
    """One route: two models, a score, a loss and the promise.

    Parameters
    ----------
    name: the name of the table, which clients send as ``model``.
    draft, expert: the two models.
    epsilon, alpha, explore: as for ``Router``.
    policy, memory, assume, alpha_epochs: as for ``Router``.
    score_settings: the score as it is in the file: its name, or a table with its name and settings.
    loss: how a draft is graded: the name of a loss in ``name``, and its settings.
    judge: the model that grades, for the loss ``judge``.
    segment_by: what splits the traffic into separate games: ``header:NAME``, ``metadata:FIELD``, ``api_key``,
        ``user``, or ``model`` (clients send ``ROUTE:SEGMENT``); None for one game.
    most_segments: largest number of games; all further segments share the last one.
    alpha_scope: whether alpha is the probability of failure for ``each`` segment or for ``all`` of them together.
    sticky_by: what names the conversation or the episode of an agent that a request belongs to, as ``segment_by`` names
        its segment; its later requests follow the decision of its first one. None if every request is decided.
    sticky_idle, sticky_age: seconds without a request after which an episode is over, and seconds after its decision.
    sticky_requests: requests after which an episode is over.
    on_expert_failure: ``error``, or ``draft``: the draft is served and counted as loss 1.
    on_takeover: what happens to a draft whose first tokens were scored and not accepted: ``cancel`` it unless its grade
        can still raise the threshold, or always ``finish`` it in the background.
    deadline: seconds after which an outcome that has not arrived counts as loss 1.
    draft_deadline: seconds after which a draft that has not arrived no longer delays what later requests teach.
    max_owed: as for ``Router``.
    allow_force: whether every caller may choose the model of a request (``x-bpac-force``), and not only operators.
    learn: whether scores are learned on the way from what is known of each draft; or a table with settings of
        ``LearnedScore``, ``fit_at``, ``shares``, ``least_losses``, ``ridge``, ``least_gain``, and with ``embeddings``,
        whether the prompt is embedded. By default new games learn where the policy can, and games that began otherwise
        go on.
    task_by: what names the task of a request, which scores are learned from, as ``segment_by`` names its segment.
    minimise: ``calls`` of the expert, or ``money``: then most requests are not drafted while drafts cost more than they
        save.
    cheap_hours: hours in which the expert costs less; more audits are made in them.
    cheap_price: price of an expert call in these hours, as a share of the price in others.
    busy_at: calls of the expert's model under way from which on audits are made at the least rate; None for no limit.
    models: all models of a cascade, in order, the last one the reference; empty for a pair.
    call_prices: what a call of each model of a cascade costs, in any unit (default: the models' prices of
        generated tokens if they rise, otherwise four times the one before).
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
    score_settings: str | dict[str, Any] = field(default=DEFAULT_SCORE, name="score")
    loss: dict[str, Any] = field(default_factory=lambda: {"name": DEFAULT_LOSS})
    judge: ModelSettings | None = None
    segment_by: str | None = None
    task_by: str | None = None
    most_segments: Count = 100
    alpha_scope: Literal["each", "all"] = "each"
    sticky_by: str | None = None
    sticky_idle: Seconds = 1800.0
    sticky_age: Seconds = 86400.0
    sticky_requests: Count = 1000
    on_expert_failure: Literal["error", "draft"] = "error"
    on_takeover: Literal["cancel", "finish"] = "cancel"
    deadline: Seconds = 3600.0
    draft_deadline: Seconds = 60.0
    max_owed: Count = 4096
    allow_force: bool = False
    minimise: Literal["calls", "money"] = "calls"
    cheap_hours: tuple[Hours, ...] = ()
    cheap_price: Annotated[float, Meta(gt=0, le=1)] = 0.5
    busy_at: Count | None = None
    learn: Learn = None
    models: tuple[ModelSettings, ...] = ()
    call_prices: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.sticky_by is not None:
            check_sticky(self)
        for key, by in (("segment_by", self.segment_by), ("task_by", self.task_by)):
            if by is not None and not _splits(by):
                raise SettingsError(f"{key} must be header:NAME, metadata:FIELD, api_key, user or model, got {by!r}")
        if self.policy == "oracle":
            raise SettingsError("policy: the oracle needs to know all losses, so it is for replays only")
        try:
            _ = self.score
        except (InputError, TypeError) as error:
            raise SettingsError(f"score: {error}") from error
        if not self.draft.gives_logprobs and self.score.needs.logprobs and not isinstance(self.score, Otherwise):
            raise SettingsError(
                f"score: {self.score_name} needs log-probabilities, but requests to models.{self.draft.name} are sent "
                'without logprobs (drop, or api = "messages", which has none): set score = "auto" or '
                '"agreement_and_confidence", or choose another draft'
            )
        if self.is_switch:
            check_switch(self)
        if self.models:
            check_cascade(self)
        elif self.call_prices:
            raise SettingsError("call_prices is for routes with more than two models: list them in models")
        self.new_router()
        if self.minimise == "money":
            models = [self.draft, self.expert, *([self.judge] if self.judge else [])]
            for model in models:
                if model.price is None or model.price.input is None:
                    raise SettingsError(
                        f"minimise: money needs the prices of models.{model.name}: give price = {{ input, output }}"
                    )

    @cached_property
    def score(self) -> Score:
        """Computes how uncertain a draft is."""
        return ScoreToBeChosen() if self.auto_score else named_score(**self._named_score_settings)

    @cached_property
    def auto_score(self) -> bool:
        """Whether the score is still to be chosen (``score = "auto"``)."""
        return is_auto(self._named_score_settings)

    @cached_property
    def learned(self) -> LearnedScore | None:
        """The settings of scores that new games learn, if any."""
        wanted = self._can_learn if self.learn is None else self.learn is not False
        return learned_score(self.learn, together=self.segment_by is not None) if wanted else None

    @cached_property
    def _named_policy(self) -> Policy:
        return named_policy(self.policy, self.memory, self.assume)

    @property
    def _can_learn(self) -> bool:
        policy = self._named_policy
        if self.is_switch:
            return False  # all drafts or none: there is nothing to tell them apart by
        # With graded losses a share of α for learned scores costs more than they are likely to gain (docs/learning.md).
        return not self.models and isinstance(policy, Portfolio) and policy.assume == "iid" and not self._is_graded

    @property
    def _is_graded(self) -> bool:
        return self.loss["name"] in GRADED

    @property
    def open_terms(self) -> frozenset[str]:
        """The terms that the file does not prescribe: a game goes on with those it began with, whatever they are."""
        prices = {"policy.prices"} if self.models and not self.call_prices else set[str]()
        return open_terms(self.learn) | {f"policy.{name}" for name in Stakes._fields} | prices

    @cached_property
    def router_policy(self) -> Policy:
        """The policy of the routers of new games."""
        policy = self._named_policy
        if isinstance(policy, Portfolio) and policy.assume == "iid" and has_few_values(self.score):
            policy = replace(policy, dither=WIDTH)
        if isinstance(policy, Portfolio) and self._is_graded:
            policy = policy.for_graded_losses()
        if self.learned is None:
            return policy
        if not isinstance(policy, Portfolio):
            raise SettingsError(f'learn belongs to policy "portfolio", not to "{self.policy}": leave it out')
        return replace(policy, learn=self.learned)

    @cached_property
    def mean_price(self) -> float:
        """The price of an expert call over a day with even traffic, as a share of the price outside cheap hours."""
        cheap = sum(any(hours.has(60.0 * minute) for hours in self.cheap_hours) for minute in range(MINUTES_OF_DAY))
        return 1.0 - (1.0 - self.cheap_price) * cheap / MINUTES_OF_DAY

    @cached_property
    def prices_audits(self) -> bool:
        """Whether the exploration rate depends on what an audit costs at the moment."""
        return bool(self.cheap_hours) or self.busy_at is not None

    @property
    def is_switch(self) -> bool:
        """Whether the route asks if the draft's model may replace the expert as a whole (``score = "none"``)."""
        return isinstance(self.score, EquallySure)

    @property
    def score_name(self) -> str:
        """The name of the score."""
        return str(self._named_score_settings["name"])

    @property
    def _named_score_settings(self) -> dict[str, Any]:
        settings = self.score_settings
        return {"name": settings} if isinstance(settings, str) else {"name": DEFAULT_SCORE, **settings}

    @property
    def first_tokens(self) -> int | None:
        """The number of tokens of a draft after which its score is known; None if the whole draft is needed."""
        if self.score.needs.suffix:
            return None  # the draft ends with its stated confidence, which is cut off before the draft is served
        if self.is_switch:
            return 1  # known from the start; the first token shows that there is a draft
        score = self.score.score if isinstance(self.score, Otherwise) else self.score
        return score.count if isinstance(score, FirstTokens) else None

    @property
    def _confidence_terms(self) -> list[str]:
        # Games in which such requests had no score must not be continued.
        return ["confidence is asked for separately with tools and JSON"] if self.score.needs.suffix else []

    def new_router(
        self,
        alpha: float | None = None,
        journal: Callable[[Any], object] | None = None,
        coins: Coins | None = None,
    ) -> Router:
        """A router with the promise of this route."""
        if self.models:
            prices = call_prices(self).prices
            spread = SPREAD if has_few_values(self.score) else 0.0
            return CascadeRouter(
                self.epsilon,
                Cascade(prices=prices, features=CASCADE_FEATURES, memory=self.memory or "alarmed", spread=spread),
                self.alpha if alpha is None else alpha,
                explore=self.explore,
                alpha_epochs=self.alpha_epochs,
                max_owed=self.max_owed,
                coins=coins,
                journal=journal,
            )
        return Router(
            self.epsilon,
            self.alpha if alpha is None else alpha,
            self.router_policy,
            explore=self.explore,
            alpha_epochs=self.alpha_epochs,
            max_owed=self.max_owed,
            coins=coins,
            journal=journal,
        )

    @property
    def _judge_terms(self) -> list[Any] | None:
        # Without its adaptation: a judge is sent messages only, and nothing else could be renamed or dropped.
        judge = self.judge
        return [judge.model, judge.body, *judge.other_names, *judge.api_terms] if judge else None

    def terms(self, router: Router) -> str:
        """What the promise is about, as JSON: if any of it changes, a new game begins."""
        if self.auto_score:
            raise SettingsError(f"routes.{self.name}.{NOT_CHOSEN}")  # a game is about one score
        return json.dumps(
            {
                "draft": [*self.draft.terms, *self._confidence_terms],
                "expert": self.expert.terms,
                "judge": self._judge_terms,
                "score": self.score_settings,
                "loss": self.loss,
                "verdicts": RULES,
                "router": router.settings.to_json(),
                **sticky_terms(self),
                **({"models": [model.terms for model in self.models]} if self.models else {}),
            },
            sort_keys=True,
            default=str,  # TOML has dates
        )


def _splits(segment_by: str) -> bool:
    """Whether traffic can be split by this."""
    kind, _, name = segment_by.partition(":")
    if kind == "header":
        return bool(HEADER_NAME.fullmatch(name))
    return bool(name) if kind == "metadata" else segment_by in ("api_key", "user", "model")
