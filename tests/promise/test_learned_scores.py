"""The promise with scores that are learned on the way, and two ways of learning that break it."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bpac.betting.ledgers.ledger import Round
from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.events import Drafted
from bpac.replay.simulation.gateway import SimulatedGateway
from bpac.replay.simulation.load import under_load
from bpac.routing.bettors import Candidates
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.exploration.gain_schedules import WhileItPays
from bpac.routing.exploration.learned_rates import LearnedRates
from bpac.routing.exploration.schedules import Exploration
from bpac.routing.learning import rates
from bpac.routing.learning.fit import fit
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.learning.model import FrozenModel, OwnScore
from bpac.routing.learning.rates import CandidateRates
from bpac.routing.learning.samples import Sample
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router
from tests.promise.test_promise import explained

Spoil = Callable[[Router, list[tuple[Decision, float]]], None]

pytestmark = pytest.mark.promise

STREAMS, STEPS, EPSILON, ALPHA = 60, 1500, 0.1, 0.1
# Wrong ways of learning that break the promise in a third of all streams are told apart clearly only by more of them.
CONTROL_STREAMS = 100
FIT_AT = 150


class Cells:
    """A law with finitely many kinds of drafts, so that the risk of every threshold of any score is known exactly.

    Parameters
    ----------
    loss: probability of a loss, given score, number and word of a draft.
    """

    SCORES, NUMBERS, WORDS = (0.1, 0.3, 0.5, 0.7, 0.9), (1.0, 2.0, 4.0, 8.0), tuple(f"task {i}" for i in range(10))

    def __init__(self, loss: Callable[[float, float, int], float]) -> None:
        self.cells = [
            (score, number, word, loss(score, number, i))
            for score in self.SCORES
            for number in self.NUMBERS
            for i, word in enumerate(self.WORDS)
        ]

    def draw(self, steps: int, rng: np.random.Generator) -> list[tuple[float, tuple[Any, ...], float]]:
        """Score, features and loss of independent drafts."""
        rows = [self.cells[i] for i in rng.integers(len(self.cells), size=steps)]
        draws = rng.random(steps)
        return [(u, (x, w), float(d < p)) for (u, x, w, p), d in zip(rows, draws, strict=True)]

    def risk(self, model: FrozenModel | OwnScore | None, threshold: float, *further: str) -> float:
        """Expected loss below a threshold of the first score, or of a learned one.

        Parameters
        ----------
        model: the learned score; none for the first.
        threshold: the threshold.
        further: features that all drafts have in common, such as their segment.
        """
        cells = self.cells
        below = (p for u, x, w, p in cells if (u if model is None else model.score((u, x, w, *further))) < threshold)
        return math.fsum(below) / len(cells)


# Losses that features say much about, and losses that nothing says anything about: whatever is learned is noise.
TOLD = Cells(lambda score, number, word: min(0.9, 0.02 * number * (1 + score) * (1 + word / 5)))
NOISE = Cells(lambda score, number, word: 0.22)


def router(seed: int, fits: int = 1, least_gain: float = 0.0, exploration: Exploration | None = None) -> Router:
    """A router that learns early, and by default whatever it finds."""
    learn = LearnedScore(
        ("number", "word"),
        fit_at=tuple(FIT_AT * 2**i for i in range(fits)),
        shares=(0.5 / fits,) * fits,
        least_losses=5.0,
        ridge=0.5,
        least_gain=least_gain,
    )
    policy = Portfolio(memory="latched", learn=learn)
    return Router(EPSILON, ALPHA, policy, exploration=exploration, coins=SeededCoins(seed))


def is_broken(law: Cells, seed: int, *, spoil: Spoil | None = None, **options: Any) -> bool:
    """Whether a threshold was ever in force whose risk, for the score that it was used with, exceeds ε."""
    game = router(seed, **options)
    learning = game._route.learning
    used: dict[tuple[int, float], tuple[FrozenModel | OwnScore | None, float]] = {}
    samples: list[tuple[Decision, float]] = []
    assert learning is not None
    for uncertainty, features, loss in law.draw(STEPS, np.random.default_rng([seed, 1])):
        active = game._route.current.active_score
        decision = game.decide(uncertainty, features=features)
        model = learning.joined[active - 1].model if active else None
        used[id(model), decision.threshold] = model, decision.threshold
        if decision.call_expert:
            game.observe(decision, loss)
            samples.append((decision, loss))
        if spoil is not None:
            spoil(game, samples)
    kept = game.settings.terms.kept_share
    return any(kept * law.risk(model, threshold) > EPSILON + 1e-12 for model, threshold in used.values())


def replayed(game: Router, samples: list[tuple[Decision, float]]) -> None:
    """Let a learned score bet on the rounds that it was fitted to, as soon as it joins."""
    learning, bettor = game._route.learning, game._route.bettor
    assert isinstance(bettor, Candidates)
    assert learning is not None
    if not learning.joined or learning.entries < 0:
        return
    learning.entries = -1  # once
    wealth = bettor.wealths[1]
    assert isinstance(wealth, PortfolioWealth)
    for decision, loss in samples[: learning.joined[0].rounds]:
        score = learning.joined[0].model.score((decision.uncertainties[0], *decision.features))
        again = decision._replace(uncertainties=(decision.uncertainties[0], score))
        wealth.decided(again)
        wealth.resolve(again, loss)


def refitted(game: Router, samples: list[tuple[Decision, float]]) -> None:
    """Replace a learned score by a newer one now and then, and keep what was certified."""
    learning = game._route.learning
    assert learning is not None
    if learning.joined and not game.step % 25:
        latest = [
            Sample((decision.uncertainties[0], *decision.features), loss, decision.propensity)
            for decision, loss in samples[-FIT_AT:]
        ]
        learning.joined[0] = learning.joined[0]._replace(model=fit(latest, 0.5))
        learning.quick_scores = learning._first_scores  # by the newer one from here on


def broken(law: Cells, streams: int = STREAMS, **options: Any) -> Iterator[bool]:
    """Whether each stream breaks the promise."""
    return (is_broken(law, seed, **options) for seed in range(streams))


@pytest.mark.parametrize("law", [TOLD, NOISE], ids=["features tell", "noise"])
def test_no_unsafe_threshold_of_any_score_is_in_force(law: Cells) -> None:
    """Each score that joins has its own wealth and its share of α, so all of them together keep the promise."""
    assert explained(broken(law, fits=2), STREAMS, ALPHA)


def test_what_goes_back_to_the_first_score_keeps_the_promise() -> None:
    """Where nothing can be learned, the share of learned scores is bet for the first one, from then on."""
    assert explained(broken(NOISE, fits=2, least_gain=0.3), STREAMS, ALPHA)


def given_back_again(game: Router, samples: list[tuple[Decision, float]]) -> None:
    """Give the share of learned scores back to the first score again and again."""
    learning, bettor = game._route.learning, game._route.bettor
    assert isinstance(bettor, Candidates)
    assert learning is not None
    first = bettor.wealths[0]
    if learning.joined and isinstance(learning.joined[0].model, OwnScore) and not game.step % 10:
        assert isinstance(first, PortfolioWealth)
        first.reinforce(1.0, score=1)


def test_a_share_that_goes_back_more_than_once_breaks_the_promise() -> None:
    """The money of the new gamblers must have been kept for them: the same simulation finds more of it."""
    wrong: dict[str, Any] = {"least_gain": 0.3, "spoil": given_back_again}
    assert not explained(broken(NOISE, **wrong), STREAMS, ALPHA)


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Options of routers whose scores retire soon and often."""
    monkeypatch.setattr(rates, "FEWEST_ROUNDS", 64)
    monkeypatch.setattr(rates, "PATIENCE", 1000)
    return {"fits": 3, "exploration": WhileItPays(horizon=200, every=16)}


@pytest.mark.parametrize("law", [TOLD, NOISE], ids=["features tell", "noise"])
def test_scores_that_retire_keep_the_promise(law: Cells, early: dict[str, Any]) -> None:
    """A score that has stopped betting certifies nothing, whatever made it stop."""
    assert explained(broken(law, **early), STREAMS, ALPHA)


class LooksAway(PortfolioWealth):
    """The wealth of a score that goes on betting and books no losses."""

    __slots__ = ()

    def add(self, decision: Round, loss: float) -> None:
        """Nothing is lost."""


def test_scores_that_look_away_instead_of_retiring_break_the_promise(
    early: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A score that no longer sees its losses must not bet any more either: the same simulation finds it."""

    def look_away(self: CandidateRates, in_force: LearnedRates, accepted: float) -> None:
        for score, wealth in enumerate(self._bettor.wealths):
            if self._bettor.may_retire(score):
                wealth.__class__ = LooksAway

    monkeypatch.setattr(CandidateRates, "_retire", look_away)
    assert not explained(broken(NOISE, **early), STREAMS, ALPHA)


@pytest.mark.parametrize("spoil", [replayed, refitted])
def test_wrong_ways_to_learn_break_the_promise(spoil: Spoil) -> None:
    """Betting on the rounds of the fit, or refitting in place, is caught by the same simulation."""
    assert not explained(broken(NOISE, CONTROL_STREAMS, spoil=spoil), CONTROL_STREAMS, ALPHA)


def is_broken_under_load(law: Cells, seed: int) -> bool:
    """The same with many queries under way, of which those that lose take longer to draft and to grade."""
    rng = np.random.default_rng([seed, 2])
    rows = law.draw(STEPS, rng)
    game = router(seed)
    gateway = SimulatedGateway(game, tickets=True, features=[features for _, features, _ in rows])
    learning = game._route.learning
    used: dict[tuple[int, float], tuple[FrozenModel | OwnScore | None, float]] = {}
    assert learning is not None
    rounds = ((uncertainty, loss) for uncertainty, _, loss in rows)
    for event in under_load(rounds, Drafting.parse("losses:3", 32), Delay.parse("losses:20"), rng):
        decision = gateway.handle(event)
        if decision is not None and isinstance(event, Drafted):
            active = decision.uncertainties.index(decision.uncertainty)
            model = learning.joined[active - 1].model if active else None
            used[id(model), decision.threshold] = model, decision.threshold
    kept = game.settings.terms.kept_share
    return any(kept * law.risk(model, threshold) > EPSILON + 1e-12 for model, threshold in used.values())


@pytest.mark.parametrize("law", [TOLD, NOISE], ids=["features tell", "noise"])
def test_the_promise_holds_under_load(law: Cells) -> None:
    """A score bets on the queries that arrive after it has joined, however long the drafts of others take."""
    assert explained((is_broken_under_load(law, seed) for seed in range(STREAMS)), STREAMS, ALPHA)
