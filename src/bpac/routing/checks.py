"""Checks that every policy must pass, so that its journal rebuilds its router and outcomes may come in any order.

>>> from bpac.routing.policies import named_policy
>>> for check in CHECKS:
...     check(named_policy("portfolio"))
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bpac.errors import CheckFailed, InputError
from bpac.routing.journal.entries import Entry, Resolved
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json
from bpac.routing.journal.snapshot import verify_snapshot
from bpac.routing.policies import Policy
from bpac.routing.router import Router

STEPS = 600


def check_rebuild(policy: Policy) -> None:
    """A journal written to JSON and read back gives the same router to the same bits, snapshot or not."""
    _rebuilt(*_play(policy, delay=40))


def check_tickets(policy: Policy) -> None:
    """The same holds where drafts end in any order, some never do, and the expert refuses some queries."""
    entries, router = _play_by_ticket(policy)
    _rebuilt(entries, router)
    _expect(router.under_way == (), "every ticket is done")
    _expect(router.stop(), "a router with nothing under way can stop")
    _expect(Router.rebuild(entries).snapshot() == router.snapshot(), "the journal rebuilds a router that has stopped")


def _rebuilt(entries: Sequence[Entry], router: Router) -> None:
    copies = [entry_from_json(entry_to_json(entry)) for entry in entries]
    _expect(Router.rebuild(copies).snapshot() == router.snapshot(), "the journal rebuilds the router")
    half = Router.rebuild(copies[: len(copies) // 2])
    snapshot = json.loads(json.dumps(half.snapshot()))
    verify_snapshot(snapshot, copies)
    rest = copies[snapshot["entries"] :]
    _expect(
        Router.rebuild(rest, snapshot=snapshot).snapshot() == router.snapshot(), "a snapshot is as good as the journal"
    )


def check_order(policy: Policy) -> None:
    """Outcomes that arrive after the last decision may arrive in any order."""
    entries, _ = _play(policy, delay=STEPS)
    decided: list[Entry] = [entry for entry in entries if not isinstance(entry, Resolved)]
    outcomes: list[Entry] = [entry for entry in entries if isinstance(entry, Resolved)]
    states = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(outcomes))
        states.append(_settled_state(decided + [outcomes[i] for i in order]))
    _expect(states[0] == states[1] == states[2], "the order of arrival leaves no trace")


def check_refund(policy: Policy) -> None:
    """A round that was charged and refunded leaves the wealth it would have had without delay."""
    entries, _ = _play(policy, delay=0)
    outcomes = [entry for entry in entries if isinstance(entry, Resolved)]
    late = [entry for entry in entries if not isinstance(entry, Resolved)] + outcomes
    _expect(_wealth(entries) == _wealth(late), "a refund undoes its charge")


def check_bad_input(policy: Policy) -> None:
    """Bad scores and losses are refused and leave everything as it was."""
    _, router = _play(policy, delay=40)
    names = policy.score_names
    decision = router.decide(_scores(names, 1.0))
    before = router.snapshot()
    bad: Sequence[Any] = (float("nan"), float("inf"), -0.1, 1.1, "0.5", True, None)
    for value in bad:
        _refused(router.decide, _scores(names, value))
        _refused(router.observe, decision, value)
    _expect(router.snapshot() == before, "a refused input changes nothing")


CHECKS: tuple[Callable[[Policy], None], ...] = (
    check_rebuild,
    check_tickets,
    check_order,
    check_refund,
    check_bad_input,
)


def _play(policy: Policy, delay: int) -> tuple[list[Entry], Router]:
    """A seeded stream with graded losses, each known after up to ``delay`` further decisions."""
    dice = np.random.default_rng(7)
    entries: list[Entry] = []
    router = Router(0.15, 0.2, policy, seed=7, journal=entries.append)
    waiting: list[tuple[int, Any, float]] = []
    for step in range(STEPS):
        uncertainty = dice.random()
        loss = (0.0, 0.0, 0.5, 1.0)[dice.integers(4)] if dice.random() < uncertainty**3 else 0.0
        decision = router.decide(_scores(policy.score_names, uncertainty))
        if decision.call_expert:
            waiting.append((step + int(dice.integers(delay + 1)), decision, loss))
        for item in [item for item in waiting if item[0] <= step]:
            waiting.remove(item)
            router.observe(item[1], item[2])
    for _, decision, loss in waiting:
        router.observe(decision, loss)
    return entries, router


def _play_by_ticket(policy: Policy) -> tuple[list[Entry], Router]:
    """A seeded stream with up to twelve queries under way, decided in any order."""
    dice = np.random.default_rng(11)
    entries: list[Entry] = []
    router = Router(0.15, 0.2, policy, seed=7, journal=entries.append)
    for _ in range(STEPS):
        router.arrive()
        while len(router.under_way) > dice.integers(12):
            ticket = router.under_way[dice.integers(len(router.under_way))]
            fate = dice.random()
            if fate < 0.05:
                router.withdraw(ticket, "no score")
            elif fate < 0.1:
                router.overdue(ticket)
            else:
                uncertainty = dice.random()
                decision = router.decide(_scores(policy.score_names, uncertainty), ticket=ticket)
                if decision.call_expert and fate < 0.9:
                    router.observe(decision, float(dice.random() < uncertainty**3))
                elif decision.call_expert and fate < 0.94:
                    router.refuse(decision, draft_served=decision.propensity < 1.0)
                elif decision.call_expert and fate < 0.97:
                    router.forfeit(decision)
    for ticket in router.under_way:
        router.withdraw(ticket, "the stream ends")
    return entries, router


def _scores(names: tuple[str, ...], value: Any) -> Any:
    """What ``decide`` takes: one score, or the same one under every name."""
    return dict.fromkeys(names, value) if names else value


def _refused(call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
    except InputError:
        return
    raise CheckFailed(f"check failed: {arguments!r} is refused")


def _settled_state(entries: Sequence[Entry]) -> dict[str, Any]:
    """The state without what depends on the order of outcomes: the alarm, and the share of audits without a verdict."""
    state: dict[str, Any] = Router.rebuild(entries).snapshot()["state"]
    return {key: value for key, value in state.items() if key not in ("drift", "forfeit_share")}


def _wealth(entries: Sequence[Entry]) -> Any:
    """The state of the bettor without the threshold, which may have latched at different times."""
    return _without_thresholds(_settled_state(entries)["game"])


def _without_thresholds(state: Any) -> Any:
    if isinstance(state, list):
        return [_without_thresholds(part) for part in state]
    if isinstance(state, dict):
        timed = ("limit", "threshold", "active", "accepted")
        return {key: _without_thresholds(part) for key, part in state.items() if key not in timed}
    return state


def _expect(holds: bool, claim: str) -> None:
    if not holds:
        raise CheckFailed(f"check failed: {claim}")
