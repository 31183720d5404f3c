"""Decisions on recorded terms are those of the router, to the bit."""

import random
from dataclasses import replace
from typing import Any

import pytest

from bpac.errors import InputError
from bpac.routing.audit.audit import audit_journal
from bpac.routing.coins import SeededCoins
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.entry_lines import entry_to_json
from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.learning.model import FrozenModel, OwnScore
from bpac.routing.policies import Fixed, Paper, Portfolio
from bpac.routing.recorded_terms import DecisionRules, closed, decide_on_terms, draft_scores
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket
from tests.routing.learning.drafts import drafts

LEARN = LearnedScore(("length", "task"), fit_at=(40, 120), shares=(0.2, 0.1), least_losses=3.0, least_gain=0.0)
GAMES: dict[str, dict[str, Any]] = {
    "default": {"policy": Portfolio()},
    "dithered": {"policy": Portfolio(dither=0.02)},
    "learned": {"policy": Portfolio(learn=LEARN)},
    "dithered and learned": {"policy": Portfolio(dither=0.02, learn=LEARN)},
    "in the shadow": {"policy": Portfolio(dither=0.02), "explore": "shadow"},
    "two scores": {"policy": Portfolio(scores={"one": 0.5, "other": 0.5}, dither=0.02)},
    "paper": {"policy": Paper()},
    "by hand": {"policy": Fixed(0.3, explores=0.3)},
}
# Nothing rings there.
WITHOUT_ALARM = ("paper", "by hand")


def is_stale(router: Router, ticket: Ticket) -> bool:
    """Whether a drift alarm has rung since a ticket was taken."""
    return ticket.epoch != router.epoch


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_decisions_on_recorded_terms_are_those_of_the_router(game: str, seed: int) -> None:
    """Many queries under way, epochs that end, scores that are learned: scores and decisions are equal to the bit."""
    router = Router(0.2, 0.1, **GAMES[game], coins=SeededCoins(seed))
    rules, coins, dice = DecisionRules.of(router.settings), SeededCoins(seed), random.Random(seed)
    under_way: list[tuple[Ticket, tuple[FrozenModel | OwnScore, ...]]] = []
    epochs, several, called = set(), 0, 0
    for number, draft in enumerate(drafts(900, seed)):
        learning = router._route.learning
        joined = learning.joined if learning is not None else []
        due = learning is not None and learning.due
        if due:  # it joins with the next decision, which no ticket of the test is to lie between
            under_way, waiting = [], under_way
            for ticket, _ in waiting:
                router.withdraw(ticket)
        under_way.append((router.arrive(), tuple(one.model for one in joined)))
        while under_way and dice.random() < 0.6:
            ticket, models = under_way.pop(dice.randrange(len(under_way)))
            stale = is_stale(router, ticket)
            score: Any = draft.uncertainty**2 if number < 500 else draft.uncertainty**2 / 50
            if rules.score_names:
                score = {"one": score, "other": 1.0 - score}
            features = draft.features if rules.learns else None
            expected = router.decide(score, ticket=ticket, features=features)
            step = expected.step
            dither, draw = coins.dithers(step)[-1], coins.draws(step)[-1]
            scores = draft_scores(rules, score, dither, () if stale else models, features)
            decided = decide_on_terms(rules, closed(rules, ticket) if stale else ticket, scores, step, draw)
            assert decided == expected
            assert [type(value) for value in decided] == [type(value) for value in expected]
            epochs.add(decided.epoch)
            several += len(decided.uncertainties) > 1
            called += decided.call_expert
            if decided.call_expert:
                router.observe(decided, draft.loss if number < 500 else float(dice.random() < 0.95))
    assert 0 < called < router.step
    assert game in WITHOUT_ALARM or len(epochs) > 1
    assert not rules.learns or several > 100


def test_games_whose_decisions_need_their_state_are_refused() -> None:
    """A budget needs a bound that moves with audits only, which can be counted."""
    assert DecisionRules.of(Router(0.05, policy="budget").settings).budget
    sharp = replace(Router(0.05, policy="budget").settings, certificate="sharp")
    with pytest.raises(InputError, match="newest state"):
        DecisionRules.of(sharp)


def test_every_named_score_is_needed() -> None:
    """A draft without one of the scores is not decided."""
    rules = DecisionRules.of(Router(0.05, policy=Portfolio(scores={"one": 0.5, "other": 0.5})).settings)
    with pytest.raises(InputError, match="one, other"):
        draft_scores(rules, {"one": 0.5}, 0.0)
    with pytest.raises(InputError, match="one, other"):
        draft_scores(rules, 0.5, 0.0)


def test_features_need_a_game_that_learns() -> None:
    """Features that nothing is learned from are a mistake of the caller."""
    rules = DecisionRules.of(Router(0.05).settings)
    with pytest.raises(InputError, match="takes no features"):
        draft_scores(rules, 0.5, 0.0, features={"length": 1.0})


def test_a_journal_may_have_decisions_on_stale_terms() -> None:
    """Queries of an epoch that is over are decided on the terms they arrived with, or closed; nothing else passes."""
    entries: list[Entry] = []
    router = Router(0.2, 0.1, policy=Portfolio(learn=LEARN), coins=SeededCoins(1), journal=entries.append)
    rules, rows = DecisionRules.of(router.settings), drafts(4000)
    tickets: list[Ticket] = []
    for number, draft in enumerate(rows):
        learning = router._route.learning
        assert learning is not None
        if router.epoch > 1:
            break
        if router.threshold and learning.joined and not tickets:
            models = tuple(one.model for one in learning.joined)
            tickets = [router.arrive(), router.arrive()]
        decision = router.decide(draft.uncertainty / 9, ticket=router.arrive(), features=draft.features)
        if decision.call_expert:
            router.observe(decision, float(number > 1500))
    assert router.epoch == 2
    assert tickets[0].threshold > 0.0
    scores = draft_scores(rules, 0.01, 0.0, models, rows[0].features)
    step = router.step
    stale = decide_on_terms(rules, tickets[0], scores, step + 1, 0.99)
    late = decide_on_terms(rules, closed(rules, tickets[1]), scores, step + 2, 0.99)
    lines = [entry_to_json(entry) + "\n" for entry in [*entries, stale, late]]
    assert len(stale.uncertainties) > 1
    assert audit_journal(lines).differences == []
    route = opened(entries[0])
    follow(route, [*entries[1:], stale, late])
    assert route.step == step + 2
    wrong = decide_on_terms(rules, tickets[0]._replace(threshold=0.999), scores, step + 1, 0.99)
    (difference, *_) = audit_journal([*lines[:-2], entry_to_json(wrong) + "\n"]).differences
    assert difference.what == f"threshold of step {step + 1}"
