"""Warm starts from the journal of an older game: what of it counts, and whether the promise holds."""

import random

import pytest

from bpac import Router
from bpac.errors import InputError, JournalError
from bpac.routing.exploration.schedules import TwoStage
from bpac.routing.journal.entries import Entry, Labelled, Stopped
from bpac.routing.journal.past_game import labelled_rows, past_of
from bpac.routing.policies import Portfolio
from bpac.routing.tickets.ticket import Ticket

EPSILON, ALPHA = 0.1, 0.1
POINTS = (0.001, 0.1, 0.3, 0.5, 0.9, 1.0)


def wealth(router: Router) -> list[float]:
    """Log-wealth at a few thresholds."""
    return [router.log_wealth(point) for point in POINTS]


def play(router: Router, dice: random.Random, arrivals: int) -> list[Ticket]:
    """Queries of which many are under way, decided in any order, with every kind of outcome; those left under way."""
    drafting: list[Ticket] = []
    for _ in range(arrivals):
        drafting.append(router.arrive())
        while drafting and dice.random() < 0.6:
            # Of the oldest few, so that no ticket is waited for so long that it is passed over.
            ticket = drafting.pop(dice.randrange(min(3, len(drafting))))
            if dice.random() < 0.05:
                router.withdraw(ticket)
                continue
            decision = router.decide(dice.random(), ticket=ticket)
            fate = dice.random()
            if not decision.call_expert or fate < 0.02:
                continue  # nothing to come, or it is lost
            if fate < 0.04:
                router.forfeit(decision)
            elif fate < 0.08:
                router.refuse(decision)
            else:
                router.observe(decision, float(dice.random() < 0.03 * (decision.uncertainty > 0.4)))
    return drafting


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ending", ["clean", "crash"])
def test_a_whole_journal_leaves_the_same_wealth(ending: str, seed: int) -> None:
    """Fed round by round, it gives every threshold the wealth it had, with the charge for what a crash cut off."""
    entries: list[Entry] = []
    dice = random.Random(seed)
    old = Router(EPSILON, ALPHA, Portfolio(memory="latched"), seed=seed, journal=entries.append)
    for _ in range(3):
        left = play(old, dice, 80)
        if ending == "clean":
            for ticket in left:
                old.withdraw(ticket)
            assert old.stop()
        else:
            old = Router.rebuild(list(entries), seed=seed, journal=entries.append)
    new = Router(EPSILON, ALPHA, Portfolio(memory="latched"))
    new.warm_start_from(entries)
    if ending == "crash":
        old.arrive()  # now the last crash is charged for, too
    # A router that charges for a crash also forgoes what the round would have won at best: 0.004 each time.
    assert wealth(new) == pytest.approx(wealth(old), abs=1e-9 if ending == "clean" else 3 * 0.004)
    assert new.threshold == old.threshold


def test_only_the_last_epoch_counts() -> None:
    """What was before an alarm was other traffic, the history that the game began with included."""
    entries: list[Entry] = []
    router = Router(EPSILON, ALPHA, seed=1, journal=entries.append)
    router.warm_start([(0.5, 0.0)] * 100)
    while router.epoch == 1:
        decision = router.decide(0.2, ticket=router.arrive())
        if decision.call_expert:
            router.observe(decision, 1.0)
    late = [router.decide(0.3, ticket=router.arrive()) for _ in range(4)]
    for decision in late:
        router.observe(decision, 0.5)
    assert router.stop()
    assert labelled_rows(entries, 0.05) == [Labelled((0.3,), 0.5)] * 4
    assert len(past_of(entries).labelled) == 100


def test_history_that_ends_with_queries_under_way_is_charged_for_one() -> None:
    """The earliest that is missing counts as lost at score 0; beyond it, wins go and losses stay."""
    entries: list[Entry] = []
    router = Router(EPSILON, ALPHA, seed=1, journal=entries.append)
    tickets = [router.arrive() for _ in range(5)]
    for number, score, loss in ((0, 0.1, 0.0), (2, 0.2, 0.0), (3, 0.3, 1.0)):
        router.observe(router.decide(score, ticket=tickets[number]), loss)
    charged = Labelled((0.0,), 1.0, 0.05, 0.05)
    assert labelled_rows(entries, 0.05) == [Labelled((0.1,), 0.0), charged, Labelled((0.3,), 1.0)]
    router.withdraw(tickets[1])
    # Ticket 5 is not in the journal, like a query that never arrived: it is charged to be safe.
    assert labelled_rows(entries, 0.05)[-1] == charged
    router.withdraw(tickets[4])
    assert router.stop()
    assert isinstance(entries[-1], Stopped)
    assert charged not in labelled_rows(entries, 0.05)


@pytest.mark.parametrize("ending", ["stopped", "cut off"])
def test_a_ticket_that_was_never_decided_costs_one_loss_and_nothing_else(ending: str) -> None:
    """It was overdue and so counts as lost at score 0; the wins behind it stay, as in the game itself."""
    entries: list[Entry] = []
    old = Router(EPSILON, ALPHA, Portfolio(memory="latched"), seed=1, journal=entries.append)
    lost = old.arrive()
    for _ in range(40):
        old.observe(old.decide(0.2, ticket=old.arrive()), 0.0)
    old.abandon(lost)
    rows = labelled_rows(entries, 0.05)
    charged = Labelled((0.0,), 1.0, 0.05, 0.05)
    assert rows == [charged, *[Labelled((0.2,), 0.0)] * 40, charged]  # a crash may have cut off a query after the last
    if ending == "stopped":
        assert old.stop()
        assert labelled_rows(entries, 0.05) == rows[:-1]
        new = Router(EPSILON, ALPHA, Portfolio(memory="latched"))
        new.warm_start_from(entries)
        assert wealth(new) == pytest.approx(wealth(old), abs=0.004)


def test_a_journal_that_does_not_fit_is_refused_as_history() -> None:
    """A lower floor, other scores, a router that has decided, and anything but a journal are refused."""
    entries: list[Entry] = []
    old = Router(EPSILON, ALPHA, exploration=TwoStage(0.5, 0.02, 10), seed=1, journal=entries.append)
    while (decision := old.decide(0.3)).least_propensity > 0.02:
        if decision.call_expert:
            old.observe(decision, 0.0)
    new = Router(EPSILON, ALPHA)
    with pytest.raises(InputError, match=r"probability of 0\.02, and this router never goes below 0\.05: give it"):
        new.warm_start_from(entries)
    assert new.snapshot() == Router(EPSILON, ALPHA).snapshot()
    Router(EPSILON, ALPHA, exploration=TwoStage(0.5, 0.02, 10)).warm_start_from(entries)
    with pytest.raises(InputError, match="that game has 1 scores, and this router has 2"):
        Router(EPSILON, ALPHA, Portfolio(scores={"a": 0.5, "b": 0.5})).warm_start_from(entries[:2])
    used = Router(EPSILON, ALPHA)
    used.decide(0.5)
    with pytest.raises(InputError, match="history comes before the first decision"):
        used.warm_start_from(entries[:2])
    with pytest.raises(JournalError, match="must be the opened entry"):
        new.warm_start_from(entries[1:])


def test_entries_that_are_not_rounds_are_skipped() -> None:
    """A ticket that was overdue counts when it is decided; an outcome that has not come is open."""
    entries: list[Entry] = []
    router = Router(EPSILON, ALPHA, seed=1, journal=entries.append)
    hung = router.arrive()
    router.overdue(hung)
    router.decide(0.3, ticket=hung)
    (only,) = past_of(entries).rounds[:1]
    assert only.is_open
    assert labelled_rows(entries, 0.05)[0].loss == 1.0
