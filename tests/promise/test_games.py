"""The promise of a game that is left and resumed by an operator who watches it, and of one that is put back instead."""

from collections.abc import Callable

import numpy as np
import pytest

from bpac import Router
from bpac.replay.simulation.laws import LAWS
from tests.promise.test_order import ALPHA
from tests.promise.test_promise import most_explained

pytestmark = pytest.mark.promise

EPSILON, STEPS, STREAMS = 0.1, 1200, 60
LAW = LAWS["edge"]

Play = Callable[[np.random.Generator, int], list[Router]]


def one_round(router: Router, uncertainty: float, loss: float) -> float:
    """The loss that was seen in a round; 0 if none was seen."""
    decision = router.decide(uncertainty)
    if not decision.call_expert:
        return 0.0
    router.observe(decision, loss)
    return loss


def resumed(rng: np.random.Generator, seed: int) -> list[Router]:
    """Two games in turns: the operator changes epsilon whenever the game in use has seen two losses since it began."""
    games = [Router(EPSILON, ALPHA, memory="latched", seed=seed), Router(0.09, ALPHA, memory="latched", seed=seed + 1)]
    current, seen = 0, 0.0
    for uncertainty, loss in zip(*LAW.draw(STEPS, rng), strict=True):
        seen += one_round(games[current], float(uncertainty), float(loss))
        if seen >= 2.0:
            current, seen = 1 - current, 0.0
    return games


def put_back(rng: np.random.Generator, seed: int) -> list[Router]:
    """One game that is put back to a copy, made every 20 rounds, whenever it has seen more losses than it may."""
    router = Router(EPSILON, ALPHA, memory="latched", seed=seed)
    copy, seen = router.snapshot(), 0.0
    for number, (uncertainty, loss) in enumerate(zip(*LAW.draw(STEPS, rng), strict=True), start=1):
        seen += one_round(router, float(uncertainty), float(loss))
        if number % 20 == 0:
            if seen > EPSILON * 20:
                router = Router.rebuild([], snapshot=copy, seed=seed + number)
            copy, seen = router.snapshot(), 0.0
    return [router]


def unsafe(play: Play, which: int = 0) -> int:
    """In how many streams a game ended with a threshold whose risk exceeds its epsilon."""
    count = 0
    for seed in range(STREAMS):
        router = play(np.random.default_rng(seed), 1000 * seed)[which]
        terms = router.settings.terms
        count += terms.kept_share * LAW.risk(router.threshold) > terms.epsilon
    return count


@pytest.mark.parametrize("which", [0, 1])
def test_a_game_that_is_left_and_resumed_keeps_its_promise(which: int) -> None:
    """Each game has seen a selection of the requests that was made before they came; latched thresholds never fall."""
    assert unsafe(resumed, which) <= most_explained(STREAMS, ALPHA)


def test_a_game_that_is_put_back_to_a_copy_breaks_its_promise() -> None:
    """So a restored backup must not go on with a game whose later rounds were served."""
    assert unsafe(put_back) > most_explained(STREAMS, ALPHA)
