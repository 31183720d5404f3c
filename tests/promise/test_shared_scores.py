"""The promise of segments that learn their scores together, and ways of sharing more than scores that break it."""

from collections.abc import Callable
from copy import deepcopy
from itertools import tee
from typing import NamedTuple

import numpy as np
import pytest

from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.routing.bettors import Candidates
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.learning.learning import Learning
from bpac.routing.learning.model import FrozenModel, OwnScore
from bpac.routing.learning.shared_scores import SharedScores
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router
from bpac.routing.segments import Segments
from tests.promise.test_learned_scores import Cells
from tests.promise.test_promise import explained

pytestmark = pytest.mark.promise

STREAMS, STEPS, EPSILON, ALPHA = 60, 1800, 0.1, 0.1
# It learns early, whatever it finds, and with little restraint; most of α is bet on what it has learned.
LEARN = LearnedScore(
    ("number", "word", "segment"), fit_at=(150,), shares=(0.9,), least_losses=5.0, ridge=0.1, least_gain=0.0
)


class Segment(NamedTuple):
    """Traffic of one kind.

    Parameters
    ----------
    law: its drafts and their losses.
    weight: how much of the traffic it is, relative to the others that have begun.
    begins: the step of the stream at which its first query may come.
    """

    law: Cells
    weight: int = 1
    begins: int = 0


# Long drafts lose in the first segment, nothing says anything about losses in the second, and short drafts lose in the
# third, which begins when the others have learned.
SEGMENTS = {
    "told": Segment(Cells(lambda score, number, word: min(0.9, 0.015 * number * (1 + score) * (1 + word / 5)))),
    "noise": Segment(Cells(lambda score, number, word: 0.22), weight=3),
    "late": Segment(Cells(lambda score, number, word: 0.5 if number < 3.0 else 0.05), begins=600),
}
Audits = dict[str, list[tuple[Decision, float]]]
Spoil = Callable[[str, Segments, Audits], None]
Used = dict[tuple[int, float], tuple[FrozenModel | OwnScore | None, float]]


def learning_of(game: Router) -> Learning:
    """What a router has learned."""
    learning = game._route.learning
    assert learning is not None
    return learning


def bettor_of(game: Router) -> Candidates:
    """The wealth of each score of a router."""
    bettor = game._route.bettor
    assert isinstance(bettor, Candidates)
    return bettor


def broken(seed: int, spoil: Spoil | None = None) -> dict[str, bool]:
    """For each segment, whether a threshold was ever in force whose risk there, for its score, exceeds ε."""
    rng = np.random.default_rng([seed, 3])
    coins = {name: SeededCoins(seed * len(SEGMENTS) + number) for number, name in enumerate(SEGMENTS)}
    policy = Portfolio(memory="latched", learn=LEARN)
    segments = Segments(
        lambda name, alpha: Router(EPSILON, alpha, policy, coins=coins[name]), ALPHA, shared=SharedScores()
    )
    drafts = {name: iter(segment.law.draw(STEPS, rng)) for name, segment in SEGMENTS.items()}
    used: dict[str, Used] = {name: {} for name in SEGMENTS}
    audits: Audits = {name: [] for name in SEGMENTS}
    for step in range(STEPS):
        begun = [name for name, one in SEGMENTS.items() if one.begins <= step for _ in range(one.weight)]
        name = begun[rng.integers(len(begun))]
        game = segments.router(name)
        uncertainty, features, loss = next(drafts[name])
        active = game._route.current.active_score
        decision = game.decide(uncertainty, features=(*features, name))
        model = learning_of(game).joined[active - 1].model if active else None
        used[name][id(model), decision.threshold] = model, decision.threshold
        if decision.call_expert:
            game.observe(decision, loss)
            audits[name].append((decision, loss))
        if spoil is not None:
            spoil(name, segments, audits)
    kept = game.settings.terms.kept_share
    return {
        name: any(
            kept * one.law.risk(model, threshold, name) > EPSILON + 1e-12 for model, threshold in used[name].values()
        )
        for name, one in SEGMENTS.items()
    }


def kept_by(*names: str, spoil: Spoil | None = None) -> list[bool]:
    """Whether each of these segments keeps its own promise, as far as the streams tell."""
    streams = tee((broken(seed, spoil) for seed in range(STREAMS)), len(names))
    return [
        explained((stream[name] for stream in copy), STREAMS, ALPHA) for name, copy in zip(names, streams, strict=True)
    ]


def test_each_segment_keeps_its_own_promise() -> None:
    """What is learned from all segments is a fixed score for each of them, which bets there from a wealth of 1."""
    assert kept_by("told", "noise", "late") == [True, True, True]


def taken_over(name: str, segments: Segments, _: Audits) -> None:
    """Let the late segment begin with the wealth and the threshold of the first one, not with its score alone."""
    if name == "late" and segments[name].step == 1:
        late, first = bettor_of(segments[name]), bettor_of(segments["told"])
        late._wealths, late.active, late.accepted = deepcopy(first.wealths), first.active, list(first.accepted)
        late._changed()
        late._look()


def test_a_late_segment_that_takes_over_wealth_breaks_its_promise() -> None:
    """What is safe in one segment is not in another."""
    assert kept_by("late", spoil=taken_over) == [False]


def played_again(name: str, segments: Segments, audits: Audits) -> None:
    """Let the shared score bet, in one segment, on the rounds of that segment that it was fitted to."""
    learning, bettor = learning_of(segments[name]), bettor_of(segments[name])
    if name != "noise" or not learning.joined or learning.entries < 0:
        return
    learning.entries = -1  # once
    model, wealth = learning.joined[0].model, bettor.wealths[1]
    assert isinstance(wealth, PortfolioWealth)
    for decision, loss in audits[name]:
        if len(decision.uncertainties) == 1:
            score = model.score((decision.uncertainties[0], *decision.features))
            again = decision._replace(uncertainties=(decision.uncertainties[0], score))
            wealth.decided(again)
            wealth.resolve(again, loss)


def test_a_segment_that_bets_on_rounds_of_the_shared_fit_breaks_its_promise() -> None:
    """Its own rounds are part of the fit, although most of it may come from others."""
    assert kept_by("noise", spoil=played_again) == [False]
