"""Learned scores where many queries are under way: a score bets on the queries that arrive after it."""

import numpy as np
import pytest

from bpac import Router
from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.faults import Faults
from bpac.replay.simulation.gateway import SimulatedGateway
from bpac.replay.simulation.load import under_load
from bpac.routing.audit.audit import audit_journal
from bpac.routing.coins import SeededCoins
from bpac.routing.journal.entries import Entry, Learned, Started
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json
from tests.routing.learning.drafts import candidates, drafts, learner, send


def due(router: Router) -> None:
    """Bring a router to the point at which the next decision writes a score."""
    learning = router._route.learning
    assert learning is not None
    rows = drafts(300)
    while not learning.due:
        send(router, [rows.pop(0)])


def second_wealth(router: Router) -> PortfolioWealth:
    """The wealth of the score that joined first."""
    wealth = candidates(router).wealths[1]
    assert isinstance(wealth, PortfolioWealth)
    return wealth


def test_a_query_that_arrived_before_a_score_does_not_have_it() -> None:
    """Its draft ends afterwards, and the score neither wins nor loses by it."""
    entries: list[Entry] = []
    router = learner(entries.append)
    due(router)
    early, other = router.arrive(), router.arrive()
    assert len(router.decide(0.1, features=(1.0, "a"), ticket=other).uncertainties) == 1
    late = router.arrive()
    fresh = candidates(router)._start(1).state()
    decision = router.decide(0.2, features=(1.0, "a"), ticket=early)
    assert len(decision.uncertainties) == 1
    assert candidates(router).wealths[1].state() == fresh
    assert len(router.decide(0.3, features=(1.0, "a"), ticket=late).uncertainties) == 2
    assert candidates(router).wealths[1].state() != fresh
    assert next(entry.tickets for entry in entries if isinstance(entry, Learned)) == 2
    assert Router.rebuild(entries).snapshot() == router.snapshot()


def test_a_score_gets_no_refund_for_a_ticket_that_it_was_not_charged_for() -> None:
    """A ticket that is passed over is charged to the scores that its query has, and refunded to the same ones."""
    entries: list[Entry] = []
    router = learner(entries.append)
    due(router)
    slow, other = router.arrive(), router.arrive()
    router.decide(0.1, features=(1.0, "a"), ticket=other)  # the score joins
    fresh = candidates(router)._start(1).state()
    before = candidates(router).wealths[0].state()
    router.overdue(slow)
    assert candidates(router).wealths[0].state() != before
    assert candidates(router).wealths[1].state() == fresh
    assert Router.rebuild(entries).snapshot() == router.snapshot()
    router.withdraw(slow)
    assert candidates(router).wealths[1].state() == fresh
    later, last = router.arrive(), router.arrive()
    router.withdraw(last)
    router.overdue(later)
    charged = candidates(router).wealths[1].state()
    assert charged != fresh
    assert Router.rebuild([], snapshot=router.snapshot()).snapshot() == router.snapshot()
    router.withdraw(later)
    assert candidates(router).wealths[1].state()["common"] == fresh["common"]
    assert second_wealth(router).log_wealth(0.5) == pytest.approx(0.0, abs=1e-9)
    assert Router.rebuild(entries).snapshot() == router.snapshot()


def test_queries_that_are_cut_off_are_charged_to_every_score() -> None:
    """After that, every query has every score."""
    entries: list[Entry] = []
    router = learner(entries.append)
    due(router)
    router.arrive()
    router.decide(0.1, features=(1.0, "a"), ticket=router.arrive())
    router.cut_off()
    assert second_wealth(router).log_wealth(0.5) < 0.0
    assert len(router.decide(0.1, features=(1.0, "a"), ticket=router.arrive()).uncertainties) == 2
    assert Router.rebuild(entries).snapshot() == router.snapshot()


def test_a_query_of_an_earlier_epoch_has_the_first_score_only() -> None:
    """Nothing that was learned or certified before a drift alarm is used for it."""
    router = learner()
    send(router, [row._replace(loss=0.0 if i > 100 else row.loss) for i, row in enumerate(drafts(500))])
    old = router.arrive()
    while router.epoch == 1:
        decision = router.decide(0.01, features=(0.1, "task 0"))
        if decision.call_expert:
            router.observe(decision, 1.0)
    decision = router.decide(0.4, features=(0.1, "task 0"), ticket=old)
    assert (decision.uncertainties, decision.threshold, decision.epoch) == ((0.4,), 0.0, 1)


@pytest.mark.no_cover
def test_a_loaded_stream_is_rebuilt_and_audited() -> None:
    """Drafts that end out of order, late outcomes: the journal leads to the same bits, and an audit to no objection."""
    entries: list[Entry] = []
    rows = drafts(900)
    router = learner(entries.append)
    gateway = SimulatedGateway(router, tickets=True, features=[row.features for row in rows])
    rng = np.random.default_rng(0)
    rounds = ((row.uncertainty, row.loss) for row in rows)
    for event in under_load(rounds, Drafting.parse("losses:3", 24), Delay.parse("losses:15"), rng):
        gateway.handle(event)
    assert len(router.scores()) == 3
    lines = [entry_to_json(entry) + "\n" for entry in entries]
    assert Router.rebuild(map(entry_from_json, lines)).snapshot() == router.snapshot()
    assert audit_journal(lines).differences == []


@pytest.mark.no_cover
def test_crashes_leave_a_journal_that_is_rebuilt_and_audited() -> None:
    """Whatever was under way, before or after a score joined: the next process goes on from the same state."""
    entries: list[Entry] = []
    rows = drafts(700)
    coins = SeededCoins(3)

    def rebuild() -> Router:
        lines = [entry_to_json(entry) for entry in entries]
        return Router.rebuild(map(entry_from_json, lines), coins=coins, journal=entries.append)

    router = learner(entries.append)
    gateway = SimulatedGateway(router, tickets=True, rebuild=rebuild, features=[row.features for row in rows])
    rng = np.random.default_rng(0)
    rounds = ((row.uncertainty, row.loss) for row in rows)
    drafting, delay = Drafting.parse("losses:3", 24), Delay.parse("losses:15")
    for event in under_load(rounds, drafting, delay, rng, faults=Faults(crash_every=40)):
        gateway.handle(event)
    assert len(gateway.router.scores()) > 1
    assert sum(isinstance(entry, Started) for entry in entries) > 5
    assert rebuild().snapshot() == gateway.router.snapshot()
    assert audit_journal([entry_to_json(entry) + "\n" for entry in entries]).differences == []


def test_a_score_may_join_after_tickets_are_no_longer_in_use() -> None:
    """The numbers of earlier tickets mean nothing by then; the journal rebuilds the router."""
    entries: list[Entry] = []
    router = learner(entries.append)
    router.decide(0.5, features=(1.0, "a"), ticket=router.arrive())
    due(router)
    assert router.stop()
    send(router, drafts(1))
    assert [entry.tickets for entry in entries if isinstance(entry, Learned)] == [0]
    assert Router.rebuild(entries).snapshot() == router.snapshot()
    assert len(router.decide(0.5, features=(1.0, "a"), ticket=router.arrive()).uncertainties) == 2
