"""Audits that teach more: dithered scores and bolder stakes keep the promise, and what looks like them does not."""

import random
from collections.abc import Callable, Iterator

import pytest

from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.bounds.fixed_sample import FRACTIONS
from bpac.betting.ledgers.ledger import Round
from bpac.betting.payoff import Terms
from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.replay.simulation.laws import LevelLaw, dithered_risk
from bpac.replay.validation import Validation
from bpac.routing.coins import Coins, SeededCoins
from bpac.routing.exploration.schedules import Constant, Exploration
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router
from tests.betting.rounds import a_round
from tests.promise.test_promise import explained, more_than, most_explained
from tests.transcriptions import FLOOR_FRACTIONS

pytestmark = pytest.mark.promise

EPSILON, ALPHA, STREAMS = 0.1, 0.1, 100
# Half of the drafts are safe; of the others, which all have the same score, a third is all that may be accepted.
TIED = LevelLaw(levels=(0.1, 0.5), weights=(0.5, 0.5), chances=(0.04, 0.5))
WIDE = Portfolio(dither=0.2)


class SameDraws(SeededCoins):
    """A random source that dithers with the coins themselves."""

    def dithers(self, step: int) -> list[float]:
        """The coins."""
        return self.draws(step)


def broken(make_router: Callable[..., Router], law: LevelLaw = TIED, steps: int = 1500) -> Iterator[bool]:
    """Whether in each stream an unsafe threshold was ever in force."""
    validation = Validation(make_router, law, steps)
    return ("threshold" in validation.stream(seed).broken for seed in range(STREAMS))


def router(policy: Portfolio, exploration: Exploration | None = None) -> Callable[..., Router]:
    """Makes routers of that policy."""
    return lambda coins, journal=None: Router(
        EPSILON, ALPHA, policy, exploration=exploration, coins=coins, journal=journal
    )


@pytest.mark.parametrize("policy", [Portfolio(dither=1 / 64), WIDE], ids=["default", "wide"])
def test_dithered_scores_keep_the_promise_and_accept_part_of_a_tie(policy: Portfolio) -> None:
    """Unsafe thresholds are in force in no more streams than chance explains, and some drafts of the tie are kept."""
    assert explained(broken(router(policy)), STREAMS, ALPHA)
    assert Validation(router(policy), TIED, 6000).stream(1).threshold > 0.5 * (1.0 - policy.dither)


def test_scores_dithered_by_the_coin_break_it() -> None:
    """Control: a draw that also decides on audits hides the losses of a tie above every threshold within it."""
    wrong = broken(lambda coins, journal=None: Router(EPSILON, ALPHA, WIDE, coins=SameDraws(_seed(coins))))
    assert not explained(wrong, STREAMS, ALPHA)


def _seed(coins: Coins) -> int:
    return int(coins.draws(1)[-1] * 2**53)


@pytest.mark.parametrize("dithers_history", [True, False])
def test_history_must_be_dithered_like_the_traffic(dithers_history: bool) -> None:
    """Scores as measured say that no loss lies within the tie, where the dithered traffic loses (control)."""
    unsafe = 0
    for seed in range(100):
        dice = random.Random(seed)
        rows = [(0.5, float(dice.random() < 0.5)) for _ in range(200)]
        new = Router(EPSILON, ALPHA, WIDE, seed=seed)
        if not dithers_history:
            new._dithered = lambda rows, width: rows  # type: ignore[method-assign]
        new.warm_start(rows)
        unsafe += 0.95 * dithered_risk(LevelLaw((0.5,), (1.0,), (0.5,)), new.threshold, 0.2) > EPSILON
    assert (unsafe <= most_explained(100, ALPHA)) == dithers_history


class HindsightWealth(PortfolioWealth):
    """Bold stakes in the rounds at the floor that are won, and small ones in those that are lost."""

    __slots__ = ()

    def _compute_changes(self, propensity: float, least_propensity: float, loss: float) -> list[int]:
        bold, self._floor_fractions = self._floor_fractions, self._fractions
        small = super()._compute_changes(propensity, least_propensity, loss)
        self._floor_fractions = bold
        return small


def test_bold_stakes_keep_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stakes that depend on the least propensity keep it; stakes that depend on the outcome do not (control)."""
    edge = LevelLaw(levels=(0.2, 0.5), weights=(0.4, 0.6), chances=(0.0, 0.19))
    assert explained(broken(router(Portfolio(), Constant(0.05)), edge), STREAMS, ALPHA)
    at_floor = router(Portfolio(fractions=FRACTIONS, floor_fractions=FLOOR_FRACTIONS), Constant(0.05))
    monkeypatch.setattr("bpac.routing.policies.portfolio.PortfolioWealth", HindsightWealth)
    assert more_than(2 * most_explained(STREAMS, ALPHA), broken(at_floor, edge))


def ever_missed(seed: int, kind: type[ServedLoss] = ServedLoss) -> bool:
    """Whether the loss that was served ever exceeds its bound, on a stream that loses more after quiet times."""
    dice, served = random.Random(seed), kind(Terms(EPSILON, 0.1), ALPHA, "sharp")
    total, kept, quiet = 0.0, 0, 0
    for _ in range(1500):
        loss = float(dice.random() < min(0.05 + 0.02 * quiet, 0.5))
        if dice.random() < 0.1:
            served.audited(0.1)
            served.resolve(a_round(propensity=0.1), loss)
            quiet = 0
        else:
            total, kept, quiet = total + loss, kept + 1, quiet + 1
            # Only where a loss was served can the bound have become wrong.
            if loss and total > served.certificate(kept, kept).upper + 1e-9:
                return True
    return False


def test_the_sharp_certificate_holds_on_a_stream_that_turns_on_what_it_sees() -> None:
    """The served loss exceeds its bound in no more streams than chance explains."""
    assert explained(map(ever_missed, range(STREAMS)), STREAMS, ALPHA)


def test_the_certificate_breaks_if_the_guess_depends_on_the_outcome() -> None:
    """Control: the guess of an audit with a loss is that loss, so that only audits without loss count."""

    class Hindsight(ServedLoss):
        def resolve(self, decision: Round, loss: float) -> None:
            for part in (self._upper, self._lower) if loss else ():
                assert part is not None
                part.logs = [log - unit for log, unit in zip(part.logs, part._changes(0.1, 0.0), strict=True)]

    missed = (ever_missed(seed, Hindsight) for seed in range(STREAMS))
    assert more_than(2 * most_explained(STREAMS, ALPHA), missed)


def unsafe_through_crashes(seed: int) -> bool:
    """Whether an unsafe threshold was ever in force in a game that is rebuilt now and then, with other coins."""
    entries: list[Entry] = []
    game = Router(EPSILON, ALPHA, WIDE, seed=seed, journal=entries.append)
    dice, highest = random.Random(seed), 0.0
    for step in range(1200):
        if step % 300 == 299:
            game = Router.rebuild(entries, seed=seed + 10_000 * step, journal=entries.append)
        level = dice.choice((0.1, 0.5))
        decision = game.decide(level)
        highest = max(highest, decision.threshold)
        if decision.call_expert:
            game.observe(decision, float(dice.random() < (0.04 if level == 0.1 else 0.5)))
    return 0.95 * dithered_risk(TIED, highest, 0.2) > EPSILON


def test_a_journal_of_a_dithered_game_keeps_its_promise_through_crashes() -> None:
    """Rebuilt in the middle of a stream, with another random source, thresholds stay safe as often as promised."""
    assert explained(map(unsafe_through_crashes, range(60)), 60, ALPHA)
