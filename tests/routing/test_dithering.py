"""Dithered scores: recorded with the decision, from draws of their own, and rebuilt to the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac import Decision, Router
from bpac.errors import InputError
from bpac.routing.audit.audit import audit_journal
from bpac.routing.coins import (
    BLOCK,
    COMMITTED_BLOCK,
    CommittedCoins,
    ListedCoins,
    SeededCoins,
    block_of_dithers,
    block_of_draws,
)
from bpac.routing.dithering import dithered, of_other_width
from bpac.routing.journal.entries import Entry, Labelled, Opened
from bpac.routing.policies import Portfolio
from bpac.routing.settings import Settings
from tests.routing.exports import Export

DITHERED = Portfolio(dither=0.25)


def play(router: Router, rounds: int = 400) -> list[Decision]:
    """Decide drafts with three scores; those with the highest lose."""
    decisions = []
    for number in range(rounds):
        score = (0.2, 0.4, 0.8)[number % 3]
        decisions.append(router.decide(score))
        if decisions[-1].call_expert:
            router.observe(decisions[-1], float(score == 0.8))
    return decisions


@given(st.floats(0, 1), st.floats(0, 0.99), st.floats(0, 1, exclude_max=True))
def test_a_score_is_lowered_by_at_most_its_width(score: float, width: float, draw: float) -> None:
    """Never above the score, never below (1 − w) of it; scores of 0 and 1 stay."""
    lowered = dithered(score, width, draw)
    assert score * (1.0 - width) <= lowered <= score
    assert score not in {0.0, 1.0} or lowered == score


def test_the_recorded_score_is_the_dithered_one() -> None:
    """Equal scores are recorded within the width, all different; the same seed gives the same."""
    first, second = (play(Router(0.1, policy=DITHERED, seed=5)) for _ in range(2))
    assert first == second
    for position, score in enumerate((0.2, 0.4, 0.8)):
        recorded = [decision.uncertainty for decision in first[position::3]]
        assert len(set(recorded)) == len(recorded)
        assert 0.75 * score <= min(recorded) < 0.8 * score
        assert 0.95 * score < max(recorded) <= score


def test_without_dithering_nothing_changes() -> None:
    """The default records scores as they are, and its journal does not mention dithering."""
    entries: list[Entry] = []
    router = Router(0.1, policy=Portfolio(memory="latched"), seed=5, journal=entries.append)
    assert {decision.uncertainty for decision in play(router)} == {0.2, 0.4, 0.8}
    assert isinstance(entries[0], Opened)
    assert not {"dither", "floor_fractions", "weights"} & set(entries[0].settings["policy"])


def test_a_journal_from_before_has_neither_dithering_nor_bold_stakes() -> None:
    """Settings without these keys mean what they meant when they were written; settings with them survive."""
    old = Settings(0.1, 0.1, Portfolio(floor_fractions=()), Portfolio().exploration)
    assert not {"dither", "floor_fractions", "weights"} & set(old.to_json()["policy"])
    assert Settings.from_json(old.to_json()) == old
    new = Settings(0.1, 0.1, DITHERED, DITHERED.exploration)
    assert new.to_json()["policy"]["dither"] == 0.25
    assert len(new.to_json()["policy"]["floor_fractions"]) == 3
    assert Settings.from_json(new.to_json()) == new


@pytest.mark.parametrize("coins", [SeededCoins(3), ListedCoins([0.5] * 9)])
def test_draws_that_dither_are_uniform_and_independent_of_the_coins(coins: SeededCoins | ListedCoins) -> None:
    """Forty thousand of them fill a grid of ten by ten cells with the coins evenly (chi-squared, 99.9 % point)."""
    dithers, draws = [], []
    for block in range(1, 40_000 // BLOCK + 2):
        dithers += coins.dithers(block * BLOCK)
        draws += SeededCoins(3).draws(block * BLOCK)
    counts = np.histogram2d(dithers[:40_000], draws[:40_000], bins=10, range=((0, 1), (0, 1)))[0]
    assert ((counts - 400) ** 2 / 400).sum() < 149.0
    assert not set(dithers) & set(draws)


def test_history_and_traffic_have_draws_of_their_own() -> None:
    """Rows of history have steps below 0; no draw is shared with the traffic, and each depends on its step only."""
    coins = SeededCoins(3)
    history = [coins.dithers(step)[-1] for step in range(-2 * BLOCK, 0)]
    traffic = [coins.dithers(step)[-1] for step in range(2 * BLOCK)]
    assert len({*history, *traffic}) == 4 * BLOCK
    assert coins.dithers(-5)[::-1] == history[-5:]


def test_committed_dithers_follow_from_the_revealed_key() -> None:
    """The key of a block gives every dither of it again, so that an auditor can recover the scores as measured."""
    keys: dict[int, bytes] = {}
    entries: list[Entry] = []
    router = Router(0.1, policy=DITHERED, coins=CommittedCoins(keys), journal=entries.append)
    decisions = play(router, COMMITTED_BLOCK + 10)
    assert len(keys) == 2
    for number, decision in enumerate(decisions):
        first = max(step for step in keys if step <= decision.step)
        draw = block_of_dithers(keys[first])[decision.step - first]
        assert draw != block_of_draws(keys[first])[decision.step - first]
        measured = decision.uncertainty / (1.0 - 0.25 * draw)
        assert measured == pytest.approx((0.2, 0.4, 0.8)[number % 3], rel=1e-12)


def test_no_dither_is_drawn_before_its_key_is_committed_to() -> None:
    """Like a coin; rows of history need no commitment, because the operator chooses them anyway."""
    coins = CommittedCoins()
    assert len(coins.dithers(-3)) == 3
    with pytest.raises(InputError, match="no key was committed to for step 1"):
        coins.dithers(1)


def test_the_journal_rebuilds_a_dithered_router_to_the_same_bits() -> None:
    """With any later random source, because the recorded scores are all that counts; an audit finds no difference."""
    entries: list[Entry] = []
    router = Router(0.1, policy=DITHERED, seed=5, journal=entries.append)
    router.warm_start([(0.2, 0.0), (0.8, 1.0)] * 20)
    play(router)
    assert Router.rebuild(entries, seed=99).snapshot() == router.snapshot()
    half = len(entries) // 2
    snapshot = Router.rebuild(entries[:half]).snapshot()
    assert Router.rebuild(entries[half:], snapshot=snapshot).snapshot() == router.snapshot()


def test_an_audit_verifies_dithered_decisions_and_their_coins() -> None:
    """Thresholds, propensities, claims and committed coins of a dithered game are found as they were recorded."""
    export = Export()
    router = Router(0.1, policy=DITHERED, coins=CommittedCoins(export.keys), journal=export.write)
    play(router, 2 * COMMITTED_BLOCK)
    export.claim(router)
    audit = audit_journal(export.lines)
    assert not audit.differences
    assert audit.coins.verified == COMMITTED_BLOCK
    assert router.threshold > 0.0


def test_rows_of_history_are_dithered_like_the_traffic() -> None:
    """Each row has a draw of its own, also when history comes in two parts."""
    entries: list[Entry] = []
    router = Router(0.1, policy=DITHERED, seed=5, journal=entries.append)
    router.warm_start([(0.4, 0.0)] * 300)
    router.warm_start([(0.4, 0.0)] * 300)
    recorded = [entry.uncertainties[0] for entry in entries if isinstance(entry, Labelled)]
    assert len(set(recorded)) == 600
    assert 0.3 <= min(recorded) < 0.301
    assert 0.399 < max(recorded) <= 0.4


@pytest.mark.parametrize(
    ("old", "least", "most"),
    [(0.0, 0.3, 0.4), (0.25, 0.3, 0.4), (0.5, 0.15, 0.3)],
    ids=["not dithered", "the same width", "another width"],
)
def test_an_older_game_counts_as_if_it_had_been_dithered(old: float, least: float, most: float) -> None:
    """Scores as measured get a draw, those of the same width stay, and those of another one count as lower."""
    past: list[Entry] = []
    older = Router(0.1, policy=Portfolio(dither=old), seed=1, journal=past.append)
    for _ in range(300):
        decision = older.decide(0.4)
        if decision.call_expert:
            older.observe(decision, 1.0)
    entries: list[Entry] = []
    router = Router(0.1, policy=DITHERED, seed=5, journal=entries.append)
    router.warm_start_from(past)
    fed = [entry.uncertainties[0] for entry in entries if isinstance(entry, Labelled)]
    assert least <= min(fed) < least + 0.01
    assert most - 0.01 < max(fed) <= most
    if old == 0.25:
        assert fed == [entry.uncertainty for entry in past if isinstance(entry, Decision)]


@given(st.floats(0, 1), st.floats(0.01, 0.4), st.floats(0.5, 0.9), st.tuples(*[st.floats(0, 1, exclude_max=True)] * 3))
def test_history_of_another_width_is_never_above_the_traffic(
    score: float, old: float, new: float, draws: tuple[float, float, float]
) -> None:
    """A loss then counts for at least the thresholds that it should count for, whatever the draws."""
    for before, after in ((old, new), (new, old)):
        fed = of_other_width(dithered(score, before, draws[0]), before, after, draws[1])
        assert fed <= dithered(score, after, draws[2]) * (1.0 + 1e-15)


def test_a_random_source_without_dithers_may_be_used() -> None:
    """The dithers then come from the operating system; the coins are those of the source."""

    class Half:
        def draws(self, step: int) -> list[float]:
            return [0.5]

    recorded = {decision.uncertainty for decision in play(Router(0.1, policy=DITHERED, coins=Half()), 30)}
    assert len(recorded) == 30
