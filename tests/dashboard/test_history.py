"""A history equals its game, stays small, and costs little."""

import json
import math

import numpy as np
import pytest

from bpac.betting.bounds.certificate import Certificate
from bpac.dashboard.history.history import COLUMNS, MOST_EVENTS, MOST_POINTS, History
from bpac.dashboard.savings import TokenSavings
from bpac.replay.simulation.laws import PowerLaw
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.router import Router
from tests.dashboard.played import drawn, feed, played

EASY, HARD = PowerLaw(most=0.3, power=2.0), PowerLaw(most=0.9, power=0.2)


class Counting:
    """A router that counts how often it is asked for a certificate."""

    def __init__(self) -> None:
        self.asked = 0

    def certificate(self) -> Certificate:
        """Some certificate."""
        self.asked += 1
        return Certificate(10, 0.0, 1.0, 0.9)


def kept(step: int, threshold: float = 0.5) -> Decision:
    """A draft that is kept."""
    return Decision(step, (step % 997) / 2000, threshold, 0.05, 0.05, call_expert=False, serve_draft=True)


@pytest.mark.parametrize("rounds", [MOST_POINTS - 1, MOST_POINTS, 60_000])
def test_bounded_whatever_the_number_of_rounds(rounds: int) -> None:
    """Points, events and bins stay few, from the first step to the last, and certificates are computed rarely."""
    history, router = History(), Counting()
    for step in range(1, rounds + 1):
        # A threshold that opens and closes all the time makes as many events as there can be.
        history.decided(kept(step, 0.5 * (step // 7 % 2)), float(step), router)
    series = history.series(Router(0.1), None)
    assert {len(series[name]) for name in COLUMNS} == {len(series["step"])}
    assert MOST_POINTS / 2 <= len(series["step"]) <= MOST_POINTS + 1
    assert (series["step"][0], series["step"][-1]) == (1, rounds)
    gaps = np.diff(series["step"])
    assert gaps.min() > 0
    assert len(set(gaps[:-1].tolist())) == 1, "all but the last are as far apart"
    assert len(history.events()) == min(MOST_EVENTS, rounds // 7)
    # A full series, and half of one again each time that the stride doubles.
    doublings = max(0, math.ceil(math.log2(rounds / MOST_POINTS)))
    assert router.asked <= MOST_POINTS * (1 + (1 + doublings) / 2)
    # Scores and weights of 642 levels, points and events: what a snapshot has to carry.
    assert len(json.dumps(history.state())) < 120_000


def test_points_are_what_was_decided_and_certified() -> None:
    """Each point has the threshold its decision was made with, and the certificate of the journal up to there."""
    entries: list[Entry] = []
    router, history = Router(0.1, 0.1, seed=3, journal=entries.append), History()
    feed(router, history, drawn(EASY, 3000, 3))
    series = history.series(router)
    route = opened(entries[0])
    # The last point is the present, and not a decision.
    points = {step: index for index, step in enumerate(series["step"][:-1])}
    assert len(points) > MOST_POINTS / 2
    calls = 0
    for entry in entries[1:]:
        follow(route, [entry])
        if isinstance(entry, Decision):
            calls += entry.call_expert
            if (index := points.pop(entry.step, None)) is not None:
                expected = (entry.threshold, calls, route.certificate().average_upper, entry.epoch)
                shown = [series[name][index] for name in ("threshold", "expert_calls", "average_upper", "epoch")]
                assert shown == pytest.approx(expected, rel=1e-6)
                assert series["at"][index] == entry.step
                # Its own outcome would count as a loss, whatever came of it.
                assert not entry.call_expert or entry.propensity == 1.0
    assert not points
    assert series["threshold"][-1] == pytest.approx(router.threshold, rel=1e-6)
    assert series["average_upper"][-1] == pytest.approx(router.certificate().average_upper, rel=1e-6)


def test_tokens_are_computed_for_points_only() -> None:
    """Each point has the tokens at its time."""
    router, history, calls = Router(0.1, seed=1), History(), []
    for step in range(1, 2001):
        decision = router.decide(0.5)

        def tokens(step: int = step) -> tuple[float, float]:
            calls.append(step)
            return 10 * step, 30 * step

        history.decided(decision, 0.0, router, tokens)
    savings = TokenSavings(1, 20, 300, always_tokens=4000.5, tokens_saved=3679.5)
    series = history.series(router, savings)
    assert len(calls) < 1500
    assert series["spent_tokens"][:-1] == [10 * step for step in series["step"][:-1]]
    assert series["always_tokens"][:-1] == [30 * step for step in series["step"][:-1]]
    assert (series["spent_tokens"][-1], series["always_tokens"][-1]) == (321, 4000.5)


def test_events_say_what_happened_and_when() -> None:
    """The opening, the alarm with its new epoch, and the next opening stand at the decisions that show them first."""
    entries: list[Entry] = []
    router, history = Router(0.1, 0.1, seed=5, journal=entries.append), History()
    feed(router, history, drawn(EASY, 1500, 5))
    feed(router, history, drawn(HARD, 1500, 6))
    feed(router, history, drawn(EASY, 1500, 7))
    decisions = [entry for entry in entries if isinstance(entry, Decision)]
    expected, before = [], Decision(0, 0.0, 0.0, 1.0, 1.0, call_expert=True, serve_draft=False)
    for decision in decisions:
        if decision.epoch != before.epoch:
            expected.append((decision.step, "epoch"))
        elif (decision.threshold > 0) != (before.threshold > 0):
            expected.append((decision.step, "opened" if decision.threshold else "closed"))
        before = decision
    assert [(event["step"], event["kind"]) for event in history.events()] == expected
    assert [kind for _, kind in expected][:3] == ["opened", "epoch", "opened"]
    assert all(event["at"] == event["step"] for event in history.events())
    assert "epoch 2 begins" in history.events()[1]["text"]
    assert history.last_event("epoch") == next(step for step, kind in reversed(expected) if kind == "epoch")


def test_a_threshold_that_closes() -> None:
    """With a memory that forgets, the fall to 0 is an event of its own."""
    router, history = Router(0.1, 0.1, memory="revocable", seed=1), History()
    feed(router, history, [(0.0, 0.0)] * 100 + [(0.0, 1.0)] * 100)
    assert [event["kind"] for event in history.events()][:2] == ["opened", "closed"]


def test_the_histogram_counts_every_round_once() -> None:
    """Kept and called sum to the rounds and the expert's calls, and each lies in the bin of its score."""
    router, history = Router(0.1, seed=2), History()
    rounds = [*drawn(EASY, 2500, 1), (0.0, 0.0), (1.0, 1.0), (1.0, 1.0)]
    feed(router, history, rounds)
    shown = history.uncertainty()
    assert sum(shown["called"]) == router.summary().expert_calls
    assert sum(shown["kept"]) + sum(shown["called"]) == router.step
    together = np.array(shown["kept"]) + shown["called"]
    counted, _ = np.histogram([uncertainty for uncertainty, _ in rounds], bins=shown["edges"])
    assert together.tolist() == counted.tolist()


def test_scores_close_to_0_get_finer_bins() -> None:
    """Where most scores lie below a 32nd, bins follow the octaves; the counts are as exact."""
    router, history = Router(0.1, seed=2), History()
    rounds = [(score**8, loss) for score, loss in drawn(EASY, 2000, 1)]
    feed(router, history, rounds)
    shown = history.uncertainty()
    assert shown["edges"][0] == 0.0
    assert 0.0 < shown["edges"][1] < 1e-5
    together = np.array(shown["kept"]) + shown["called"]
    counted, _ = np.histogram([uncertainty for uncertainty, _ in rounds], bins=shown["edges"])
    assert together.tolist() == counted.tolist()
    assert np.count_nonzero(together) > 20


def test_weighted_losses_by_bin() -> None:
    """An audit has the weight 1/π, counts as lost until it is graded, and only in its own epoch."""
    router, history = played(EASY, 4000, seed=4)
    sums, squares = history.bins.losses()
    terms = router.settings.terms
    # The same from the router's own books, which keep them for its learnt rates: every loss seen, by its weight.
    assert sums.sum() * terms.kept_share == pytest.approx(_books(router), rel=1e-3)
    assert (squares >= sums - 1e-9).all()
    weights, _ = history.bins.audits()
    assert weights.sum() == pytest.approx(router.step, rel=0.1)
    late = router.decide(0.01)
    while not late.call_expert:
        late = router.decide(0.01)
    history.decided(late, 0.0, router)
    assert history.bins.losses()[0].sum() - sums.sum() == pytest.approx(1.0 / late.propensity)
    history.resolved(late, None)
    assert history.bins.losses()[0].sum() - sums.sum() == pytest.approx(1.0 / late.propensity)
    history.resolved(late, 0.25)
    assert history.bins.losses()[0].sum() - sums.sum() == pytest.approx(0.25 / late.propensity)
    history.decided(late._replace(step=late.step + 1, epoch=2, threshold=0.0, propensity=1.0), 0.0, router)
    history.resolved(late, 0.0)
    assert history.bins.losses()[0].sum() == 1.0
    assert history.bins.traffic().sum() == 1


def _books(router: Router) -> float:
    table = np.array(router.snapshot()["state"]["learner"]["table"])
    return float(table[:, 1].sum()) / (1 << 20)


def test_queries_decided_out_of_order_do_not_close_a_threshold() -> None:
    """What is shown is in force for the query that arrived last; one from before, decided later, changes nothing."""
    router, history = Router(0.1, seed=1), History()
    slow = [router.arrive() for _ in range(3)]
    for ticket in slow:
        router.overdue(ticket)
    while router.threshold == 0.0:
        decision = router.decide(0.5, ticket=router.arrive())
        history.decided(decision, 0.0, router)
        router.observe(decision, 0.0)
    for ticket in slow:
        quick = router.decide(0.5, ticket=router.arrive())
        late = router.decide(0.5, ticket=ticket)
        assert late.threshold == 0.0 < quick.threshold
        history.decided(quick, 0.0, router)
        history.decided(late, 0.0, router)
    assert [event["kind"] for event in history.events()] == ["opened"]
