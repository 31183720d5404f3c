"""What the models of a configuration are used for, which decides what is checked of each."""

from dataclasses import dataclass

from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.scores import Score


@dataclass(frozen=True, slots=True)
class ModelRole:
    """What one model is used for.

    Parameters
    ----------
    scores: the scores of the routes that it drafts for, by the name of the route.
    expert_of: the routes whose expert it is.
    judge_of: the routes that it grades drafts for.
    same_as_draft: whether a draft's model has the same name, so that only thinking makes this one an expert.
    alone: whether only routes with one model use it, perhaps for something else than chats.
    """

    scores: dict[str, Score]
    expert_of: tuple[str, ...] = ()
    judge_of: tuple[str, ...] = ()
    same_as_draft: bool = False
    alone: bool = False

    @property
    def used(self) -> bool:
        """Whether a route uses it for chats."""
        return bool(self.scores or self.expert_of or self.judge_of)

    def __str__(self) -> str:
        uses = {"draft": self.scores, "expert": self.expert_of, "judge": self.judge_of}
        return ", ".join(f"{use} of {', '.join(routes)}" for use, routes in uses.items() if routes) or "not used"


def _drafting(route: RouteSettings) -> set[str]:
    """The models of a route whose answers are scored."""
    return {route.draft.name, *(model.name for model in route.models[:-1])}


def roles_of(config: Config) -> dict[str, ModelRole]:
    """What every model of a configuration is used for, by name."""
    routes = config.routes
    experts = {name: one.expert.name for name, one in routes.items()}
    experts |= {name: one.expert.name for name, one in config.single_routes.items()}
    single = {one.expert.name for one in config.single_routes.values()}
    return {
        name: ModelRole(
            {route: one.score for route, one in routes.items() if name in _drafting(one)},
            tuple(route for route, expert in experts.items() if expert == name),
            tuple(route for route, one in routes.items() if one.judge is not None and one.judge.name == name),
            any(one.expert.name == name and one.draft.model == model.model for one in routes.values()),
            name in single and not any(_uses(one, name) for one in routes.values()),
        )
        for name, model in config.models.items()
    }


def _uses(route: RouteSettings, name: str) -> bool:
    return name in (route.draft.name, route.expert.name, route.judge.name if route.judge is not None else None)
