"""An outcome that is reported from outside, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bpac.dashboard.history.refusals import NOTED, OTHER
from bpac.errors import NotAudited
from bpac.gateway.config.routes.decide_routes import DecideRouteSettings
from bpac.gateway.config.routes.routes import RouteSettings

# The cause of a forfeit that a caller reports, and the reason of a refusal that it reports.
CALLER_GAVE_UP = "caller gave up"


@dataclass(frozen=True, slots=True)
class Reported:
    """What a caller reports of a round in which the expert was called.

    Parameters
    ----------
    loss: the loss of the draft; none if it will never be known, or if the expert refused.
    refused: whether the expert refused to answer (default: false).
    note: counts of tokens, for the journal (default: none).
    """

    loss: float | None
    refused: bool = False
    note: Mapping[str, int] = field(default_factory=dict)

    @property
    def noted(self) -> dict[str, int | str]:
        """What is written beside the outcome."""
        return {**self.note, **({NOTED: OTHER} if self.refused else {})}

    def check(self, route: RouteSettings) -> None:
        """Raise ``NotAudited`` if the route takes no such report."""
        if route.loss["name"] != "external":
            # Otherwise callers could grade the answers to their own requests.
            raise NotAudited("the drafts of this route are graded by the gateway: losses from outside are not accepted")
        if self.loss is None and not isinstance(route, DecideRouteSettings):
            raise NotAudited("the gateway asks the expert of this route itself: only a loss can be reported")
