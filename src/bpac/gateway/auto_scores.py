"""Choosing scores (``score = "auto"``) when a gateway starts or reloads its configuration.

1. A score is part of a game's terms: a threshold that is certified for one score says nothing about another. So the
   score is chosen once, before the route's game is opened, and then stands in the game's terms like any other.
2. A route whose game has begun goes on with the score of that game, also if the model does not answer at the moment.
   The store is the only memory: all processes and all gateways that share it find the same score.
3. Only if the model answers, twice, and its drafts cannot have that score any more, another one is chosen. Its terms
   differ, so that a new game begins, and the log says so.
4. A first score is chosen only from an answer of the model: while it does not answer, the gateway does not start,
   instead of guessing a score that the route would keep. Gateways that begin at once take the choice of the first.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from bpac.errors import SettingsError
from bpac.gateway.chat.upstreams.upstream import Upstream
from bpac.gateway.config.file import Config
from bpac.gateway.config.models.models import ModelSettings
from bpac.gateway.config.routes.auto_score import CANDIDATES, with_scores
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.restoring.recorded_scores import recorded_score
from bpac.gateway.health.findings import Checked
from bpac.gateway.health.records import QuietRecord
from bpac.gateway.health.score_probe import allows
from bpac.models.connections import Session
from bpac.stores import Store
from bpac.stores.store import Game

log = logging.getLogger("bpac.gateway")

# Seconds for which a route whose game has begun waits for an answer of its model.
PATIENCE = 5.0
# Of several gateways that choose a score for the same game, has all take that of the first.
Agree = Callable[[RouteSettings, Game | None, str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class ChosenScore:
    """A score that was chosen for a route.

    Parameters
    ----------
    name: its name.
    why: why this one, in a few words.
    instead_of: the score of the game before, which drafts cannot have any more (default: none, nothing has changed).
    """

    name: str
    why: str
    instead_of: str | None = None


async def alone(route: RouteSettings, latest: Game | None, score: str) -> str:
    """The choice of a gateway that shares its games with no other."""
    return score


@dataclass(frozen=True, slots=True)
class ScoreChooser:
    """Chooses the scores of a configuration.

    Parameters
    ----------
    config: the configuration.
    session: connections to model servers.
    store: the games that have begun; none if it is not known.
    agree: has all gateways take the same score (default: there is only one gateway).
    probed: what models answered, by model and score; each is asked once.
    """

    config: Config
    session: Session
    store: Store | None
    agree: Agree = alone
    probed: dict[tuple[str, str], Checked | None] = field(default_factory=dict)

    async def chosen(self) -> tuple[Config, dict[str, ChosenScore]]:
        """The configuration with all scores, and those that were chosen, by route."""
        found = {name: await self.of(route) for name, route in self.config.routes.items() if route.auto_score}
        for name, score in found.items():
            log.info('score = "auto": %s (%s)', score.name, score.why, extra={"route": name})
        return with_scores(self.config, {name: score.name for name, score in found.items()}), found

    async def of(self, route: RouteSettings) -> ChosenScore:
        """The score of a route; ``SettingsError`` if its model does not answer and no game has begun."""
        before = recorded_score(self.store, route) if self.store is not None else None
        lost: str | None = None
        if before is not None:
            score, game = before
            seconds = min(PATIENCE, self.config.probe_timeout)
            said = ""
            for _ in range(2):  # one answer without log-probabilities may be an accident
                fault = await self._fault(route, score, seconds)
                if fault is None or fault.level == "ok":
                    return ChosenScore(score, f"game {game.number} began with it")
                said = fault.message
                self.probed.clear()
            lost = score
            log.warning(
                'score = "auto": drafts cannot have the score %s of game %d any more (%s): another score is chosen, '
                "and a new game begins",
                score,
                game.number,
                said,
                extra={"route": route.name},
            )
        for score in CANDIDATES:
            found = await self._fault(route, score, self.config.probe_timeout)
            if found is None:
                names = ", ".join(f"models.{model.name}" for model in _drafting(route))
                raise SettingsError(
                    f'routes.{route.name}.score: "auto" is chosen from an answer of {names}, and there is none: start '
                    "the model (bpac doctor says what is wrong), or name a score"
                )
            if found.level == "ok":
                games = self.store.games() if self.store is not None else []
                latest = next((game for game in reversed(games) if game.route == route.name), None)
                agreed = await self.agree(route, latest, score)
                why = found.message if agreed == score else "another gateway chose it before"
                return ChosenScore(agreed, why, lost if agreed != lost else None)
        raise SettingsError(f"routes.{route.name}.score: drafts cannot have any score: name another draft")

    async def _fault(self, route: RouteSettings, score: str, seconds: float) -> Checked | None:
        """The finding about all models that draft: the first that is wrong; none if one of them does not answer."""
        found: Checked | None = None
        for model in _drafting(route):
            answers = [await self._asked(label, one, score, seconds) for label, one in model.servers().items()]
            known = [answer for answer in answers if answer is not None]
            if not known:  # a deployment that is down may be ignored, a model may not
                return None
            found = next((answer for answer in known if answer.level != "ok"), known[0])
            if found.level != "ok":
                return found
        return found

    async def _asked(self, label: str, model: ModelSettings, score: str, seconds: float) -> Checked | None:
        if (label, score) not in self.probed:
            server = Upstream(model, self.session, record=QuietRecord(model.name), limits=self.config.limits)
            self.probed[label, score] = await allows(server, score, seconds)
        return self.probed[label, score]


def _drafting(route: RouteSettings) -> list[ModelSettings]:
    """The models of a route whose answers are scored."""
    return list(route.models[:-1]) or [route.draft]
