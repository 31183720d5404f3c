"""Scores that compete: counting rounds together leads to the same state as counting them one by one."""

import math
import random

import pytest

from bpac.betting.payoff import Terms
from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.routing.bettors import Bettor, Candidates
from bpac.routing.decision import Decision
from bpac.routing.exploration.gain_schedules import WhileItPays
from bpac.routing.exploration.learned_rates import LearnedRates
from bpac.routing.learning.rates import CandidateRates
from bpac.routing.policies import Portfolio

TERMS = Terms(epsilon=0.1, floor=0.05)
ALPHA = 0.3


def wealth_of(score: int, *, latched: bool) -> PortfolioWealth:
    """The wealth of one score."""
    return Portfolio(memory="latched" if latched else "revocable")._wealth(TERMS, ALPHA, score)


def stream(seed: int, rounds: int, joins_at: int) -> list[tuple[Decision, float | None]]:
    """Decisions that carry one score, and later two; some of the later ones had arrived before the second one."""
    dice = random.Random(seed)
    found: list[tuple[Decision, float | None]] = []
    least = 1.0
    for step in range(1, rounds + 1):
        if dice.random() < 0.02:
            least = dice.choice((0.05, 0.3, 1.0))
        late = step < joins_at or (step < joins_at + 40 and dice.random() < 0.3)
        scores = tuple(round(dice.random(), 2) for _ in range(1 if late else 2))
        audited = dice.random() < max(least, 0.3)
        loss = (0.0 if dice.random() < 0.9 else dice.choice((1.0, 0.5))) if audited else None
        found.append((Decision(step, scores[0], 0.5, least, least, audited, not audited, 1, scores), loss))
    return found


@pytest.mark.parametrize("joins", [True, False], ids=["a score joins", "its share goes back"])
@pytest.mark.parametrize("latched", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_quiet_rounds_are_counted_as_if_one_by_one(seed: int, latched: bool, joins: bool) -> None:
    """Every wealth and threshold is that of a wealth that follows its rounds alone, after every single round."""
    dice = random.Random(seed)
    candidates = Candidates(lambda score: wealth_of(score, latched=latched), lambda score: 0.5, most=2)
    first = wealth_of(0, latched=latched)
    alone = [first]
    charged: list[tuple[Decision, float]] = []
    for decision, loss in stream(seed, 900, joins_at=200):
        if decision.step == 200 and joins:
            candidates.join()
            alone.append(wealth_of(1, latched=latched))
        elif decision.step == 200:
            candidates.take_back()
            first.reinforce(0.5, 1)
            assert candidates.wealths[1].log_wealth(0.5) == -math.inf
        bettors: list[Bettor] = [candidates, *alone[: len(decision.uncertainties)]]
        for bettor in bettors:
            bettor.decided(decision)
        if loss is not None and dice.random() < 0.5:
            for bettor in bettors:
                bettor.charge(decision)
            charged.append((decision, loss))
        elif loss is not None:
            for bettor in bettors:
                bettor.resolve(decision, loss)
        if charged and dice.random() < 0.2:
            late, its_loss = charged.pop(dice.randrange(len(charged)))
            bettors = [candidates, *alone[: len(late.uncertainties)]]
            for bettor in bettors:
                bettor.refund(late, its_loss)
        assert candidates.threshold == alone[candidates.active].threshold
        assert [wealth.threshold for _, wealth in candidates._betting] == [wealth.threshold for wealth in alone]
    betting = [wealth for wealth in candidates.wealths if isinstance(wealth, PortfolioWealth)]
    assert [wealth.state() for wealth in betting] == [wealth.state() for wealth in alone]
    assert candidates.threshold > 0.0
    again = Candidates(lambda score: wealth_of(score, latched=latched), lambda score: 0.5, most=2)
    again.load(candidates.state())
    assert again.state() == candidates.state()


@pytest.mark.parametrize("seed", range(3))
def test_traffic_and_losses_are_booked_by_score_as_if_one_by_one(seed: int) -> None:
    """What each score has seen at any time is what rates of its own would have, bits of sums included."""
    schedule = WhileItPays(every=16, in_time=False)  # looks are then as far apart for each score alone
    candidates = Candidates(lambda score: wealth_of(score, latched=True), lambda score: 0.5, most=2)
    rates, alone = CandidateRates(schedule, TERMS, candidates), [LearnedRates(schedule, TERMS)]
    dice = random.Random(seed)
    for decision, loss in stream(seed, 700, joins_at=200):
        if decision.step == 200:
            candidates.join()
            rates.join(1.0)
            for one in alone:
                one.collect()
            alone.append(LearnedRates(schedule, TERMS))
            alone[-1].collect()
        rates.decided(decision)
        for score, uncertainty in enumerate(decision.uncertainties):
            alone[score].recent.append(uncertainty)
            alone[score].audits += decision.least_propensity
            if loss:
                alone[score].book(uncertainty, decision.propensity, loss)
        if loss:
            rates.resolve(decision, loss)
        if any(len(one.recent) >= one.pause for one in alone):
            for one in alone:
                one.collect()
        if dice.random() < 0.05:
            seen = [{**one.state(), "rate": 0.0} for one in alone]
            assert [{**score, "rate": 0.0} for score in rates.state()["scores"]] == seen


@pytest.mark.parametrize("latched", [True, False])
@pytest.mark.parametrize("seed", [*(pytest.param(seed, marks=pytest.mark.no_cover) for seed in range(2)), 2])
def test_the_share_of_accepted_traffic_is_that_of_the_latest_rounds(seed: int, latched: bool) -> None:
    """It is counted from what has changed, and equals a count of all; without rounds it stays as it is."""
    candidates = Candidates(lambda score: wealth_of(score, latched=latched), lambda score: 0.5, most=2)
    recent: list[tuple[float, ...]] = []
    rounds = stream(seed, 2000, joins_at=200)
    # After it has joined, only queries that had arrived before it: there is nothing to count.
    early = [(decision._replace(uncertainties=decision.uncertainties[:1]), loss) for decision, loss in rounds[199:330]]
    for decision, loss in [*rounds[:199], *early, *rounds[330:]]:
        if decision.step == 200:
            candidates.join()
        candidates.decided(decision)
        if decision.step >= 200 and len(decision.uncertainties) == 2:
            recent.append(decision.uncertainties)
        if decision.step >= 200 and candidates.state()["rounds"] % Candidates.EVERY == 0:
            latest = recent[-Candidates.MEMORY :]
            for score, wealth in enumerate(candidates.wealths):
                accepted = sum(one[score] < wealth.threshold for one in latest)
                assert candidates.accepted[score] == (accepted / len(latest) if latest else 0.0)
        if loss is not None:
            candidates.resolve(decision, loss)
    assert max(candidates.accepted) > 0.0
