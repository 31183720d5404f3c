"""Queries that are cut off or passed over: no win is counted that the order of arrival does not allow."""

import pytest

from bpac.errors import UnknownTicket
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket


def latched(journal: list[Entry] | None = None) -> Router:
    """A router whose thresholds stay once they are certified."""
    return Router(0.1, 0.1, memory="latched", seed=1, journal=None if journal is None else journal.append)


def win(router: Router, ticket: Ticket | None = None) -> Decision:
    """Decide a query and report that its draft is as good as the expert's answer."""
    decision = router.decide(0.3, ticket=ticket)
    router.observe(decision, 0.0)
    return decision


def test_a_passed_over_ticket_opens_no_threshold_before_its_loss_is_known() -> None:
    """When a ticket that was passed over is decided, no threshold opens before its loss is known.

    Thirty-seven to fifty-one wins behind it are worth more than its charge, and too little to certify a threshold with
    its loss; without either they would be enough.
    """
    for wins in range(30, 56):
        router, in_order = latched(), latched()
        first = router.arrive()
        for ticket in [router.arrive() for _ in range(wins)]:
            win(router, ticket)
        router.observe(router.decide(0.0, ticket=first), 1.0)
        in_order.observe(in_order.decide(0.0), 1.0)
        for _ in range(wins):
            if in_order.threshold == 0.0:
                win(in_order)
        assert (router.threshold > 0.0) <= (in_order.threshold > 0.0)


@pytest.mark.parametrize("outcome", ["loss", "forfeit", "refused", "late"])
def test_a_passed_over_ticket_counts_like_any_other_once_it_is_decided(outcome: str) -> None:
    """However its outcome comes, the wealth is the one of the order of arrival."""
    router, in_order = latched(), latched()
    first = router.arrive()
    for ticket in [router.arrive() for _ in range(20)]:
        win(router, ticket)
    for each, ticket_of_first in ((in_order, None), (router, first)):
        decision = each.decide(0.2, ticket=ticket_of_first)
        if outcome == "loss":
            each.observe(decision, 1.0)
        elif outcome == "forfeit":
            each.forfeit(decision)
        elif outcome == "refused":
            each.refuse(decision)
        else:
            assert each.owed == (decision,)  # which charges it
            each.observe(decision, 0.5)
    for _ in range(20):
        win(in_order)
    for threshold in (0.1, 0.25, 1.0):
        assert router.log_wealth(threshold) == pytest.approx(in_order.log_wealth(threshold), abs=1e-9)


def test_audits_beyond_a_cut_are_not_won_afterwards() -> None:
    """A restart forgets wins beyond the earliest query under way, also those whose outcome comes after the restart."""
    entries: list[Entry] = []
    router = latched(entries)
    router.arrive()
    decisions = [router.decide(0.3, ticket=ticket) for ticket in [router.arrive() for _ in range(12)]]
    restarted = Router.rebuild(entries, seed=2)
    restarted.withdraw(restarted.arrive())
    wealth = restarted.log_wealth(1.0)
    for decision in decisions:
        restarted.observe(decision, 0.0)
    assert restarted.log_wealth(1.0) == wealth


def test_an_outage_counts_like_a_crash() -> None:
    """``cut_off`` charges the earliest query under way, voids all tickets, and writes what a restart would write."""
    entries: list[Entry] = []
    router = latched(entries)
    first, *others = [router.arrive() for _ in range(11)]
    for ticket in others:
        win(router, ticket)
    crashed = Router.rebuild(entries, seed=2)
    crashed.withdraw(crashed.arrive())
    router.cut_off()
    assert router.under_way == ()
    with pytest.raises(UnknownTicket):
        router.decide(0.3, ticket=first)
    assert router.log_wealth(1.0) == crashed.log_wealth(1.0) < 0.0
    assert Router.rebuild(entries, seed=3).log_wealth(1.0) == router.log_wealth(1.0)
    written = len(entries)
    router.cut_off()
    assert len(entries) == written, "nothing is under way, so nothing is cut off"
