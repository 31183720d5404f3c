"""Checks the settings of a route with sticky sessions (``sticky_by``)."""

from typing import TYPE_CHECKING, Any

from bpac.errors import SettingsError
from bpac.gateway.config.models.models import HEADER_NAME
from bpac.routing.journal.units import EPISODE

if TYPE_CHECKING:
    from bpac.gateway.config.routes.routes import RouteSettings


def check_sticky(route: "RouteSettings") -> None:
    """Raise ``SettingsError`` unless the sessions of a route can be told apart and followed."""
    by = route.sticky_by or ""
    kind, _, name = by.partition(":")
    named = HEADER_NAME.fullmatch(name) if kind == "header" else kind == "metadata" and name
    if not named and by != "user":
        raise SettingsError(
            f"sticky_by must be header:NAME, metadata:FIELD or user, got {by!r}: it names one conversation or one "
            "episode of an agent, and a key or a model is no conversation"
        )
    if route.models:
        raise SettingsError("sticky_by is for routes with two models: give draft and expert instead of models = [...]")


def sticky_terms(route: "RouteSettings") -> dict[str, Any]:
    """What a round is, if it is not a request: part of the terms of a game; empty if a round is a request."""
    if route.sticky_by is None:
        return {}
    episode = {"idle": route.sticky_idle, "age": route.sticky_age, "requests": route.sticky_requests}
    return {EPISODE: {"by": route.sticky_by, **episode}}
