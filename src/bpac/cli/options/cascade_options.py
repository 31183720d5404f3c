"""Options of ``replay`` and ``validate`` for tables of a cascade."""

import argparse

from bpac.cli.options.policy_options import parse_exploration
from bpac.errors import InputError
from bpac.replay.cascade.reading import default_prices, prices_from_text
from bpac.replay.cascade.table import CascadeTable
from bpac.replay.router_factory import CascadeRouterFactory, cascade_for

PRICES = "price of a call of each model, the last one the reference"
# Options that a cascade does not have, and what they are when they are not given.
OTHERS = {
    "policy": "portfolio",
    "assume": None,
    "bet": None,
    "dither": "auto",
    "score": "uncertainty",
    "learn": None,
    "figure": None,
    "html": None,
    "cheap_hours": None,
    "busy_hours": None,
    "expert_correct_only": False,
    "expert_preferred_only": False,
}


def cascade_factory(options: argparse.Namespace, table: CascadeTable) -> CascadeRouterFactory:
    """Makes routers for a table of a cascade with the settings that the options name.

    Parameters
    ----------
    options: the options of the command.
    table: the table that they name.
    """
    for name, usual in OTHERS.items():
        given = getattr(options, name, usual)
        if given != usual and not (name == "learn" and given is False):
            raise InputError(
                f"--{name.replace('_', '-')} is for tables of two models, and {options.table} has more: leave it out"
            )
    prices = prices_from_text(options.prices) if options.prices else default_prices(options.table, table)
    if len(prices) != table.stages:
        raise InputError(f"--prices has {len(prices)} prices, and {options.table} has {table.stages} models")
    policy = cascade_for(prices, table, options.memory or "alarmed")
    exploration = parse_exploration(options.exploration) if options.exploration else None
    return CascadeRouterFactory(policy, options.epsilon, options.alpha, exploration)
