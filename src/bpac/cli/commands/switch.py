"""The command ``switch``: whether the new model of a route may replace the old one."""

import argparse
from contextlib import closing
from pathlib import Path

from bpac.cli.commands.status import current_games, status_of
from bpac.cli.output import add_json_option, print_report
from bpac.errors import InputError
from bpac.gateway.config.file import Config, load_config
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.segments import alpha_of_games
from bpac.gateway.games.shown.status import GameStatus
from bpac.gateway.games.terms import changes, terms_of
from bpac.stores import open_store
from bpac.stores.store import Game

YES, NOT_YES = 0, 1


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    switch = commands.add_parser(
        "switch",
        help='say whether the new model of a route with score = "none" may replace the old one: yes, not yet, or no',
    )
    switch.add_argument("config", metavar="CONFIG", type=Path, help="TOML file that configures the gateway")
    switch.add_argument("route", metavar="ROUTE", help="name of the route")
    add_json_option(switch)
    switch.set_defaults(run=_switch)


def _switch(options: argparse.Namespace) -> int:
    config = load_config(options.config, secrets=False)
    route = _switch_route(config, options.route)
    # A verdict about other models, another loss or another limit is no answer, even if nothing was asked since.
    terms = terms_of(route, route.new_router(alpha_of_games(route)))
    with closing(open_store(config.store, read_only=True)) as store:
        divided = (
            route.segment_by is not None
        )  # games from before a route was divided, or since, are about other traffic
        kept = [game for game in current_games(store) if game.route == route.name and bool(game.segment) == divided]
        asked = [game for game in kept if not changes(game.terms, terms, route.open_terms)]
        games = [status_of(store, game, config) for game in asked]
    stale = [game for game in kept if game not in asked]
    answer = _answer(games)
    if stale and answer == "yes":  # of a segment that was not asked since, nothing is known
        answer = "not_yet"
    others = [{"segment": game.segment, "game": game.number, "answer": "not_yet"} for game in stale]
    report = {"route": route.name, "answer": answer, "games": [_report(game) for game in games] + others}
    lines = [line for game in games for line in _lines(game)]
    lines += [f"{_name(game)}: not yet: no request has been decided under the present terms" for game in stale]
    print_report(options, report, lines or [f"{options.route}: not yet: no request has been decided"])
    return YES if report["answer"] == "yes" else NOT_YES


def _switch_route(config: Config, name: str) -> RouteSettings:
    route = config.routes.get(name)
    if route is None:
        raise InputError(f"there is no route {name!r}; known: {', '.join(config.routes)}")
    if not route.is_switch:
        raise InputError(
            f'routes.{name} decides by a score ({route.score_name}): set score = "none" to ask whether the model '
            f"{route.draft.name} may replace {route.expert.name} as a whole"
        )
    return route


def _answer(games: list[GameStatus]) -> str:
    """The answer for all segments: the least favourable one."""
    answers = [game.switch.answer for game in games if game.switch is not None]
    return next((answer for answer in ("no", "not_yet") if answer in answers), "yes" if answers else "not_yet")


def _report(game: GameStatus) -> dict[str, object]:
    verdict = {} if game.switch is None else game.switch.to_json()
    about = {"segment": game.segment, "game": game.number, "state": game.state, "unit": game.unit}
    return about | verdict | {"without_draft": game.unscored.to_json(), "refused": game.summary.refused}


def _name(game: Game | GameStatus) -> str:
    return f"{game.route} {game.segment}".strip()


def _lines(game: GameStatus) -> list[str]:
    if game.switch is None:
        return []
    lines = [f"{_name(game)}: {game.switch.text}"]
    if game.switch.unknown:
        lines.append(
            f"  audits without a verdict so far: {game.switch.unknown:,}; they count as no loss in the lower bound and "
            "as a loss of 1 in the upper one"
        )
    if game.unscored.requests:
        reasons = ", ".join(f"{count} {reason}" for reason, count in game.unscored.reasons.items())
        lines.append(
            f"  requests that the new model did not answer: {game.unscored.share:.1%} ({reasons}); the verdict is "
            "about the others"
        )
    if game.summary.alarm is not None and game.state == "alarmed":
        lines.append("  the drift alarm is raised: the latest audits lost more than is allowed")
    return lines
