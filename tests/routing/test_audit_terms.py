"""Audits of journals with tickets: each decision has the terms that were in force when its request arrived."""

import json
import random
from typing import Any

import pytest

from bpac.routing.audit.audit import Audit, audit_journal
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.entry_lines import entry_to_json
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket

POLICIES: dict[str, dict[str, Any]] = {
    "portfolio": {},
    "revocable": {"memory": "revocable"},
    "shadow": {"explore": "shadow"},
    "paper": {"policy": "paper"},
    "budget": {"policy": "budget"},
    "never": {"policy": "never"},
}


def played(hard: float = 0.05, *, rounds: int = 500, **options: Any) -> list[str]:
    """The journal of a game with many requests under way, crashes and clean stops."""
    entries: list[Entry] = []
    dice = random.Random(7)
    router = Router(0.2, seed=7, journal=entries.append, **options)
    drafting: list[Ticket] = []
    for number in range(rounds):
        if number % 150 == 149:
            if dice.random() < 0.5:
                for ticket in drafting:
                    router.withdraw(ticket)
                router.stop()
            drafting = []
            router = Router.rebuild(list(entries), seed=7, journal=entries.append)
        drafting.append(router.arrive())
        while drafting and dice.random() < 0.5:
            ticket = drafting.pop(dice.randrange(len(drafting)))
            if dice.random() < 0.03:
                router.overdue(ticket)
            decision = router.decide(dice.random(), ticket=ticket)
            if decision.call_expert:
                if dice.random() < 0.05:
                    router.refuse(decision)
                else:
                    router.observe(decision, float(dice.random() < (hard if number < 300 else 0.9)))
    return [entry_to_json(entry) for entry in entries]


def audited(lines: list[str]) -> Audit:
    """The result of an audit."""
    return audit_journal(line + "\n" for line in lines)


@pytest.mark.parametrize("name", POLICIES)
def test_decisions_follow_from_the_entries_before_their_arrival(name: str) -> None:
    """Thresholds, rates and probabilities follow from the entries before the arrival, across alarms and restarts."""
    lines = played(**POLICIES[name])
    audit = audited(lines)
    assert audit.differences == []
    assert audit.rounds == sum('"decided"' in line for line in lines) > 300


def test_the_played_game_has_an_epoch_with_requests_under_way() -> None:
    """The default game above ends an epoch while requests are under way; otherwise the test would prove little."""
    decided = [json.loads(line) for line in played() if '"decided"' in line]
    epochs = [entry.get("epoch", 1) for entry in decided]
    assert epochs != sorted(epochs)
    assert len({entry["threshold"] for entry in decided}) > 3


def forged(lines: list[str], **changes: Any) -> Audit:
    """The audit of a journal in which one accepted decision was changed."""
    places = [at for at, line in enumerate(lines) if '"decided"' in line and '"propensity":1.0' not in line]
    at = places[len(places) // 2]
    entry = json.loads(lines[at])
    changed = {key: change(entry[key]) for key, change in changes.items()}
    return audited([*lines[:at], json.dumps(entry | changed), *lines[at + 1 :]])


def test_changed_terms_are_detected() -> None:
    """A changed threshold, rate or moment of arrival is detected."""
    lines = played()
    assert forged(lines, threshold=lambda value: value + 0.01).differences
    assert forged(lines, propensity=lambda value: 0.5, least_propensity=lambda value: 0.5).differences
    # As if it had arrived before anything was certified, in an earlier life, or in the future.
    assert forged(lines, seen=lambda value: 2).differences
    future = forged(lines, seen=lambda value: value + 10_000).differences
    assert any(found.what.startswith("entries seen by step") for found in future)


def test_decisions_without_tickets_have_the_terms_of_their_decision() -> None:
    """Without tickets, the terms in force at the decision count."""
    entries: list[Entry] = []
    router = Router(0.2, seed=1, journal=entries.append)
    for number in range(200):
        decision = router.decide(number / 200)
        if decision.call_expert:
            router.observe(decision, 0.0)
    audit = audited([entry_to_json(entry) for entry in entries])
    assert (audit.rounds, audit.differences) == (200, [])
    assert any(isinstance(entry, Decision) and entry.propensity < 1.0 for entry in entries)
