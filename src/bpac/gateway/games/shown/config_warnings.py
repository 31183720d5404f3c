"""Warnings about a configuration: roles that no key has, keys without a name, prices that are assumed."""

import logging

from bpac.gateway.auth.keys import Role
from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.cascades import CALL_PRICES_REMEDY, assumed_prices
from bpac.gateway.games.segments import warn_of_unnamed_keys

log = logging.getLogger("bpac.gateway")


def warn_of_config(config: Config) -> None:
    """Log what an operator should know about a configuration that is used from now on."""
    _warn_of_keys(config)
    for message in assumed_prices(config.routes):
        log.warning(f"{message}: {CALL_PRICES_REMEDY}")


def _warn_of_keys(config: Config) -> None:
    """Log what cannot be done because no key may do it, and which segments depend on keys without a name."""
    warn_of_unnamed_keys(config.routes_with_games.values(), config.api_keys)
    if not config.granted(Role.OPERATOR):
        log.warning(
            "no key has the role operator, so nobody can use /v1/status, /metrics and /dashboard: add a key with "
            "this role as [[gateway.keys]]. The command bpac status needs no key"
        )
    if not config.granted(Role.FEEDBACK):
        for name, route in config.routes_with_games.items():
            if route.loss["name"] == "external":
                log.warning(
                    "no key has the role feedback, so no loss can be reported for this route, and every round is "
                    "given up at its deadline and counted as loss 1: add a key with this role as [[gateway.keys]]",
                    extra={"route": name},
                )
