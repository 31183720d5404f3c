"""What callers send about their drafts, and what of it is refused."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bpac.errors import InputError
from bpac.gateway.chat.drafts.features import word
from bpac.gateway.config.routes.decide_routes import DecideRouteSettings
from bpac.gateway.games.desk import GameDesk
from bpac.gateway.http.bad_request import BadRequest
from bpac.routing.learning.features import Feature, checked_features
from bpac.wire.usage import Usage

# Longest idempotency key.
LONGEST_KEY = 255
# Nobody generates as many tokens; larger counts would make sums inexact.
MOST_TOKENS = 10**9


class DraftReport(NamedTuple):
    """What a caller reports of a draft.

    Parameters
    ----------
    uncertainty: its score.
    features: what else is known of it, by name; none if the caller left it out.
    usage: the tokens that it took.
    """

    uncertainty: float
    features: dict[str, Any] | None
    usage: Usage | None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "DraftReport":
        """The report in the body of a request, or ``BadRequest``."""
        uncertainty = body.get("uncertainty")
        if isinstance(uncertainty, bool) or not isinstance(uncertainty, int | float) or not 0 <= uncertainty <= 1:
            message = "uncertainty must be a number in [0, 1]; a draft without a score is withdrawn (POST /v1/withdraw)"
            raise BadRequest(message, 422, "uncertainty", "out_of_range")
        features = body.get("features")
        if features is not None and not isinstance(features, dict):
            raise BadRequest("features must be an object: values by name", 422, "features", "invalid_type")
        return cls(float(uncertainty), features, read_usage(body))

    @property
    def note(self) -> dict[str, int]:
        """What is noted beside the decision."""
        return {} if self.usage is None else self.usage.to_note("draft")

    def features_for(self, settings: DecideRouteSettings, desk: GameDesk) -> tuple[Feature, ...] | None:
        """The features in the order of a game; none if it learns no score; ``BadRequest`` if they do not fit.

        Parameters
        ----------
        settings: the settings of the route.
        desk: the game. Its segment is a feature like any other, and need not be reported.
        """
        names, given = tuple(desk.feature_names), self.features or {}
        if not names:
            if given:
                message = (
                    f"the route {settings.name} learns from no features: leave them out, or have the operator list "
                )
                raise BadRequest(f"{message}them in routes.{settings.name}", 422, "features", "no_features")
            return None
        if "segment" in names and desk.segment:
            given = {"segment": word(desk.segment), **given}
        try:
            return checked_features(given, names)
        except InputError as error:
            raise BadRequest(str(error), 422, "features", "invalid_features") from error


def read_usage(body: Mapping[str, Any]) -> Usage | None:
    """The tokens of an answer, as in OpenAI's ``usage``; none if left out; ``BadRequest`` if they are no counts."""
    usage = body.get("usage")
    if usage is None:
        return None
    if not isinstance(usage, dict):
        raise BadRequest("usage must be an object with prompt_tokens and completion_tokens", 422, "usage")
    counts = [_whole(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    if any(count is None for count in counts):
        message = f"prompt_tokens and completion_tokens must be whole numbers from 0 to {MOST_TOKENS}"
        raise BadRequest(message, 422, "usage", "out_of_range")
    return Usage(prompt=counts[0] or 0, completion=counts[1] or 0)


def _whole(value: object) -> int | None:
    """A number of tokens, 0 if it is left out; none if it is no such number. To JSON 1.0 is a whole number."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def read_text(body: Mapping[str, Any], name: str, what: str) -> str:
    """A text in the body of a request, or ``BadRequest``.

    Parameters
    ----------
    body: the request.
    name: the field.
    what: what it should be.
    """
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequest(f"{name} must be {what}", 422, name, "invalid_type")
    return value


def no_such_ticket() -> BadRequest:
    """The error of requests about a ticket that this caller does not have."""
    message = "this caller has no such ticket: POST /v1/arrive gives out tickets"
    return BadRequest(message, 404, "ticket", "unknown_ticket")


def not_decide_only(route: str) -> BadRequest:
    """The error of requests for decisions on a route whose models the gateway asks."""
    message = (
        f"the route {route!r} answers chats with models of the gateway, and decisions about other drafts would be a "
        "second promise in the same game: have the operator add a route with decide_only = true"
    )
    return BadRequest(message, 400, "route", "not_decide_only")
