import copy
import hashlib
import json
from typing import Any

import pytest

from bpac import Router
from bpac.errors import JournalError, SnapshotError
from bpac.replay.tables.builtin import builtin_table
from bpac.routing.exploration.gain_schedules import WhileItPays
from bpac.routing.journal.entries import Entry, Opened, Resolved
from bpac.routing.journal.snapshot import FORMAT, verify_snapshot
from bpac.routing.policies import POLICIES, Paper, Portfolio
from bpac.routing.settings import Settings


def played(steps: int = 80, policy: Any = "portfolio", **settings: Any) -> tuple[Router, list[Entry]]:
    """A router in the middle of its work, and its journal."""
    entries: list[Entry] = []
    router = Router(0.3, 0.4, policy, seed=4, journal=entries.append, **settings)
    router.warm_start([(0.2, 0.0), (0.9, 1.0)])
    for step in range(steps):
        decision = router.decide((step * 7 % 10) / 10)
        if decision.call_expert and step % 5:
            router.observe(decision, float(step % 9 == 0))
        elif decision.call_expert and step % 2:
            router.forfeit(decision, "timeout")
    return router, entries


@pytest.mark.parametrize("policy", ["portfolio", "paper", "budget"])
def test_bettor_state_is_what_a_snapshot_keeps(policy: str) -> None:
    """An audit that is still open is charged before the state is read."""
    router, _ = played(policy=policy)
    router.decide(0.1)
    assert json.dumps(router.bettor_state()) == json.dumps(router.snapshot()["state"]["game"])


def sealed(snapshot: dict[str, Any]) -> dict[str, Any]:
    """The snapshot with a digest that fits it, as another program could write it."""
    body = {key: value for key, value in snapshot.items() if key != "digest"}
    return body | {"digest": hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_router_continues_from_a_snapshot_in_json(policy: str) -> None:
    """Through a file and back, a snapshot and the later entries make the router that wrote them."""
    router, entries = played(policy=policy)
    snapshot = json.loads(json.dumps(router.snapshot()))
    assert snapshot == router.snapshot()
    for step in range(40):
        decision = router.decide(step / 40)
        if decision.call_expert:
            router.observe(decision, float(step % 4 == 0))
    later = entries[snapshot["entries"] :]
    resumed = Router.rebuild(later, snapshot=snapshot, seed=4)
    assert resumed.snapshot() == router.snapshot() == Router.rebuild(entries).snapshot()
    assert resumed.decide(0.1) == router.decide(0.1)
    verify_snapshot(snapshot, entries)


def test_a_snapshot_counts_its_entries_with_or_without_a_journal() -> None:
    """A router without a journal counts its entries like one that has a journal."""
    router, entries = played()
    silent = Router(0.3, 0.4, seed=4)
    silent.warm_start([(0.2, 0.0), (0.9, 1.0)])
    for entry in entries[3:]:
        if isinstance(entry, Resolved):
            decision = next(owed for owed in silent.owed if owed.step == entry.step)
            silent.forfeit(decision, entry.cause) if entry.loss is None else silent.observe(decision, entry.loss)
        else:
            silent.decide(entry.uncertainty)  # type: ignore[union-attr]
    assert router.snapshot()["entries"] == len(entries)
    assert silent.snapshot() == router.snapshot()


@pytest.mark.parametrize(
    "damage",
    [
        lambda s: s["state"].update(step=3),
        lambda s: s["settings"].update(epsilon=0.31),
        lambda s: s.update(entries=5),
        lambda s: s.update(digest="0" * 64),
        lambda s: s.pop("digest"),
        lambda s: s.update(note="harmless"),
        lambda s: s["state"]["game"]["common"].reverse(),
    ],
)
def test_a_damaged_snapshot_is_refused(damage: Any) -> None:
    """One changed value breaks the digest, and the message says what to do."""
    router, entries = played()
    snapshot = copy.deepcopy(router.snapshot())
    damage(snapshot)
    with pytest.raises(SnapshotError, match="the snapshot is damaged: leave it out and rebuild from the journal"):
        Router.rebuild([], snapshot=snapshot)
    with pytest.raises(SnapshotError, match="damaged"):
        verify_snapshot(snapshot, entries)


@pytest.mark.parametrize("snapshot", [{}, {"format": FORMAT + 1}, {"format": str(FORMAT)}, [], "snapshot", 3, True])
def test_anything_but_a_snapshot_is_refused(snapshot: Any) -> None:
    """Another format, or another value, is refused with what to do instead."""
    with pytest.raises(SnapshotError, match=f"this is not a snapshot of format {FORMAT}: leave it out"):
        Router.rebuild([], snapshot=snapshot)


def test_a_snapshot_with_bad_settings_is_refused() -> None:
    """A valid digest does not make settings valid: they are checked like any others."""
    snapshot = played()[0].snapshot()
    for change in ({"epsilon": 2.0}, {"policy": {"kind": "Fixed", "threshold": 2.0}}):
        with pytest.raises(SnapshotError, match="the snapshot has settings that cannot be used"):
            Router.rebuild([], snapshot=sealed(snapshot | {"settings": snapshot["settings"] | change}))


def test_a_snapshot_of_another_journal_is_refused() -> None:
    """Reading the journal up to the same entry shows any difference, and where it is."""
    router, entries = played()
    other, _ = played(policy=Portfolio(memory="latched"))
    with pytest.raises(SnapshotError, match=r"differs from the journal in settings\.policy"):
        verify_snapshot(other.snapshot(), entries)
    snapshot = router.snapshot()
    for part, value in (("step", 81), ("expert_calls", 0), ("forfeits", {}), ("epoch_start", 0)):
        changed = sealed(snapshot | {"state": snapshot["state"] | {part: value}})
        with pytest.raises(SnapshotError, match=f"differs from the journal in state.{part}: rebuild from the journal"):
            verify_snapshot(changed, entries)


def test_a_snapshot_cannot_have_seen_more_than_the_journal() -> None:
    """A journal shorter than the snapshot is refused; one that is longer is read up to the snapshot's entry."""
    router, entries = played()
    snapshot = router.snapshot()
    with pytest.raises(SnapshotError, match=f"has seen {len(entries)} entries and the journal has {len(entries) - 3}"):
        verify_snapshot(snapshot, entries[:-3])
    router.decide(0.5)
    verify_snapshot(snapshot, [*entries, entries[0]])


def test_entries_after_a_snapshot_continue_the_numbering() -> None:
    """An error in what came after the snapshot names the entry's number in the whole journal."""
    router, entries = played()
    with pytest.raises(JournalError, match=f"entry {len(entries) + 1} resolves step 999"):
        Router.rebuild([Resolved(999, 0.0)], snapshot=router.snapshot())


def test_taking_a_snapshot_changes_nothing() -> None:
    """A router of which a snapshot is taken after every step decides like one of which none is taken."""
    watched, alone = (Router(0.3, 0.4, Paper(), seed=4) for _ in range(2))
    for step in range(25):
        decisions = [router.decide(step / 25) for router in (watched, alone)]
        watched.snapshot()
        assert decisions[0] == decisions[1]
        if decisions[0].call_expert:
            watched.observe(decisions[0], float(step % 9 == 0))
            alone.observe(decisions[1], float(step % 9 == 0))
        watched.snapshot()
    assert watched.snapshot() == alone.snapshot()


def test_a_game_from_before_the_sharper_settings_goes_on_as_it_began() -> None:
    """A journal without the newer settings gives the threshold and the certificate that it gave when it was written."""
    settings = Settings(
        0.08, 0.1, Portfolio(floor_fractions=()), WhileItPays(whole_game=False, in_time=False), certificate="plain"
    ).to_json()
    assert "certificate" not in settings
    assert "whole_game" not in settings["exploration"]
    assert not {"floor_fractions", "dither"} & set(settings["policy"])
    router = Router.rebuild([Opened(settings)], seed=3)
    table = builtin_table("mmlu-pro-like", 5, 2500)
    for uncertainty, loss in zip(table.uncertainty.tolist(), table.loss.tolist(), strict=True):
        decision = router.decide(uncertainty)
        if decision.call_expert:
            router.observe(decision, loss)
    certificate = router.certificate()
    assert router.threshold == 0.384765625
    assert certificate.lower == pytest.approx(67.45469973544684, rel=1e-12)
    assert certificate.upper == pytest.approx(395.8743736099956, rel=1e-12)
    again = Router.rebuild([], snapshot=router.snapshot())
    assert len(again.snapshot()["state"]["served"]["upper"]) == 4
    assert again.certificate() == certificate
