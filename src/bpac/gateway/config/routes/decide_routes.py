"""Settings of a route that decides only: a table ``[routes.NAME]`` with ``decide_only = true``.

Its callers ask their models themselves, and the gateway says whether the draft may be kept (``POST /v1/decide``).
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from bpac.errors import SettingsError
from bpac.gateway.config.models.models import ModelSettings
from bpac.gateway.config.routes.learning import learned_score, open_terms
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.config.secrets import BaseUrl
from bpac.gateway.config.toml_tables import Count, as_table, read_table
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies.stakes import Stakes
from bpac.routing.router import Router

KEY = "decide_only"
# Stands for both models of such a route: the gateway never asks them and knows nothing about them.
OF_CALLERS = ModelSettings("(of the caller)", BaseUrl("http://caller.invalid"), "(of the caller)")
# Keys about models that the gateway would ask, and about answers that it would see.
NOT_HERE = (
    "draft", "expert", "models", "call_prices", "judge", "score", "on_expert_failure", "on_takeover", "allow_force",
    "minimise", "busy_at", "sticky_by", "sticky_idle", "sticky_age", "sticky_requests",
)  # fmt: skip


class DecideRouteSettings(RouteSettings, frozen=True, dict=True, kw_only=True):
    """A route without models: callers report the uncertainty of their drafts, and later the losses.

    Parameters
    ----------
    decide_only: true.
    about: which draft, expert, score and loss the rounds are about, in the operator's words. The gateway cannot see
        when they change; if this text changes, a new game begins.
    features: names of what callers report of each draft beside its uncertainty; scores are learned from it.
    max_tickets: largest number of tickets that one caller may hold undecided on this route; more get status 429.
    """

    decide_only: bool = True
    about: str = ""
    features: tuple[str, ...] = ()
    max_tickets: Count = 256

    def __post_init__(self) -> None:
        if not self.decide_only:
            raise SettingsError("decide_only is true or left out: leave it out, and give draft and expert")
        if self.loss["name"] != "external":
            raise SettingsError(
                f"loss: {self.loss['name']} compares answers, which this route does not see (decide_only): leave loss "
                "out, and report losses to /v1/feedback"
            )
        if self.learn not in (None, False) and not self.features:
            raise SettingsError('learn needs what scores are learned from: list it, as in features = ["draft_tokens"]')
        if isinstance(self.learn, dict) and "embeddings" in self.learn:
            raise SettingsError("learn: embeddings are of prompts, which this route does not see (decide_only)")
        super().__post_init__()

    @cached_property
    def learned(self) -> LearnedScore | None:
        """The settings of scores that new games learn, if callers report what they are learned from."""
        if not self.features or self.learn is False:
            return None
        try:
            return replace(learned_score(self.learn), features=self.features)
        except SettingsError as error:
            raise SettingsError(f"features: {error}") from error

    @property
    def open_terms(self) -> frozenset[str]:
        """The terms that the file does not prescribe."""
        prescribed = {"policy.learn.features", "policy.learn.kind"}
        return open_terms(self.learn) - prescribed | {f"policy.{name}" for name in Stakes._fields}

    def terms(self, router: Router) -> str:
        """What the promise is about, as JSON."""
        terms = {KEY: True, "about": self.about, "loss": self.loss, "router": router.settings.to_json()}
        return json.dumps(terms, sort_keys=True)


def decide_only(tables: object, path: str = "routes") -> tuple[dict[str, Any], dict[str, Any]]:
    """The tables of all other routes, and those of routes that decide only.

    >>> decide_only({"a": {"decide_only": True}, "b": {"expert": "large"}})
    ({'b': {'expert': 'large'}}, {'a': {'decide_only': True}})
    """
    found = {name for name, table in as_table(tables, path).items() if isinstance(table, Mapping) and KEY in table}
    items = as_table(tables, path).items()
    return {name: t for name, t in items if name not in found}, {name: t for name, t in items if name in found}


def read_decide_routes(tables: Mapping[str, Any], path: str = "routes") -> dict[str, DecideRouteSettings]:
    """The routes that decide only, by name."""
    routes = {}
    for name, table in tables.items():
        place = f"{path}.{name}"
        for key in NOT_HERE:
            if key in table:
                raise SettingsError(
                    f"{place}.{key}: a route that decides only has no models: its callers ask their own. Leave {key} "
                    "out, or leave decide_only out"
                )
        loss = table.get("loss", "external")
        if isinstance(loss, str):
            loss = {"name": loss}
        routes[name] = read_table(
            {**table, "loss": loss}, DecideRouteSettings, place, name=name, draft=OF_CALLERS, expert=OF_CALLERS
        )
    return routes
