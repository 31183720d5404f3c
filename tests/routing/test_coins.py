import hashlib
from typing import Any

import numpy as np
import pytest

from bpac import Decision, Router
from bpac.errors import InputError, JournalError
from bpac.routing.coins import (
    BLOCK,
    COMMITTED_BLOCK,
    CommittedCoins,
    ListedCoins,
    SeededCoins,
    block_of_draws,
    key_digest,
)
from bpac.routing.journal.entries import Committed, Entry, Opened
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json
from bpac.routing.policies import POLICIES, Fixed


def at(coins: Any, step: int) -> float:
    """The draw of a step."""
    draw: float = coins.draws(step)[-1]
    return draw


def test_a_draw_depends_on_the_seed_and_the_step_only() -> None:
    """Computed in any order, alone or among others, a step has the same draw, across blocks too."""
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


def test_a_list_of_coins_that_is_too_short_is_an_error() -> None:
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


def test_coins_made_by_numpy_are_written_as_plain_json() -> None:
    """Draws that numpy made are as good as plain ones: the decision can be written as JSON."""
    router = Router(0.1, coins=ListedCoins(list(np.array([0.5, 0.4]))))
    decision = router.decide(0.5)
    assert entry_from_json(entry_to_json(decision)) == decision


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("stopped_at", [1, BLOCK - 1, BLOCK])
def test_a_router_rebuilt_with_its_seed_continues_with_its_coins(policy: str, stopped_at: int) -> None:
    """Stopped and rebuilt from its journal, a router makes the same decisions as one that never stopped."""
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


def committed(entries: list[Entry]) -> list[Committed]:
    """The commitments in a journal."""
    return [entry for entry in entries if isinstance(entry, Committed)]


def test_committed_coins_are_those_of_their_key() -> None:
    """Each block's digest comes before its rounds, and its key gives every coin of it again, by an independent way."""
    entries: list[Entry] = []
    keys: dict[int, bytes] = {}
    router = Router(0.1, policy=Fixed(0.9, explores=0.4), coins=CommittedCoins(keys), journal=entries.append)
    decisions = [router.decide(0.5) for _ in range(2 * COMMITTED_BLOCK + 10)]
    assert [entry.first_step for entry in committed(entries)] == [1, COMMITTED_BLOCK + 1, 2 * COMMITTED_BLOCK + 1]
    assert list(keys) == [entry.first_step for entry in committed(entries)]
    for entry in committed(entries):
        key = keys[entry.first_step]
        assert hashlib.sha256(b"bpac coin key\0" + key).hexdigest() == entry.digest
        stream = hashlib.shake_256(b"bpac coins\0" + key).digest(8 * COMMITTED_BLOCK)
        following = entries[entries.index(entry) + 1]
        assert isinstance(following, Decision)
        assert following.step == entry.first_step
        for place, decision in enumerate(decisions[entry.first_step - 1 :][:COMMITTED_BLOCK]):
            draw = (int.from_bytes(stream[8 * place : 8 * place + 8], "little") >> 11) / 2**53
            assert decision.call_expert == (draw < decision.propensity)


def test_committed_draws_are_uniform() -> None:
    """The draws of 160 keys fill twenty equal cells of [0, 1) evenly (chi-squared below its 99.9 % point)."""
    draws = [draw for number in range(160) for draw in block_of_draws(number.to_bytes(32))]
    counts = np.histogram(draws, bins=20, range=(0.0, 1.0))[0]
    each = len(draws) / 20
    assert ((counts - each) ** 2 / each).sum() < 43.8
    assert 0.0 <= min(draws) <= max(draws) < 1.0
    assert len(set(draws)) == len(draws)


def test_a_rebuilt_router_never_uses_a_committed_coin_again() -> None:
    """It begins a new block, also where the old one has coins left: their key may have been revealed by then."""
    entries: list[Entry] = []
    keys: dict[int, bytes] = {}
    router = Router(0.1, coins=CommittedCoins(keys), journal=entries.append)
    for _ in range(10):
        router.decide(0.5)
    lost = entries[:-3]  # the end of the journal is lost, without a sign of it
    rebuilt = Router.rebuild(lost, coins=CommittedCoins(keys), journal=lost.append)
    rebuilt.decide(0.5)
    assert [entry.first_step for entry in committed(lost)] == [1, 8]
    assert keys[1] != keys[8]
    assert Router.rebuild(lost).snapshot() == rebuilt.snapshot()
    assert rebuilt.snapshot()["entries"] == len(lost)


def test_a_commitment_that_could_not_be_written_is_written_later() -> None:
    """No coin is used before its commitment is in the journal, however often the journal fails."""
    entries: list[Entry] = []
    failing = 3

    def journal(entry: Entry) -> None:
        nonlocal failing
        if not isinstance(entry, Opened) and failing:
            failing -= 1
            raise OSError("disk full")
        entries.append(entry)

    keys: dict[int, bytes] = {}
    router = Router(0.1, coins=CommittedCoins(keys), journal=journal)
    for _ in range(3):
        with pytest.raises(OSError, match="disk full"):
            router.decide(0.5)
    router.decide(0.5)
    assert [type(entry).__name__ for entry in entries] == ["Opened", "Committed", "Decision"]
    assert committed(entries)[0].digest == key_digest(keys[1])
    assert len(keys) == 1


def test_coins_without_a_commitment_are_refused() -> None:
    """Draws exist for the steps of the block that was committed to, and for no others."""
    coins = CommittedCoins()
    with pytest.raises(InputError, match=r"no key was committed to for step 1: write what commitment\(1\) returns"):
        coins.draws(1)
    coins.commitment(5)
    assert len(coins.draws(5)) == COMMITTED_BLOCK
    assert coins.commitment(6) is None  # of the same block
    for step in (4, 5 + COMMITTED_BLOCK):
        with pytest.raises(InputError, match=f"no key was committed to for step {step}"):
            coins.draws(step)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (Committed(2, "0" * 64), "entry 2 commits to coins from step 2 on after step 0"),
        (Committed(0, "0" * 64), "entry 2 commits to coins from step 0 on after step 0"),
        (Committed(1, "0" * 63), "digest must be 64 hexadecimal digits"),
        (Committed(1, "A" * 64), "digest must be 64 hexadecimal digits"),
    ],
)
def test_commitments_that_no_router_wrote_are_refused(entry: Committed, says: str) -> None:
    """A commitment is about the next round, and has the form of a digest."""
    entries: list[Entry] = []
    Router(0.1, journal=entries.append)
    with pytest.raises(JournalError, match=says):
        Router.rebuild([*entries, entry])
