"""Rounds count in the order in which their queries arrive (MATH section 12)."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bpac import Decision, Router, Ticket
from bpac.errors import InputError, JournalError, UnknownTicket
from bpac.routing.exploration.schedules import Constant
from bpac.routing.journal.entries import Entry, Overdue, Started, Stopped, Withdrawn
from bpac.routing.policies import Budget, Portfolio, named_policy
from bpac.routing.rule import decide_again
from tests.routing.test_epochs import opened, ring

EPSILON, ALPHA = 0.1, 0.1
POLICIES = ("portfolio", "paper", "paper-prior", "hoeffding", "naive", "offline", "budget", "always")


def fresh(policy: Any = "portfolio", **settings: Any) -> Router:
    """A router that explores a fifth of the queries."""
    return Router(EPSILON, ALPHA, policy, **{"exploration": Constant(0.2), "seed": 3, **settings})


def wealth(router: Router) -> float:
    """Log-wealth of the bet that a threshold of 1 is safe; unequal shares of 1 do not sum to it exactly."""
    return round(router.log_wealth(1.0), 9)


@pytest.mark.parametrize("policy", POLICIES)
def test_one_query_at_a_time_needs_no_tickets(policy: str) -> None:
    """With one query under way, tickets change neither a decision nor the state of the bettor."""
    exploration = None if policy in ("offline", "always") else Constant(0.2)
    plain, ticketed = (fresh(policy, exploration=exploration) for _ in range(2))
    dice = np.random.default_rng(5)
    for score, luck in dice.random((700, 2)).tolist():
        decisions = plain.decide(score), ticketed.decide(score, ticket=ticketed.arrive())
        assert decisions[0] == decisions[1]._replace(ticket=0, seen=0)
        if decisions[0].call_expert:
            plain.observe(decisions[0], float(luck < score**2 / 2))
            ticketed.observe(decisions[1], float(luck < score**2 / 2))
    assert plain.bettor_state() == ticketed.bettor_state()


def test_a_round_behind_an_open_ticket_wins_nothing() -> None:
    """Quick drafts must not be counted before slow ones: their wins wait until every earlier ticket is done."""
    router = fresh()
    slow = router.arrive()
    for _ in range(5):
        router.observe(router.decide(0.5, ticket=router.arrive()), 0.0)
    assert wealth(router) == 0.0
    router.observe(router.decide(0.5, ticket=slow), 0.0)
    won = fresh()
    for _ in range(6):
        won.observe(won.decide(0.5), 0.0)
    assert wealth(router) == wealth(won) > 0.0


@pytest.mark.parametrize("policy", ["portfolio", "paper"])
def test_the_order_of_completion_makes_no_difference(policy: str) -> None:
    """However drafts end, the bettor has seen the rounds in order of arrival when all are done."""
    losses = [float(luck < 0.1) for luck in np.random.default_rng(2).random(60)]
    states = []
    for seed in range(4):
        router = fresh(policy)
        tickets = [router.arrive() for _ in losses]
        order = np.random.default_rng(seed).permutation(len(losses)) if seed else np.arange(len(losses))
        decisions = {int(place): router.decide(0.3 + place / 100, ticket=tickets[place]) for place in order}
        assert {decision.propensity for decision in decisions.values()} == {1.0}
        for place in np.random.default_rng(seed + 9).permutation(len(losses)):
            router.observe(decisions[int(place)], losses[place])
        states.append(_without_steps(router.bettor_state()))
    assert states[0] == states[1] == states[2] == states[3]


def _without_steps(state: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key not in ("limit", "threshold")}


def test_terms_are_those_of_the_arrival() -> None:
    """The threshold and the rate in force at its arrival decide a query, however long its draft takes."""
    router = fresh(Portfolio(memory="latched"))
    early = router.arrive()
    assert early.threshold == 0.0
    router.overdue(early)
    while router.threshold < 1.0:
        router.observe(router.decide(0.5, ticket=router.arrive()), 0.0)
    late = router.arrive()
    first, second = router.decide(0.5, ticket=early), router.decide(0.5, ticket=late)
    assert (first.threshold, first.propensity, first.least_propensity) == (0.0, 1.0, 1.0)
    assert (second.threshold, second.propensity, second.least_propensity) == (1.0, 0.2, 0.2)
    assert (first.ticket, first.seen) == (1, 2)


def test_a_budget_follows_what_is_known_at_the_decision() -> None:
    """Where only the coin is random, a stale threshold could overspend: the one in force at the decision is used."""
    router = fresh(Budget(first=10))
    ticket = router.arrive()
    while router.threshold == 0.0:
        router.observe(router.decide(0.5), 0.0)
    assert router.decide(0.1, ticket=ticket).threshold > 0.0


def test_a_withdrawn_ticket_holds_up_no_query() -> None:
    """A query without a decision is not a round, and those behind it count as if it had never arrived."""
    router, without = fresh(), fresh()
    gone = router.arrive()
    for _ in range(5):
        router.observe(router.decide(0.5, ticket=router.arrive()), 0.0)
        without.observe(without.decide(0.5), 0.0)
    router.withdraw(gone, "no score")
    assert wealth(router) == wealth(without)
    assert (router.step, router.summary().withdrawn, router.under_way) == (5, 1, ())


@pytest.mark.parametrize("fate", ["decided", "withdrawn"])
def test_an_overdue_ticket_costs_a_loss_until_it_is_done(fate: str) -> None:
    """A draft that does not end is charged at every threshold, and the charge is taken back to the bit."""
    router = fresh()
    hung = router.arrive()
    for _ in range(5):
        router.observe(router.decide(0.5, ticket=router.arrive()), 0.0)
    router.overdue(hung)
    charged = [router.log_wealth(threshold) for threshold in (0.01, 0.3, 1.0)]
    assert charged[0] == charged[2] < 0.0
    router.overdue(hung)  # once is enough
    assert [router.log_wealth(threshold) for threshold in (0.01, 0.3, 1.0)] == charged
    plain = fresh()
    if fate == "decided":
        router.observe(router.decide(0.5, ticket=hung), 0.0)
        plain.observe(plain.decide(0.5), 0.0)
    else:
        router.withdraw(hung)
    for _ in range(5):
        plain.observe(plain.decide(0.5), 0.0)
    assert wealth(router) == wealth(plain)


@pytest.mark.parametrize("policy", ["paper", "offline"])
def test_a_bettor_that_cannot_take_a_charge_back_keeps_it(policy: str) -> None:
    """Where bets depend on the order, an overdue ticket is settled as a loss, and its round changes nothing later."""
    router = fresh(policy, exploration=None if policy == "offline" else Constant(0.2))
    hung = router.arrive()
    router.overdue(hung)
    settled = router.bettor_state()
    decision = router.decide(0.5, ticket=hung)
    assert router.bettor_state() == settled
    copy = Router.rebuild([], snapshot=router.snapshot())
    for each in (router, copy):
        each.observe(decision, 1.0)
        assert each.bettor_state() == settled
    other = fresh(policy, exploration=None if policy == "offline" else Constant(0.2))
    lost = other.arrive()
    other.overdue(lost)
    other.withdraw(lost)
    assert other.bettor_state() == settled


def test_a_hung_draft_is_passed_over_where_that_pays() -> None:
    """When the rounds behind an open ticket have won more than it can cost, it is charged and waited for no longer."""
    router = fresh()
    router.arrive()
    behind = 0
    while wealth(router) == 0.0:
        router.observe(router.decide(0.5, ticket=router.arrive()), 0.0)
        behind += 1
    # One open ticket is worth M/ε rounds that were won: (κ − ε)/ε = 7 here, looked at every 16.
    assert behind == 16
    patient = fresh("hoeffding")
    patient.arrive()
    for _ in range(200):
        patient.observe(patient.decide(0.5, ticket=patient.arrive()), 0.0)
    assert patient.bettor_state()["rounds"] == 0


def test_no_more_rounds_are_held_than_may_be_owed() -> None:
    """A draft that never ends does not fill the memory, also where passing it over does not pay."""
    router = fresh("paper", max_owed=20)
    hung = [router.arrive() for _ in range(2)]
    for _ in range(100):
        router.observe(router.decide(0.5, ticket=router.arrive()), 0.0)
        assert len(router.snapshot()["state"]["by_arrival"]["arrivals"]["held"]) <= 20
    assert router.under_way == tuple(hung)
    assert router.bettor_state()["wealth"]["settled"] == 102


def test_rounds_that_lost_do_not_pay_for_an_open_ticket() -> None:
    """Only rounds known to be won are weighed against the charge; lost and unknown ones are not."""
    router = fresh()
    router.arrive()
    router.withdraw(router.arrive())
    for outcome in [1.0, None] * 20:
        decision = router.decide(0.5, ticket=router.arrive())
        if outcome is not None:
            router.observe(decision, outcome)
    assert wealth(router) == 0.0


def crashed(entries: list[Entry]) -> Router:
    """The router of a process that died, as the next one finds it."""
    return Router.rebuild(list(entries), seed=3, journal=entries.append)


def test_a_crash_charges_the_earliest_ticket_under_way() -> None:
    """What is cut off is likelier to be slow, and so to lose: one charge makes the cut a fair stop."""
    entries: list[Entry] = []
    router = fresh(journal=entries.append)
    router.observe(router.decide(0.5, ticket=router.arrive()), 0.0)
    before = wealth(router)
    tickets = [router.arrive() for _ in range(4)]
    won, lost, owed = (router.decide(0.5, ticket=ticket) for ticket in tickets[1:])
    router.observe(won, 0.0)
    router.observe(lost, 1.0)
    copy = crashed(entries)
    assert wealth(copy) == before
    copy.arrive()
    cut = fresh()
    cut.observe(cut.decide(0.5), 0.0)
    for loss in (1.0, 1.0):  # one lost, one not known
        cut.observe(cut.decide(0.5), loss)
    charge = math.log(sum(1 - 0.9 * (k + 0.5) / 4 for k in range(4)) / 4)
    assert wealth(copy) < wealth(cut)
    assert wealth(copy) > wealth(cut) + 3 * charge
    copy.observe(owed, 0.0)
    again = crashed(entries)
    assert again.snapshot() == copy.snapshot()
    assert [type(entry) for entry in entries].count(Started) == 2
    with pytest.raises(UnknownTicket):
        copy.decide(0.5, ticket=tickets[0])


def test_a_clean_stop_costs_nothing() -> None:
    """A process that wrote that nothing was under way is not charged for its end."""
    entries: list[Entry] = []
    router = fresh(journal=entries.append)
    assert not router.stop()
    ticket = router.arrive()
    assert not router.stop()
    router.observe(router.decide(0.5, ticket=ticket), 0.0)
    assert router.stop()
    assert not router.stop()
    after = crashed(entries)
    after.arrive()
    assert wealth(after) == wealth(router)
    assert [type(entry) for entry in entries][-2:] == [Stopped, Started]
    plain = router.decide(0.5)  # nothing is under way, so the order of the calls will do
    assert (plain.ticket, router.arrive().number) == (0, 1)


@pytest.mark.parametrize("policy", ["portfolio", "paper", "budget"])
def test_an_abandoned_ticket_is_charged_once_and_for_ever(policy: str) -> None:
    """Nobody can decide it, it is not under way when the router stops, and its charge survives."""
    entries: list[Entry] = []
    router = fresh(policy, journal=entries.append)
    first, second = router.arrive(), router.arrive()
    for _ in range(5):
        router.observe(router.decide(0.5, ticket=router.arrive()), 0.0)
    router.overdue(second)
    for ticket in (second, first):  # the later one is charged when the prefix reaches it
        router.abandon(ticket)
    assert {entry.ticket for entry in entries if isinstance(entry, Overdue)} == {1, 2}
    state = router.bettor_state()
    for late in (lambda: router.decide(0.1, ticket=first), lambda: router.abandon(first)):
        with pytest.raises(UnknownTicket):
            late()
    assert (router.under_way, router.stop()) == ((), True)
    after = crashed(entries)
    after.arrive()
    assert after.bettor_state() == router.bettor_state() == state


def test_a_query_without_a_ticket_arrives_when_it_is_decided() -> None:
    """Among queries with tickets it takes the next number; a journal that fails leaves no ticket behind."""
    entries: list[Entry] = []

    def journal(entry: Entry) -> None:
        if isinstance(entry, Decision) and len(entries) == 2:
            raise OSError("disk full")
        entries.append(entry)

    router = fresh(journal=journal)
    router.arrive()
    with pytest.raises(OSError, match="disk full"):
        router.decide(0.5)
    assert len(router.under_way) == 1
    entries.append(entries[0])
    assert router.decide(0.5).ticket == 2


def test_a_journal_that_fails_leaves_the_ticket_under_way() -> None:
    """Nothing has changed when the journal refuses an entry: the caller can try again."""
    fail = False

    def journal(entry: Entry) -> None:
        if fail:
            raise OSError("disk full")

    router = fresh(journal=journal)
    ticket = router.arrive()
    before, fail = router.snapshot(), True
    attempts: list[Callable[[], object]] = [
        lambda: router.decide(0.5, ticket=ticket),
        lambda: router.withdraw(ticket),
        lambda: router.overdue(ticket),
    ]
    for attempt in attempts:
        with pytest.raises(OSError, match="disk full"):
            attempt()
    assert (router.snapshot(), router.under_way) == (before, (ticket,))


@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_a_ticket_of_an_earlier_epoch_goes_to_the_expert(loss: float) -> None:
    """After an alarm nothing that was certified before it is used, and the new epoch does not see the round."""
    entries: list[Entry] = []
    router = opened(journal=entries.append)
    early, other, third = router.arrive(), router.arrive(), router.arrive()
    assert early.threshold == 1.0
    ring(router)
    before, count = router.bettor_state(), router.snapshot()["entries"]
    decision = router.decide(0.1, ticket=early)
    assert (decision.threshold, decision.propensity, decision.call_expert, decision.epoch) == (0.0, 1.0, True, 1)
    router.withdraw(other)
    router.overdue(third)
    router.abandon(third)
    assert router.under_way == ()
    router.observe(decision, loss)
    assert router.bettor_state() == before
    assert router.snapshot()["entries"] == count + 2
    assert Router.rebuild(entries).snapshot() == router.snapshot()
    assert router.arrive().number == 1


def test_what_is_held_up_can_be_seen() -> None:
    """Decided queries that wait for an earlier one are counted, and so are those that were passed over."""
    router = fresh()
    assert router.held_up == (0, 0)
    hung = router.arrive()
    router.decide(0.5, ticket=router.arrive())
    assert router.held_up == (1, 0)
    router.overdue(hung)
    assert router.held_up == (0, 1)


@pytest.mark.parametrize("tickets", [False, True])
def test_a_trial_leaves_the_router_alone(tickets: bool) -> None:
    """What is tried out on a copy changes neither the router nor its journal."""
    entries: list[Entry] = []
    router = fresh(journal=entries.append)
    if tickets:
        router.arrive()
    before, written = router.snapshot(), len(entries)
    trial = router.trial()
    trial.observe(trial.decide(0.5), 0.0)
    assert trial.step == router.step + 1
    assert wealth(trial) > wealth(router)
    assert (router.snapshot(), len(entries)) == (before, written)


def test_the_least_propensity_is_one_while_nothing_is_accepted() -> None:
    """So do the decisions record it; the paper's policy uses the rate instead."""
    for policy, least in (("portfolio", 1.0), ("paper", 0.2)):
        decision, certain = fresh(policy).decide(0.5), named_policy(policy).certain_while_closed
        for threshold, expected in ((0.0, least), (0.3, 0.2)):
            again = decide_again(decision, threshold=threshold, rate=0.2, shadow=False, certain_while_closed=certain)
            assert again.least_propensity == expected
        assert decision.least_propensity == least


@pytest.mark.parametrize("ticket", [None, 3, "1", Ticket(1, 1, 0.0, 0.2, 0, 2)])
def test_a_ticket_that_was_not_given_out_is_refused(ticket: Any) -> None:
    """Foreign, forged and used tickets are refused, and nothing has changed."""
    router = fresh()
    real = router.arrive()
    router.withdraw(real)
    before = router.snapshot()
    for attempt in (router.withdraw, router.overdue, lambda ticket: router.decide(0.5, ticket=ticket)):
        if ticket is not None or attempt in (router.withdraw, router.overdue):
            with pytest.raises(UnknownTicket, match="is not under way here"):
                attempt(ticket)
        with pytest.raises(UnknownTicket, match="is not under way here"):
            attempt(real)
    with pytest.raises(InputError, match="reason must be a string"):
        router.withdraw(router.arrive(), 3)  # type: ignore[arg-type]
    assert router.snapshot() == before


def test_a_bad_score_leaves_the_ticket_under_way() -> None:
    """A score that is refused changes nothing: the ticket can still be decided or withdrawn."""
    router = fresh()
    ticket = router.arrive()
    with pytest.raises(InputError):
        router.decide(math.nan, ticket=ticket)
    assert router.under_way == (ticket,)


def journal_with_tickets() -> list[Entry]:
    """Two tickets, the second of which is decided first."""
    entries: list[Entry] = []
    router = fresh(journal=entries.append)
    first, second = router.arrive(), router.arrive()
    router.decide(0.5, ticket=second)
    router.withdraw(first)
    return entries


def change(at: int, **fields: Any) -> Callable[[list[Entry]], list[Entry]]:
    """Change some fields of an entry."""
    return lambda entries: [*entries[:at], entries[at]._replace(**fields), *entries[at + 1 :]]


@pytest.mark.parametrize(
    ("tampered", "says"),
    [
        (change(2, ticket=0), "without a ticket"),
        (change(3, ticket=2), "ticket 2, which is not under way"),
        (change(3, ticket=0), "ticket 0, which is not under way"),
        (change(2, epoch=2), "contradicts itself"),
        (change(2, epoch=0), "contradicts itself"),
        (lambda entries: [entries[0], *entries[2:]], "ticket 2, which is not under way"),
        (lambda entries: [*entries, Overdue(1)], "ticket 1, which is not under way"),
        (lambda entries: [*entries[:3], Stopped()], "no query is under way, but one is"),
        (lambda entries: [entries[0], Stopped()], "no query is under way, but one is"),
        (lambda entries: [entries[0], Withdrawn(1)], "ticket 1, which is not under way"),
    ],
)
def test_journals_that_no_router_wrote_are_refused(tampered: Callable[[list[Entry]], list[Entry]], says: str) -> None:
    """Tickets that are done twice, missing, or of a time in which there were none, are refused."""
    entries = journal_with_tickets()
    Router.rebuild(entries)
    with pytest.raises(JournalError, match=says):
        Router.rebuild(tampered(entries))


def test_a_decision_with_a_ticket_survives_a_snapshot() -> None:
    """A decision by ticket survives its way through a list, as snapshots keep it."""
    router = fresh()
    decision = router.decide(0.5, ticket=router.arrive())
    assert Decision.from_list(decision.to_list()) == decision
