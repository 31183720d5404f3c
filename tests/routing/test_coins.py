from typing import Any

import numpy as np
import pytest

from bpac import Router
from bpac.errors import InputError
from bpac.routing.coins import BLOCK, ListedCoins, SeededCoins
from bpac.routing.journal import Entry, entry_from_json, entry_to_json
from bpac.routing.policies import POLICIES, Fixed


def at(coins: Any, step: int) -> float:
    """The draw of a step."""
    draw: float = coins.draws(step)[-1]
    return draw


def test_a_draw_depends_on_the_seed_and_the_step_only() -> None:
    """Asked in any order, alone or among others, a step has the same draw, across blocks too."""
    coins = SeededCoins(7)
    steps = [1, 2, 3, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3]
    draws = [at(coins, step) for step in steps]
    assert [at(SeededCoins(7), step) for step in reversed(steps)] == draws[::-1]
    following = coins.draws(1)[::-1]
    assert following[: BLOCK - 1] == [at(coins, step) for step in range(1, BLOCK)]
    assert len({at(coins, step) for step in range(1, 3 * BLOCK, 7)}) == len(range(1, 3 * BLOCK, 7))


def test_draws_are_uniform() -> None:
    """Forty thousand draws fill twenty equal cells of [0, 1) evenly (chi-squared below its 99.9 % point)."""
    coins, draws = SeededCoins(3), []
    for block in range(1, 40_000 // BLOCK + 2):
        draws += coins.draws(block * BLOCK)
    draws = draws[:40_000]
    counts = np.histogram(draws, bins=20, range=(0.0, 1.0))[0]
    assert ((counts - 2000) ** 2 / 2000).sum() < 43.8
    assert 0.0 <= min(draws) <= max(draws) < 1.0


@pytest.mark.parametrize(("one", "other"), [(1, 2), (0, -1), (7, 7 + (1 << 64)), (None, None)])
def test_other_seeds_have_other_draws(one: int | None, other: int | None) -> None:
    """Two seeds share no draw at the same step; without a seed every source is its own."""
    pairs = zip(SeededCoins(one).draws(1), SeededCoins(other).draws(1), strict=True)
    assert not any(first == second for first, second in pairs)


def test_listed_coins_are_the_list() -> None:
    """The first number is for step 1, and the rest of the list follows backwards."""
    coins = ListedCoins([0.1, 0.2, 0.3])
    assert [coins.draws(step) for step in (1, 2, 3)] == [[0.3, 0.2, 0.1], [0.3, 0.2], [0.3]]


def test_a_list_that_ends_says_so() -> None:
    """A step without a coin is refused and leaves the router as it was."""
    router = Router(0.1, coins=ListedCoins([0.5, 0.6]))
    router.decide(0.5)
    router.decide(0.5)
    before = router.snapshot()
    with pytest.raises(InputError, match="there is no coin for step 3: the list has 2"):
        router.decide(0.5)
    assert router.snapshot() == before


@pytest.mark.parametrize("draw", [1.0, -0.1, float("nan"), float("inf")])
def test_a_coin_lies_between_0_and_1(draw: float) -> None:
    """A number outside [0, 1) is refused with its place in the list."""
    with pytest.raises(InputError, match=r"coin 2 must lie in \[0, 1\), got"):
        ListedCoins([0.5, draw])


def test_coins_of_other_kinds_do_not_spoil_the_journal() -> None:
    """Draws that numpy made are as good as plain ones: the decision can be written as JSON."""
    router = Router(0.1, coins=ListedCoins(list(np.array([0.5, 0.4]))))
    decision = router.decide(0.5)
    assert entry_from_json(entry_to_json(decision)) == decision


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("stopped_at", [1, BLOCK - 1, BLOCK])
def test_a_router_rebuilt_with_its_seed_goes_on_with_its_coins(policy: str, stopped_at: int) -> None:
    """Stopped and rebuilt from its journal, a router makes the very decisions of one that never stopped."""
    entries: list[Entry] = []
    steady = Router(0.3, 0.4, policy, seed=11, journal=entries.append)
    rebuilt = steady
    for step in range(1, BLOCK + 30):
        if step == stopped_at:
            rebuilt = Router.rebuild(entries, seed=11)
        score, loss = (step * 7 % 10) / 10, float(step % 13 == 0)
        decision = steady.decide(score)
        if rebuilt is not steady:
            assert rebuilt.decide(score) == decision
        if decision.call_expert:
            steady.observe(decision, loss)
            if rebuilt is not steady:
                rebuilt.observe(decision, loss)
    assert rebuilt is not steady
    assert rebuilt.threshold == steady.threshold


def test_the_coin_decides_with_the_propensity() -> None:
    """The expert is called exactly if the draw lies below the propensity: at the propensity it is not."""
    router = Router(0.1, policy=Fixed(1.0, explores=0.05), coins=ListedCoins([0.05, 0.0499999]))
    assert [router.decide(0.5).call_expert for _ in range(2)] == [False, True]
