"""Checks the settings of a route that asks whether the draft's model may replace the expert (``score = "none"``)."""

from typing import TYPE_CHECKING

from bpac.errors import SettingsError

if TYPE_CHECKING:
    from bpac.gateway.config.routes.routes import RouteSettings


def check_switch(route: "RouteSettings") -> None:
    """Raise ``SettingsError`` unless a verdict can be reached with the settings."""
    if route.models:
        raise SettingsError('score = "none" compares two models: give draft and expert instead of models = [...]')
    if route.policy != "portfolio" or route.assume not in (None, "iid"):
        raise SettingsError(
            'score = "none" needs policy = "portfolio" without assume: its verdict is that of the default policy'
        )
    if route.learn not in (None, False):
        raise SettingsError('learn: score = "none" accepts all drafts or none, so no score is learned: leave it out')
