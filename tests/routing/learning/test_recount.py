"""The wealth of every score is what its own rounds add up to, in whatever order things happened."""

import random
from collections import defaultdict
from typing import Any, cast

import pytest

from bpac import Router
from bpac.betting.ledgers.levels import Levels
from bpac.betting.payoff import log_units
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Resolved
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies import Portfolio
from bpac.routing.tickets.ticket import Ticket


def played(seed: int, policy: Portfolio) -> tuple[Router, list[Entry]]:
    """A router after queries that overtake each other, are late or withdrawn, and outcomes that are given up first."""
    dice, entries = random.Random(seed), list[Entry]()
    router = Router(0.15, 0.1, policy, coins=SeededCoins(seed), journal=entries.append)
    tickets, waiting = list[Ticket](), list[tuple[Decision, float]]()
    for _ in range(250):
        kind = dice.random()
        if kind < 0.55:
            ticket = tickets.pop(dice.randrange(len(tickets))) if tickets and dice.random() < 0.7 else router.arrive()
            length = dice.lognormvariate(0, 1)
            decision = router.decide(dice.random(), ticket=ticket, features=(length, f"task {dice.randrange(3)}"))
            if decision.call_expert:
                waiting.append((decision, dice.choice((1.0, dice.random())) * (dice.random() < 0.1 * length)))
                if dice.random() < 0.1:
                    router.forfeit(decision)
        elif kind < 0.7 and len(tickets) < 8:
            tickets.append(router.arrive())
        elif kind < 0.75 and tickets:
            router.withdraw(tickets.pop(0))
        elif kind < 0.8 and tickets:
            router.overdue(dice.choice(tickets))
        while waiting and dice.random() < 0.6:
            router.observe(*waiting.pop(dice.randrange(len(waiting))))
    for decision, loss in waiting:
        assert decision.own_score == decision.uncertainties[0]
        router.observe(decision, loss)
    for ticket in tickets:
        router.withdraw(ticket)
    return router, entries


def recounted(router: Router, entries: list[Entry], score: int, late: list[int]) -> tuple[list[int], dict[int, Any]]:
    """The log-wealth of each gambler before losses, and what losses take at each level, from the journal alone."""
    policy, terms = cast(Portfolio, router.settings.policy), router.settings.terms
    assert policy.learn is not None
    count, size = len(policy.stakes.fractions), len(policy.stakes.fractions) * (1 + len(late))
    weights = policy.stakes.weights or [1.0 / count] * count
    first = [log_units(weight * count) for weight in weights]
    common = first + [log_units(policy.learn.returned(one)) + begins for one in late for begins in first]
    losses = {entry.step: entry.loss for entry in entries if isinstance(entry, Resolved) and entry.loss}
    booked: dict[int, list[int]] = defaultdict(lambda: [0] * size)
    for decision in entries:
        if not isinstance(decision, Decision) or score >= len(decision.uncertainties):
            continue
        betting = count * (1 + sum(one < len(decision.uncertainties) for one in late))
        at_floor = decision.least_propensity <= terms.floor
        stakes = sorted((policy.stakes.floor_fractions if at_floor else None) or policy.stakes.fractions)
        bound = terms.payoff_bound(decision.least_propensity)
        for gambler in range(betting):
            stake = stakes[gambler % count]
            win = log_units(1.0 + stake * terms.epsilon / bound)
            common[gambler] += win
            if (loss := losses.get(decision.step)) is not None:
                taken = log_units(1.0 + stake * terms.payoff(loss, decision.propensity) / bound) - win
                booked[cast(Levels, policy.levels).code(decision.uncertainties[score])][gambler] += taken
    return common, booked


@pytest.mark.parametrize("least_gain", [0.0, 1.0])
def test_every_score_has_the_wealth_of_its_own_rounds(least_gain: float) -> None:
    """Overdue tickets, late refunds and rounds from before a score joined, or a share went back, leave no trace."""
    learn = LearnedScore(("length", "task"), (20, 50), (0.2, 0.1), least_losses=3.0, least_gain=least_gain)
    sizes = set()
    for seed in range(4):
        router, entries = played(seed, Portfolio(memory="revocable", learn=learn))
        for score, wealth in enumerate(router.bettor_state()["wealths"]):
            if wealth:
                late = wealth.get("late", [])
                common, booked = recounted(router, entries, score, late)
                assert wealth["common"] == common
                assert {code: rest for code, *rest in wealth["losses"] if any(rest)} == {
                    code: rest for code, rest in booked.items() if any(rest)
                }
                sizes.add((score, len(late)))
    assert sizes == ({(0, 0), (1, 0), (2, 0)} if least_gain == 0.0 else {(0, 2)})
