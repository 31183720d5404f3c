import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bpac.betting.ledgers.levels import EvenLevels, Levels, ListedLevels, RelativeLevels
from bpac.betting.payoff import Terms
from bpac.betting.wealth.portfolio import ConstantBoundWealth, PortfolioWealth
from bpac.routing.decision import Decision
from bpac.routing.policies.stakes import DEFAULT_STAKES
from tests.betting.rounds import a_round
from tests.transcriptions import FOUR_FRACTIONS, PortfolioTranscription

TERMS = Terms(0.2, 0.3)
ALPHA = 0.5
BAR = -math.log(ALPHA)
SCORES = (0.0, 1e-13, 0.1, 0.1000001, 0.3, 0.55, 0.9, 0.9995, 1.0)
LEVELS: list[Levels] = [RelativeLevels(), RelativeLevels(4, 20), EvenLevels(11), ListedLevels((0.2, 0.5))]

# A round, and when its loss is known: at once, later, or never.
rounds = st.lists(
    st.builds(
        lambda score, least, certain, loss, known: (
            a_round(score, 1.0 if certain else least, least, call_expert=loss is not None),
            loss,
            known,
        ),
        st.sampled_from(SCORES),
        st.sampled_from([1.0, 0.7, 0.3]),
        st.booleans(),
        st.one_of(st.none(), st.sampled_from([0.0, 0.0, 0.25, 1.0])),
        st.sampled_from(["at once", "at once", "later", "never"]),
    ),
    max_size=25,
)
Round = tuple[Decision, float | None, str]


def transcribed(
    levels: Levels,
    constant_bound: float | None,
    outcomes: Sequence[tuple[Decision, float]],
    **stakes: Any,
) -> Any:
    """The transcription after these rounds, from the beginning."""
    slow = PortfolioTranscription(
        TERMS.epsilon,
        ALPHA,
        TERMS.kept_share,
        SCORES,
        round_down=lambda score: levels.value(levels.code(score)),
        constant_bound=constant_bound,
        floor=TERMS.floor,
        **stakes,
    )
    for decision, loss in outcomes:
        slow.settle(decision.uncertainty, decision.propensity, decision.least_propensity, loss)
    return slow


def agree(wealth: PortfolioWealth, slow: Any) -> None:
    """Assert that the wealth is the same at all thresholds."""
    for threshold, expected in zip(slow.thresholds, slow.log_wealth, strict=True):
        assert wealth.log_wealth(float(threshold)) == pytest.approx(expected, abs=1e-9)


def moments(
    wealth: PortfolioWealth,
    rounds: list[Round],
    levels: Levels,
    constant_bound: float | None,
    **stakes: Any,
) -> Iterator[Any]:
    """Feed the rounds, and give the transcription at every moment; what is not known counts as loss 1."""
    outcomes: list[tuple[Decision, float]] = []
    late: list[tuple[int, Decision, float]] = []
    for decision, loss, known in rounds:
        wealth.decided(decision)
        if loss is None or known == "at once":
            outcomes.append((decision, loss or 0.0))
            wealth.resolve(decision, loss or 0.0)
        else:
            if known == "later":
                late.append((len(outcomes), decision, loss))
            outcomes.append((decision, 1.0))
            wealth.charge(decision)
            wealth.forfeit(decision)
        yield transcribed(levels, constant_bound, outcomes, **stakes)
    for index, decision, loss in reversed(late):
        outcomes[index] = (decision, loss)
        wealth.refund(decision, loss)
        yield transcribed(levels, constant_bound, outcomes, **stakes)


@pytest.mark.no_cover
@pytest.mark.parametrize("levels", LEVELS, ids=repr)
@pytest.mark.parametrize("constant", [False, True], ids=["own bounds", "one bound"])
@settings(max_examples=25)
@given(rounds=rounds)
def test_wealth_agrees_with_the_transcription_at_every_moment(
    rounds: list[Round], levels: Levels, constant: bool
) -> None:
    """Charged, refunded, resolved at once or given up: wealth and threshold are those of section 3, or 4."""
    kind = ConstantBoundWealth if constant else PortfolioWealth
    bound = TERMS.payoff_bound(TERMS.floor) if constant else None
    wealth = kind(TERMS, BAR, FOUR_FRACTIONS, levels, latched=False)
    for slow in moments(wealth, rounds, levels, bound):
        agree(wealth, slow)
        if all(abs(log - BAR) > 1e-9 for log in slow.log_wealth):
            assert wealth.threshold == pytest.approx(slow.threshold, abs=1e-12)


@pytest.mark.no_cover
@settings(max_examples=50)
@given(rounds=rounds)
def test_stakes_at_the_exploration_floor_are_their_own(rounds: list[Round]) -> None:
    """In rounds whose least propensity is the floor the gamblers have other stakes, charged and refunded alike."""
    bold = (0.4, 0.85, 0.85, 0.95)
    wealth = PortfolioWealth(TERMS, BAR, FOUR_FRACTIONS, RelativeLevels(), latched=False, floor_fractions=bold)
    for slow in moments(wealth, rounds, RelativeLevels(), None, floor_fractions=bold):
        agree(wealth, slow)
        if all(abs(log - BAR) > 1e-9 for log in slow.log_wealth):
            assert wealth.threshold == pytest.approx(slow.threshold, abs=1e-12)


@pytest.mark.no_cover
@settings(max_examples=50)
@given(rounds=rounds)
def test_gamblers_may_begin_with_different_shares_of_the_money(rounds: list[Round]) -> None:
    """The wealth is the mean with these weights, charged and refunded alike, and never more than 1 at the start."""
    stakes = DEFAULT_STAKES._asdict()
    wealth = PortfolioWealth(TERMS, BAR, levels=RelativeLevels(), latched=False, **stakes)
    assert -1e-9 < wealth.log_wealth(1.0) <= 0.0
    for slow in moments(wealth, rounds, RelativeLevels(), None, **stakes):
        agree(wealth, slow)
        if all(abs(log - BAR) > 1e-9 for log in slow.log_wealth):
            assert wealth.threshold == pytest.approx(slow.threshold, abs=1e-12)


@pytest.mark.no_cover
@settings(max_examples=25)
@given(rounds=rounds)
def test_a_latched_threshold_is_the_highest_so_far(rounds: list[Round]) -> None:
    """A threshold never latches between a decision and its outcome, when the loss is not counted."""
    wealth = PortfolioWealth(TERMS, BAR, FOUR_FRACTIONS, RelativeLevels(), latched=True)
    highest = 0.0
    for slow in moments(wealth, rounds, RelativeLevels(), None):
        agree(wealth, slow)
        assume(all(abs(log - BAR) > 1e-9 for log in slow.log_wealth))
        highest = max(highest, slow.threshold)
        assert wealth.threshold == pytest.approx(highest, abs=1e-12)


@settings(max_examples=30)
@given(rounds=rounds)
def test_wealth_never_rises_with_the_threshold(rounds: list[Round]) -> None:
    """``K(u)`` is non-increasing in u, between levels too, so that the threshold is a single point."""
    wealth = PortfolioWealth(TERMS, 1.0, FOUR_FRACTIONS, RelativeLevels(), latched=False)
    for decision, loss, _ in rounds:
        wealth.decided(decision)
        wealth.resolve(decision, loss or 0.0)
    points = sorted({*SCORES, 0.05, 0.10005, 0.2, 0.7, 0.95})
    logs = [wealth.log_wealth(point) for point in points]
    assert all(low >= high for low, high in itertools.pairwise(logs))


@settings(max_examples=50)
@given(rounds=rounds, cut=st.integers(0, 25))
def test_portfolio_wealth_continues_from_its_saved_state(rounds: list[Round], cut: int) -> None:
    """State taken at any moment and loaded elsewhere leads to the same bits and thresholds, late refunds included."""

    def fresh() -> PortfolioWealth:
        return PortfolioWealth(TERMS, BAR, FOUR_FRACTIONS, RelativeLevels(), latched=False)

    steady, stopped = fresh(), fresh()
    late = []
    for index, (decision, loss, known) in enumerate(rounds):
        if index == cut:
            copy = fresh()
            copy.load(stopped.state())
            stopped = copy
        for wealth in (steady, stopped):
            wealth.decided(decision)
            if loss is None or known == "at once":
                wealth.resolve(decision, loss or 0.0)
            else:
                wealth.charge(decision)
        if loss is not None and known != "at once":
            late.append((decision, loss))
        assert stopped.threshold == steady.threshold
    copy = fresh()
    copy.load(stopped.state())
    for decision, loss in late:
        steady.refund(decision, loss)
        copy.refund(decision, loss)
        assert copy.threshold == steady.threshold
    assert copy.state() == steady.state()


def test_losses_are_remembered_where_they_were_booked() -> None:
    """Booked scores are the rounded scores of seen losses, without those that were refunded in full."""
    wealth = PortfolioWealth(TERMS, 1.0, FOUR_FRACTIONS, EvenLevels(11), latched=False)
    for score, loss in ((0.37, 1.0), (0.52, 0.0), (0.88, 0.5)):
        decision = a_round(score)
        wealth.decided(decision)
        wealth.charge(decision)
        wealth.refund(decision, loss)
    assert [row[0] for row in wealth.state()["losses"]] == [3, 8]


def test_each_wealth_of_several_books_its_own_score() -> None:
    """With several scores a loss is booked at the score that the wealth is about (MATH 8)."""
    decision = a_round(0.2, uncertainties=(0.2, 0.6))
    for score, level in ((None, 2), (0, 2), (1, 6)):
        wealth = PortfolioWealth(TERMS, 1.0, FOUR_FRACTIONS, EvenLevels(11), latched=False, score=score)
        wealth.decided(decision)
        wealth.resolve(decision, 1.0)
        assert [row[0] for row in wealth.state()["losses"]] == [level]


@pytest.mark.no_cover
@settings(max_examples=60)
@given(rounds=rounds, joins=st.integers(0, 25), cut=st.integers(0, 25), out_of_order=st.booleans())
def test_gamblers_who_are_added_later_bet_on_later_rounds_only(
    rounds: list[Round], joins: int, cut: int, out_of_order: bool
) -> None:
    """The wealth is that of all rounds, plus the new money times that of the rounds after it, refunds included."""
    share = 0.4

    def fresh() -> PortfolioWealth:
        return PortfolioWealth(TERMS, BAR, FOUR_FRACTIONS, RelativeLevels(), latched=False, score=0)

    wealth, first, later = fresh(), fresh(), fresh()
    late = []
    for index, (plain, loss, known) in enumerate(rounds):
        if index == joins:
            wealth.reinforce(share, score=1)
        if index == cut:
            copy = fresh()
            copy.load(wealth.state())
            wealth = copy
        # A query that arrived before they were added may be decided after others that arrived later.
        sees = index >= joins and not (out_of_order and index % 3 == 1)
        decision = plain._replace(uncertainties=(plain.uncertainty,) * (2 if sees else 1))
        for one in (wealth, first, later) if sees else (wealth, first):
            one.decided(decision)
            if loss is None or known == "at once":
                one.resolve(decision, loss or 0.0)
            else:
                one.charge(decision)
        if loss is not None and known == "later":
            late.append((decision, loss, sees))
    for decision, loss, sees in late:
        for one in (wealth, first, later) if sees else (wealth, first):
            one.refund(decision, loss)
    if len(rounds) <= joins:
        return
    for threshold in SCORES:
        expected = math.exp(first.log_wealth(threshold)) + share * math.exp(later.log_wealth(threshold))
        assert math.exp(wealth.log_wealth(threshold)) == pytest.approx(expected, rel=1e-9)
        passes = threshold < wealth.threshold
        if abs(math.log(expected) - BAR) > 1e-9:
            assert not passes or math.log(expected) >= BAR
    assert wealth.hopeless_from(-50.0, []) == math.inf
