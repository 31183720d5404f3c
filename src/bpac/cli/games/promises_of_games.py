"""What changes of games do to the promise, in sentences for operators."""

from collections.abc import Mapping

from bpac.cli.output import counted
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.segments import alpha_of_games
from bpac.routing.router import Router
from bpac.stores.store import Game


def name_of(route: str, segment: str) -> str:
    """How a game is called."""
    return f"{route} {segment}".rstrip()


def promise_of_reset(route: RouteSettings, segment: str, router: Router | None) -> list[str]:
    """What a reset does.

    Parameters
    ----------
    route, segment: the route and the segment.
    router: the state of the current game; none if there is none.
    """
    rounds, owed, alpha = *_counts(router), alpha_of_games(route)
    return [
        f"the current game of {name_of(route.name, segment)} ends after {counted(rounds, 'round')}: what it promised "
        f"stays true for them, and its journal stays; those that wait for their loss ({owed:,}) keep counting as 1",
        "a new game begins with a threshold of 0: the expert answers every request until a threshold is certified",
        f"its promise is another one, with its own alpha of {alpha:g}: that one of the two games fails has a "
        f"probability of up to {min(1.0, 2 * alpha):g}. A route that is reset whenever losses are seen has no promise "
        "over all of its games",
    ]


def promise_of_merge(route: RouteSettings, segment: str, rounds: Mapping[int, int]) -> list[str]:
    """What a merge does.

    Parameters
    ----------
    route, segment: the route and the segment of the new game.
    rounds: how many rounds each of the older games has, by its number.
    """
    listed = " and ".join(f"{counted(count, 'round')} of game {number}" for number, count in rounds.items())
    return [
        "two games cannot be joined into one after the fact: each has spent its own alpha, and a threshold that both "
        "have certified is promised by each with its own",
        f"instead a new game of {name_of(route.name, segment)} begins from the {listed} as history; the current game "
        "of that segment, if there is one, ends, and what it promised stays true for its rounds",
        f"the new promise has its own alpha of {alpha_of_games(route):g}, and assumes that the requests to come are "
        "drawn from the distribution of these rounds (rounds of several segments: in the same mixture), and that the "
        "games were chosen without looking at their losses",
        'for one promise about both games as they are, set alpha_scope = "all", which divides alpha among segments',
    ]


def promise_of_move(game: Game, router: Router | None, target: str) -> list[str]:
    """What a move does.

    Parameters
    ----------
    game, router: the game and its state; no state if it has not begun.
    target: the file or the Redis that it is moved to.
    """
    rounds, owed = _counts(router)
    return [
        f"game {game.number} ({name_of(game.route, game.segment)}) goes on in {target} with its "
        f"{counted(rounds, 'round')}, its threshold and its alpha, under the same promise, if a gateway with the same "
        "models, score, loss and settings uses that store",
        "here it is over: requests to this gateway begin a new game with a threshold of 0 and a promise of its own",
        f"rounds that wait for their loss ({owed:,}) count as 1 from the next start on: identifiers of decisions "
        "belong to this store, so that their losses cannot be reported there",
        f"{target} then has the secret keys of the game's coins, as this store has: protect it",
    ]


def _counts(router: Router | None) -> tuple[int, int]:
    """How many rounds a game has, and how many of them wait for their loss."""
    return (0, 0) if router is None else (router.step, len(router.owed))
