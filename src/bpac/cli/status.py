"""The command ``status``: the state of every game in a gateway's store."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from bpac.gateway.config.file import Config, load_config
from bpac.gateway.games.restoring import folded
from bpac.gateway.games.savings import Prices
from bpac.gateway.games.status import game_status
from bpac.stores import open_store
from bpac.stores.store import Game, Store

FINE = 0


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    status = commands.add_parser(
        "status", help="show threshold, expert calls, loss and savings of each route, whether the gateway runs or not"
    )
    status.add_argument("config", metavar="CONFIG", type=Path, help="TOML file that configures the gateway")
    status.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    status.set_defaults(run=_status)


def _status(options: argparse.Namespace) -> int:
    config = load_config(options.config, secrets=False)
    with closing(open_store(config.store, read_only=True)) as store:
        games = [_standing(store, game, config) for game in _current(store)]
        losses = store.losses()
    if options.json:
        _write(json.dumps({"games": games, "losses": [loss._asdict() for loss in losses]}))
        return FINE
    for loss in losses:
        _write(f"LOST: {loss}; a new game begins with a threshold of 0")
    for game in games:
        for line in _text(game):
            _write(line)
    return FINE


def _current(store: Store) -> list[Game]:
    # A gateway that is just starting has opened a game before it writes to its journal.
    begun = (game for game in store.games() if next(store.entries(game), None) is not None)
    return list({(game.route, game.segment): game for game in begun}.values())


def _standing(store: Store, game: Game, config: Config) -> dict[str, Any]:
    kept = folded(store, game)
    route = config.routes.get(game.route)
    prices = None if route is None else Prices.of(route)
    status = game_status(game, kept.router, kept.history, kept.savings.report(prices))
    return {"route": game.route, **status.to_json()}


def _text(game: Mapping[str, Any]) -> Iterator[str]:
    """The state of a game in a few lines."""
    certificate, name = game["certificate"], f"{game['route']} {game['segment']}".strip()
    rate = game["expert_call_rate"]
    yield (
        f"{name}: {game['steps']} rounds, {game['state'].replace('_', ' ')}, threshold {game['threshold']:.4g}, "
        f"expert calls {'–' if rate is None else f'{rate:.1%}'}, {game['owed']} waiting for their outcome, "
        f"average loss per request ≤ {certificate['average_upper']:.2%} ({certificate['confidence']:.0%} confidence)"
    )
    unscored = game["unscored"]
    if unscored["requests"]:
        reasons = ", ".join(f"{count} {reason}" for reason, count in unscored["reasons"].items())
        yield f"  answered by the expert because the draft had no score: {unscored['share']:.1%} ({reasons})"
    if game["refused"]:
        yield f"  refused by the expert: {game['refused']}"
    if game["forfeits"]:
        causes = ", ".join(f"{count} {cause}" for cause, count in sorted(game["forfeits"].items()))
        share = game["forfeit_share"]
        yield f"  audits without a verdict: {causes}; of the latest audits of accepted drafts {share:.1%}"
    yield from _savings_text(game["savings"])


def _savings_text(savings: Mapping[str, Any]) -> Iterator[str]:
    """What was saved, in two lines at most."""
    for what, digits in (("tokens", 0), ("money", 2)):
        estimate = savings.get(f"{what}_saved")
        if estimate is None:
            continue
        least, most = (savings[f"{what}_saved_at_{bound}"] for bound in ("least", "most"))
        above = "" if most is None else f", at most {most:,.{digits}f}"
        if most is not None and savings["longest_answer_assumed"] is not None:
            above += f" if no answer is longer than {savings['longest_answer_assumed']:,.0f} tokens"
        yield (
            f"  {what} saved: at least {least:,.{digits}f} with {savings['confidence']:.0%} confidence, "
            f"estimated {estimate:,.{digits}f}{above}"
        )


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
