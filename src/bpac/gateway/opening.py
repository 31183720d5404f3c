"""Opening what a configuration needs to answer requests: its models, its routes with their games, its single routes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bpac.gateway.chat.experts.expert import Expert, ExpertLoad
from bpac.gateway.chat.experts.grading import judged_by
from bpac.gateway.chat.outside import EFFORT, FORCED, SINGLE_MODEL, AnsweredBy, OutsideAnswers, effort_key
from bpac.gateway.chat.routes.cascade_route import CascadeExpert, CascadeRoute
from bpac.gateway.chat.routes.route import ServedRoute
from bpac.gateway.chat.routes.single_route import SingleRoute
from bpac.gateway.chat.upstreams.model import Model
from bpac.gateway.chat.upstreams.raw_upstream import RawUpstream
from bpac.gateway.chat.upstreams.upstream import Upstream
from bpac.gateway.config.models.models import ModelSettings
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.desk import RouteDesks
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.segments import RouteGames
from bpac.gateway.health.opening import NewRecord, OpenModel, open_models
from bpac.gateway.health.records import DeploymentRecord
from bpac.gateway.running_config import RunningConfig
from bpac.gateway.telemetry.failures.upstream_failures import UpstreamRecord, UpstreamRecords
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.gateway.telemetry.metrics.stages import Stages
from bpac.gateway.telemetry.tracing.traces import Traces
from bpac.models.connections import Session
from bpac.models.prompts import PromptFeatures
from bpac.stores import Store

# Opens the games of a route.
OpenGames = Callable[[RouteSettings], RouteDesks]
# The endpoints of model servers, below /v1, that requests are passed through to unread.
PASSED_THROUGH = ("/embeddings", "/completions")


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens the models and routes of configurations.

    Parameters
    ----------
    session: the connections to model servers.
    traces: traces of requests.
    metrics: counts requests and failures.
    records: what is known about each model.
    loads: calls under way to each model that is an expert, by name.
    prompts: computes the features of prompts.
    deployment_record: makes the record of a deployment of a model.
    """

    session: Session
    traces: Traces
    metrics: Metrics
    records: UpstreamRecords
    prompts: PromptFeatures
    deployment_record: NewRecord = DeploymentRecord
    loads: dict[str, ExpertLoad] = field(default_factory=dict)

    def open_models(self, running: RunningConfig, known: dict[str, OpenModel]) -> None:
        """Open the models of a configuration; those whose settings stay keep what is known about them."""

        def new(settings: ModelSettings, record: UpstreamRecord) -> Upstream:
            return Upstream(settings, self.session, self.traces, record, running.config.limits)

        running.models = open_models(
            running.config, new, self.records, self.metrics, known, new_record=self.deployment_record
        )

    def open_single_routes(self, running: RunningConfig) -> None:
        """Open the routes with one model."""
        for name, settings in running.config.single_routes.items():
            expert, limits = settings.expert, running.config.limits
            opened = running.models[expert.name]
            raw = {
                path: RawUpstream(
                    expert.first_server, self.session, self.traces, self.records[expert.name], limits, path=path
                )
                for path in PASSED_THROUGH
            }
            for upstream in raw.values():
                # That of its chats, which the health monitor watches.
                upstream.breaker = opened.servers[0].breaker
            model = opened.model
            chats = OutsideAnswers(name, model, "expert", SINGLE_MODEL, settings.deadline, self.metrics, running.spawn)
            running.single_routes[name] = SingleRoute(chats, raw)

    def open_routes(self, running: RunningConfig, open_games: OpenGames) -> None:
        """Open the routes with a draft and an expert, and restore their games.

        Parameters
        ----------
        running: the configuration.
        open_games: opens the games of a route.
        """
        for name, settings in running.config.routes.items():
            stages = Stages(self.metrics, name, self.traces)
            draft, expert_model = (running.models[model.name].model for model in (settings.draft, settings.expert))
            judge = settings.judge
            grader = judged_by(running.models[judge.name].model, settings) if judge else running.graders[name]
            load = self.loads.setdefault(settings.expert.name, ExpertLoad())
            of_last = (expert_model, grader, stages, settings.deadline, load)
            if settings.models:
                others = tuple(running.models[model.name].model for model in settings.models[:-1])
                last = CascadeExpert(*of_last)
                route: ServedRoute = CascadeRoute(settings, draft, last, stages, running.spawn, self.prompts, others)
            else:
                route = ServedRoute(settings, draft, Expert(*of_last), stages, running.spawn, self.prompts)
            games = open_games(settings)
            if any(game.embeds_prompts for game in games.desks()):
                self.prompts.preload()
            running.routes[name] = (route, games)
            models: dict[AnsweredBy, Model] = {"draft": draft, "expert": expert_model}
            running.forced[name] = {
                which: OutsideAnswers(name, model, which, FORCED, settings.deadline, self.metrics, running.spawn)
                for which, model in models.items()
            }
            # A caller who names the effort of a model of a cascade gets that model.
            for one in settings.models:
                if one.effort is not None:
                    answers: AnsweredBy = "expert" if one is settings.expert else "draft"
                    model = running.models[one.name].model
                    running.forced[name][effort_key(one.effort)] = OutsideAnswers(
                        name, model, answers, EFFORT, settings.deadline, self.metrics, running.spawn
                    )


def open_decide_routes(running: RunningConfig, open_games: OpenGames) -> None:
    """Restore the games of the routes that decide only.

    Parameters
    ----------
    running: the configuration.
    open_games: opens the games of a route.
    """
    for name, settings in running.config.decide_routes.items():
        running.decide_routes[name] = open_games(settings)


def games_of(running: RunningConfig, store: Store, open_games: Callable[[], Iterable[LiveGame]]) -> OpenGames:
    """Opens games of this process.

    Parameters
    ----------
    running: the configuration that they are opened for.
    store: where their journals are.
    open_games: gives all games that are open.
    """
    return lambda settings: RouteGames(store, settings, running.config.snapshot_every, open_games)


def games_in(store: Store, running: RunningConfig) -> dict[str, RouteGames]:
    """The games of all routes, restored from a store."""
    every = running.config.snapshot_every
    return {route.name: RouteGames(store, route, every) for route, _ in running.all_games()}
