import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpac.betting.ledgers.levels import EvenLevels
from bpac.betting.payoff import Terms
from bpac.betting.wealth.bets import AdaptiveBet, Bet, FixedBet
from bpac.betting.wealth.grid import GridWealth
from bpac.betting.wealth.thresholds import FixedSequence, PriorThreshold, ThresholdRule
from bpac.errors import SettingsError
from tests.transcriptions import PaperTranscription

TERMS = Terms(0.2, 0.1)
ALPHA = 0.3
POINTS = 21
SLOPED = tuple(float(POINTS - k) for k in range(POINTS))
VARIANTS: dict[str, tuple[Bet, ThresholdRule, float | None, tuple[float, ...] | None]] = {
    "paper": (AdaptiveBet(), FixedSequence(), None, None),
    "uniform prior": (AdaptiveBet(), PriorThreshold(), None, (1.0,) * POINTS),
    "sloped prior": (AdaptiveBet(), PriorThreshold(SLOPED), None, SLOPED),
    "fixed bet": (FixedBet(0.1), FixedSequence(), 0.1, None),
    "fixed bet and prior": (FixedBet(0.1), PriorThreshold(), 0.1, (1.0,) * POINTS),
}
Settled = tuple[float, float, float, float]
settled = st.tuples(
    st.sampled_from([0.0, 0.04, 0.05, 0.3, 0.5, 0.99, 1.0]),
    st.sampled_from([1.0, 0.7, 0.1]),
    st.sampled_from([0.7, 0.1]),
    st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.3, 1.0]),
)


def pair(variant: str) -> tuple[GridWealth, PaperTranscription]:
    """The fast and the slow form of a variant."""
    bet, rule, fixed_bet, prior = VARIANTS[variant]
    fast = GridWealth(TERMS, ALPHA, bet, rule, EvenLevels(POINTS))
    slow = PaperTranscription(TERMS.epsilon, ALPHA, TERMS.kept_share, points=POINTS, fixed_bet=fixed_bet, prior=prior)
    return fast, slow


def same(fast: GridWealth, slow: PaperTranscription) -> None:
    """Assert that the wealth agrees at every grid point, and so does the threshold."""
    logs = [fast.log_wealth(float(point)) for point in slow.grid]
    assert logs == pytest.approx(slow.log_wealth.tolist(), abs=1e-9)
    assert fast.threshold == pytest.approx(slow.threshold, abs=1e-12)


@pytest.mark.no_cover
@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=40)
@given(rounds=st.lists(settled, max_size=30))
def test_grid_wealth_agrees_with_the_transcription(rounds: list[Settled], variant: str) -> None:
    """Wealth and threshold are those of section 2 after every round, whatever the rounds."""
    fast, slow = pair(variant)
    for uncertainty, propensity, rate, loss in rounds:
        least = min(rate, propensity)
        fast.settle(uncertainty, propensity, least, loss)
        slow.settle(uncertainty, propensity, least, loss)
        same(fast, slow)


@pytest.mark.no_cover
@pytest.mark.parametrize("variant", VARIANTS)
def test_grid_wealth_agrees_over_thousands_of_rounds(variant: str) -> None:
    """Through thousands of rounds, in which thresholds rise and fall, thresholds and wealth agree."""
    dice = np.random.default_rng(5)
    fast, slow = pair(variant)
    thresholds = []
    for step in range(6000):
        hard = 3000 < step < 5000
        uncertainty = float(dice.random())
        loss = float(dice.random() < (0.9 if hard else 0.5 * uncertainty**6))
        fast.settle(uncertainty, 0.5, 0.5, loss)
        slow.settle(uncertainty, 0.5, 0.5, loss)
        thresholds.append(fast.threshold)
        assert fast.threshold == slow.threshold
    logs = np.array([fast.log_wealth(float(point)) for point in slow.grid])
    assert logs == pytest.approx(slow.log_wealth, rel=1e-9, abs=1e-6)
    assert max(thresholds) > 0.5
    assert min(thresholds[3000:]) < 0.3


@pytest.mark.parametrize(("variant", "loss", "rounds"), [("paper", 0.0, 8000), ("fixed bet", 1.0, 5000)])
def test_wealth_may_leave_the_range_of_a_double(variant: str, loss: float, rounds: int) -> None:
    """Wealth beyond e^±745 is kept like any other, and still moves the threshold when it comes back."""
    fast, slow = pair(variant)
    for _ in range(rounds):
        fast.settle(0.3, 0.5, 0.5, loss)
        slow.settle(0.3, 0.5, 0.5, loss)
    assert abs(slow.log_wealth[-1]) > 745.0
    for _ in range(1200):
        fast.settle(0.3, 0.5, 0.5, 1.0 - loss)
        slow.settle(0.3, 0.5, 0.5, 1.0 - loss)
        assert fast.threshold == slow.threshold
    logs = [fast.log_wealth(float(point)) for point in slow.grid]
    assert logs == pytest.approx(slow.log_wealth.tolist(), rel=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=40)
@given(rounds=st.lists(settled, max_size=80), cut=st.integers(0, 80))
def test_grid_wealth_continues_from_its_saved_state(rounds: list[Settled], cut: int, variant: str) -> None:
    """State written as JSON and loaded elsewhere leads to the same bits."""
    steady, stopped = pair(variant)[0], pair(variant)[0]
    for index, (uncertainty, propensity, rate, loss) in enumerate(rounds):
        if index == cut:
            state = json.loads(json.dumps(stopped.state()))
            stopped = pair(variant)[0]
            stopped.load(state)
            assert stopped.threshold == steady.threshold
        steady.settle(uncertainty, propensity, rate, loss)
        stopped.settle(uncertainty, propensity, rate, loss)
    assert stopped.state() == steady.state()
    assert stopped.threshold == steady.threshold


@pytest.mark.parametrize("bet", [FixedBet(0.2), FixedBet(5.0), AdaptiveBet(0.9995)])
def test_a_bet_that_could_lose_everything_is_refused(bet: Bet) -> None:
    """A stake that a single round could turn into ruin is refused with what to change."""
    with pytest.raises(SettingsError, match=r"can lose more than 0\.999 .* lower the bet or raise the exploration"):
        GridWealth(TERMS, ALPHA, bet, FixedSequence(), EvenLevels(POINTS))


@pytest.mark.parametrize("size", [0.0, -0.05, float("nan"), float("inf"), "0.05"])
def test_a_fixed_bet_is_a_positive_number(size: float) -> None:
    """A stake of 0 or below, or one that is not a number, is refused."""
    with pytest.raises(SettingsError, match=r"^size must be"):
        FixedBet(size)


@pytest.mark.parametrize("max_stake", [0.0, 1.0, -0.5, 2.0])
def test_the_largest_stake_is_a_share(max_stake: float) -> None:
    """The paper's c lies strictly between 0 and 1."""
    with pytest.raises(SettingsError, match=r"^max_stake must"):
        AdaptiveBet(max_stake)


@pytest.mark.parametrize("weights", [(1.0,), (1.0,) * 20, (1.0,) * 22])
def test_a_prior_has_one_weight_for_each_grid_point(weights: tuple[float, ...]) -> None:
    """A prior of another length is refused where it meets the grid."""
    with pytest.raises(SettingsError, match=f"the prior has {len(weights)} weights for 21 grid points"):
        GridWealth(TERMS, ALPHA, AdaptiveBet(), PriorThreshold(weights), EvenLevels(POINTS))


@pytest.mark.parametrize("weights", [(), (1.0, 0.0), (1.0, -1.0), (1.0, float("inf")), (1.0, "1")])
def test_a_prior_has_positive_weights(weights: tuple[float, ...]) -> None:
    """A weight of 0, which would require infinite wealth, anything that is not a weight, and an empty list."""
    with pytest.raises(SettingsError, match=r"weights? of the prior|the prior has 0 weights"):
        GridWealth(TERMS, ALPHA, AdaptiveBet(), PriorThreshold(weights), EvenLevels(2))


@pytest.mark.parametrize("rule", [FixedSequence(), PriorThreshold()])
@given(reached=st.lists(st.booleans(), min_size=1, max_size=8), more=st.lists(st.booleans(), min_size=8, max_size=8))
def test_a_win_and_a_loss_lead_to_the_same_index(rule: ThresholdRule, reached: list[bool], more: list[bool]) -> None:
    """Continuing from the last index after a win finds what looking at all points finds."""
    now = [was or add for was, add in zip(reached, more, strict=False)]
    index = rule.after_loss(np.array(reached))
    bars = np.ones(len(reached))
    assert rule.after_win(index, np.array(now, dtype=np.float64), bars) == rule.after_loss(np.array(now))
