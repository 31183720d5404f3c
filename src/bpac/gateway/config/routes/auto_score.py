"""``score = "auto"``: the best score that the draft's model allows, chosen when the gateway opens the route's game.

The configuration only says that a score is to be chosen. The gateway asks the model and puts the chosen score in its
place (``bpac.gateway.auto_scores``), so that everything else, the terms of games included, knows a fixed score.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bpac.answer import Answer
from bpac.errors import NoScore, SettingsError
from bpac.scores import Needs

if TYPE_CHECKING:
    from bpac.gateway.config.file import Config
    from bpac.gateway.config.routes.routes import RouteSettings

AUTO = "auto"
# From the best to the least: log-probabilities cost nothing; the next needs two drafts, the last five.
CANDIDATES = ("mean_token_probability", "agreement_and_confidence", "self_consistency")
NOT_CHOSEN = (
    'score = "auto" is chosen when the gateway starts, and the store has no game of this route yet: start the gateway '
    "once, or name a score"
)


@dataclass(frozen=True, slots=True)
class ScoreToBeChosen:
    """Stands for a score until one has been chosen: it needs nothing, and no draft has a score."""

    @property
    def needs(self) -> Needs:
        """Nothing."""
        return Needs()

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """Raise ``NoScore``."""
        raise NoScore(NOT_CHOSEN)


def is_auto(settings: Mapping[str, Any]) -> bool:
    """Whether the score of a route is to be chosen; ``SettingsError`` if settings of a score are given beside it.

    Parameters
    ----------
    settings: the name and the settings of the score.
    """
    if settings.get("name") != AUTO:
        return False
    if len(settings) > 1:
        raise SettingsError(f'score "{AUTO}" has no settings: leave them out, or name a score')
    return True


def with_scores(config: "Config", scores: Mapping[str, str]) -> "Config":
    """The configuration with the scores that were chosen, by route."""
    chosen = {name: with_score(config.routes[name], score) for name, score in scores.items() if name in config.routes}
    return replace(config, routes={**config.routes, **chosen}) if chosen else config


def with_score(route: "RouteSettings", score: str) -> "RouteSettings":
    """The settings of a route with another score."""
    return replace(route, score_settings=score)
