"""Calls that are interrupted, or made in the middle of another one."""

import copy
from collections.abc import Callable

import pytest

from bpac import Decision, Router, Ticket
from bpac.errors import InputError, Interrupted, StaleProposal
from bpac.routing.journal.entries import Entry


def test_a_journal_that_fails_changes_nothing() -> None:
    """An ordinary error of the journal callback leaves the router as it was, and it goes on."""
    entries: list[Entry] = []
    failing = False

    def journal(entry: Entry) -> None:
        if failing:
            raise OSError("full")
        entries.append(entry)

    router = Router(epsilon=0.05, seed=1, journal=journal)
    decision = router.decide(0.3)
    failing = True
    calls: list[Callable[[], object]] = [
        lambda: router.decide(0.3),
        lambda: router.observe(decision, 0.0),
        lambda: router.forfeit(decision),
        router.arrive,
    ]
    for call in calls:
        with pytest.raises(OSError, match="full"):
            call()
    failing = False
    router.observe(decision, 0.0)
    assert router.arrive().number == 1
    assert Router.rebuild(entries).snapshot() == router.snapshot()


def changes(router: Router, decision: Decision, ticket: Ticket) -> dict[str, Callable[[], object]]:
    """Calls that change a router."""
    return {
        "decide": lambda: router.decide(0.3),
        "observe": lambda: router.observe(decision, 0.0),
        "forfeit": lambda: router.forfeit(decision),
        "refuse": lambda: router.refuse(decision),
        "withdraw": lambda: router.withdraw(ticket),
        "arrive": router.arrive,
        "propose": lambda: router.propose(0.3),
    }


@pytest.mark.parametrize("call", ["decide", "observe", "forfeit", "refuse", "withdraw"])
def test_an_interrupted_change_stops_the_router(call: str) -> None:
    """Whether the entry is in the journal is not known then, so nothing more may be decided or reported."""
    interrupting = False

    def journal(_: Entry) -> None:
        if interrupting:
            raise KeyboardInterrupt

    router = Router(epsilon=0.05, seed=1, journal=journal)
    ticket, decision = router.arrive(), router.decide(0.3)
    calls = changes(router, decision, ticket)
    interrupting = True
    with pytest.raises(KeyboardInterrupt):
        calls[call]()
    interrupting = False
    for later in calls.values():
        with pytest.raises(Interrupted, match="rebuild the router from its journal"):
            later()
    assert router.threshold == 0.0  # it can still be looked at


def test_a_proposal_that_is_half_applied_stops_the_router(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while a written entry takes effect leaves a state that must not be decided on."""
    router = Router(epsilon=0.05, seed=1)
    ticket, decision = router.arrive(), router.decide(0.3)
    with pytest.raises(StaleProposal):
        router.apply(decision)  # refused before anything happens
    proposal = router.propose_outcome(decision, 0.0)

    def failing(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(router, "_settle", failing)
        with pytest.raises(MemoryError):
            router.apply(proposal)
    for later in changes(router, decision, ticket).values():
        with pytest.raises(Interrupted):
            later()


def test_a_journal_callback_may_read_and_not_decide() -> None:
    """A decision within a decision would stand in the journal in the wrong order."""
    seen: list[int] = []
    deciding = False

    def journal(entry: Entry) -> None:
        if isinstance(entry, Decision):
            seen.append(router.step)
            if deciding:
                router.decide(0.2)

    router = Router(epsilon=0.05, seed=1, journal=journal)
    router.decide(0.3)
    deciding = True
    with pytest.raises(Interrupted, match="its journal callback calls it"):
        router.decide(0.3)
    deciding = False
    assert router.decide(0.3).step == 2
    assert seen == [0, 1, 1]


def test_a_copied_router_goes_its_own_way() -> None:
    """A deep copy has a lock and a state of its own."""
    router = Router(epsilon=0.05, seed=1)
    router.decide(0.3)
    other = copy.deepcopy(router)
    other.decide(0.3)
    assert (router.step, other.step) == (1, 2)


def test_reasons_are_texts_that_a_journal_can_hold() -> None:
    """A lone surrogate, or what is no text, is refused before anything happens."""
    router = Router(epsilon=0.05, seed=1)
    ticket, decision = router.arrive(), router.decide(0.3)
    for wrong in ("\ud83d", 3):
        with pytest.raises(InputError, match="cause must be"):
            router.forfeit(decision, wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="reason must be"):
            router.withdraw(ticket, wrong)  # type: ignore[arg-type]
    router.forfeit(decision, "outage")
    router.withdraw(ticket, "outage")
