"""Proposing and applying are two steps, for callers that write the journal themselves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bpac import Decision, Router
from bpac.errors import AlreadyResolved, InputError, NotAudited, StaleProposal
from bpac.routing.coins import CommittedCoins
from bpac.routing.decision import Decision as RoutingDecision
from bpac.routing.journal.entries import Committed, Entry, Opened, Resolved, Started
from bpac.routing.policies import Portfolio

Tell = Callable[[Router, Decision], Resolved]


def opened_router(**settings: Any) -> Router:
    """A router with an open threshold that audits about half of the accepted drafts."""
    router = Router(0.1, 0.1, Portfolio(memory="latched"), seed=2, **settings)
    while router.threshold == 0.0:
        router.observe(router.decide(0.2), 0.0)
    return router


def audited(router: Router) -> Decision:
    """Decide until the expert is called."""
    while not (decision := router.decide(0.2)).call_expert:
        pass
    return decision


@pytest.mark.parametrize("tickets", [False, True])
@pytest.mark.parametrize("policy", ["portfolio", "paper", "budget"])
def test_proposing_and_applying_is_deciding(policy: str, tickets: bool) -> None:
    """A caller that proposes, writes and applies gets the same journal and the same state as one with a callback."""
    ours: list[Entry] = []
    theirs: list[Entry] = []
    one = Router(0.1, 0.2, policy, seed=5, journal=theirs.append)
    two = Router(0.1, 0.2, policy, seed=5, journal=ours.append)
    dice = np.random.default_rng(3)
    for score, luck in dice.random((600, 2)).tolist():
        pair = [router.arrive() if tickets else None for router in (one, two)]
        decided = one.decide(score, ticket=pair[0])
        proposed = two.propose(score, ticket=pair[1])
        ours.append(proposed)
        two.apply(proposed)
        assert proposed == decided
        if not decided.call_expert:
            continue
        if luck < 0.8:
            loss = float(luck < score**2 / 2)
            one.observe(decided, loss)
            ours.append(two.propose_outcome(proposed, loss))
        elif luck < 0.85:
            one.forfeit(decided, "late")
            ours.append(two.propose_forfeit(proposed, "late"))
        elif luck < 0.9:
            one.refuse(decided)
            ours.append(two.propose_refusal(proposed))
        else:
            continue
        entry = ours[-1]
        assert isinstance(entry, Resolved)
        two.apply(entry)
    assert ours == theirs
    assert one.snapshot() == two.snapshot() == Router.rebuild(ours).snapshot()


@pytest.mark.parametrize("tickets", [False, True])
def test_a_proposal_changes_nothing(tickets: bool) -> None:
    """Until it is applied, a proposal leaves no trace, and proposing again gives the same decision."""
    entries: list[Entry] = []
    router = opened_router(journal=entries.append)
    ticket = router.arrive() if tickets else None
    before, written = router.snapshot(), len(entries)
    proposals = {router.propose(0.2, ticket=ticket) for _ in range(3)}
    assert len(proposals) == 1
    assert (router.snapshot(), len(entries), len(router.under_way)) == (before, written, int(tickets))
    assert router.decide(0.2, ticket=ticket) in proposals


@pytest.mark.parametrize(
    "tell",
    [
        lambda router, decision: router.propose_outcome(decision, 1.0),
        lambda router, decision: router.propose_forfeit(decision),
        lambda router, decision: router.propose_refusal(decision),
    ],
)
def test_a_proposed_outcome_changes_nothing(tell: Tell) -> None:
    """Until it is applied, the audit is owed as before, and any outcome may still be reported."""
    router = opened_router()
    decision = audited(router)
    before = router.snapshot()
    tell(router, decision)
    assert router.snapshot() == before
    assert router.owed == (decision,)
    router.observe(decision, 0.0)


def test_a_proposal_without_a_ticket_takes_the_next_number_when_it_is_applied() -> None:
    """Among queries with tickets, a query without one gets its number with its decision."""
    router = opened_router()
    first = router.arrive()
    proposed = router.propose(0.2)
    assert proposed.ticket == first.number + 1
    assert router.under_way == (first,)
    router.apply(proposed)
    assert router.arrive().number == proposed.ticket + 1


@pytest.mark.parametrize(
    "between",
    [
        lambda router, ticket, audit: router.decide(0.2, ticket=ticket),
        lambda router, ticket, audit: router.observe(audit, 0.0),
        lambda router, ticket, audit: router.forfeit(audit),
        lambda router, ticket, audit: router.withdraw(ticket),
        lambda router, ticket, audit: router.overdue(ticket),
        lambda router, ticket, audit: router.arrive(),
        lambda router, ticket, audit: router.cut_off(),
        lambda router, ticket, audit: router.propose(0.2),
        lambda router, ticket, audit: router.propose_outcome(audit, 0.5),
    ],
)
def test_only_the_latest_proposal_can_be_applied(between: Callable[..., object]) -> None:
    """Whatever happened since comes earlier in the journal and could have led to another decision."""
    router = opened_router()
    audit, ticket = audited(router), router.arrive()
    proposed = router.propose(0.2)
    between(router, ticket, audit)
    before = router.snapshot()
    with pytest.raises(StaleProposal, match="is not the latest proposal of this router: propose again"):
        router.apply(proposed)
    assert router.snapshot() == before


def test_a_proposal_is_applied_once_and_by_its_own_router() -> None:
    """An equal entry that the router did not make, and one that it has applied, are refused."""
    router, other = opened_router(), opened_router()
    proposed = router.propose(0.2)
    other.propose(0.2)
    for entry in (proposed, None, RoutingDecision(*proposed)):
        with pytest.raises(StaleProposal):
            other.apply(entry)  # type: ignore[arg-type]
    router.apply(proposed)
    with pytest.raises(StaleProposal):
        router.apply(proposed)


def test_bad_proposals_are_refused_like_bad_reports() -> None:
    """Proposing raises what deciding, observing, forfeiting and refusing raise, and changes nothing."""
    router = opened_router()
    audit = audited(router)
    router.forfeit(audit, "late")
    kept = router.decide(0.0)
    while kept.call_expert:
        kept = router.decide(0.0)
    before = router.snapshot()
    bad: list[tuple[type[Exception], Callable[[], object]]] = [
        (InputError, lambda: router.propose(1.5)),
        (InputError, lambda: router.propose_outcome(audit, 2.0)),
        (InputError, lambda: router.propose_forfeit(audit, draft_served=1)),  # type: ignore[arg-type]
        (InputError, lambda: router.propose_refusal(audit, draft_served=1)),  # type: ignore[arg-type]
        (NotAudited, lambda: router.propose_outcome(kept, 0.5)),
        (NotAudited, lambda: router.propose_refusal(kept)),
        (AlreadyResolved, lambda: router.propose_forfeit(audit)),
    ]
    for error, call in bad:
        with pytest.raises(error):
            call()
    assert router.snapshot() == before


def test_what_must_stand_before_a_decision_is_written_when_it_is_proposed() -> None:
    """A commitment to coins, and the record that an earlier process died, come before the decision, once."""
    entries: list[Entry] = []
    router = Router(0.1, coins=CommittedCoins(), journal=entries.append)
    router.arrive()
    again = Router.rebuild(entries, coins=CommittedCoins(), journal=entries.append)
    again.propose(0.3)
    proposed = again.propose(0.3)
    assert [type(entry) for entry in entries] == [Opened, Started, Committed, Started]
    again.apply(proposed)
    assert Router.rebuild([*entries, proposed]).snapshot() == again.snapshot()
