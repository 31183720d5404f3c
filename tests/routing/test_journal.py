import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bpac import Decision, Router
from bpac.routing.exploration.schedules import Constant
from bpac.routing.journal.entries import Entry, Labelled, Opened, Resolved
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json
from bpac.routing.policies import POLICIES, Fixed


class Disk:
    """A place for entries that is sometimes full."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.full = False

    def __call__(self, entry: Entry) -> None:
        """Keep an entry, or fail."""
        if self.full:
            raise OSError("no space left on device")
        self.entries.append(entry)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_journal_that_fails_leaves_everything_as_it_was(policy: str) -> None:
    """Nothing takes effect before it is written: step, coin and state are as before, and the next try works."""
    disk, steady = Disk(), Router(0.3, 0.4, policy, seed=6)
    router = Router(0.3, 0.4, policy, seed=6, journal=disk)
    for step in range(60):
        score, loss = (step * 7 % 10) / 10, float(step % 9 == 0)
        if step % 10 == 0:
            before = router.snapshot()
            disk.full = True
            with pytest.raises(OSError, match="no space"):
                router.decide(score)
            assert router.snapshot() == before
            disk.full = False
        decision = router.decide(score)
        assert decision == steady.decide(score)
        if not decision.call_expert:
            continue
        if step % 4 == 0:
            before = router.snapshot()
            disk.full = True
            with pytest.raises(OSError, match="no space"):
                router.observe(decision, loss)
            with pytest.raises(OSError, match="no space"):
                router.forfeit(decision)
            assert router.snapshot() == before
            disk.full = False
        router.observe(decision, loss)
        steady.observe(decision, loss)
    assert router.threshold == steady.threshold
    assert Router.rebuild(disk.entries).snapshot() == router.snapshot()


def test_a_router_that_cannot_open_its_journal_does_not_start() -> None:
    """The settings are the first entry; if they cannot be written, the router is not made."""
    disk = Disk()
    disk.full = True
    with pytest.raises(OSError, match="no space"):
        Router(0.1, journal=disk)


def test_history_is_written_row_by_row() -> None:
    """A journal that fails in the middle of history keeps what was written, and the router has learned exactly that."""
    disk = Disk()
    router = Router(0.1, journal=disk)

    def write(entry: Entry) -> None:
        disk.full = len(disk.entries) > 3
        disk(entry)

    router = Router(0.1, journal=write)
    with pytest.raises(OSError, match="no space"):
        router.warm_start([(0.5, 0.0)] * 9)
    assert Router.rebuild(disk.entries[1:]).snapshot() == router.snapshot()


def test_entries_are_written_in_order_before_they_take_effect() -> None:
    """Settings, history, decisions and outcomes: each is written when it happens, and the decision before its step."""
    steps: list[int] = []
    entries: list[Entry] = []

    def write(entry: Entry) -> None:
        entries.append(entry)
        steps.append(router.step if len(entries) > 1 else 0)

    router = Router(0.1, seed=1, journal=write)
    router.warm_start([(0.5, 0.25)])
    decision = router.decide(0.5)
    second = router.decide(0.75)
    router.forfeit(second, "timeout", draft_served=True)
    router.observe(decision, 1)
    assert entries == [
        Opened(router.settings.to_json()),
        Labelled((0.5,), 0.25),
        decision,
        second,
        Resolved(2, None, "timeout", draft_served=True),
        Resolved(1, 1.0),
    ]
    assert steps == [0, 0, 0, 1, 2, 2]


def test_a_rebuilt_router_continues_its_journal() -> None:
    """Entries after a rebuild go to the new place, and both parts together are the journal."""
    entries: list[Entry] = []
    router = Router(0.1, seed=1, journal=entries.append)
    decision = router.decide(0.5)
    more: list[Entry] = []
    rebuilt = Router.rebuild(entries, seed=1, journal=more.append)
    rebuilt.observe(decision, 0.0)
    assert isinstance(rebuilt.decide(0.4), Decision)
    assert Router.rebuild(entries + more).snapshot() == rebuilt.snapshot()


def test_entries_leave_defaults_out() -> None:
    """Defaults are left out, so that the usual line holds what is needed and no more."""
    router = Router(0.1, policy=Fixed(0.5), seed=1)
    assert json.loads(entry_to_json(router.decide(0.25))) == {
        "entry": "decided",
        "step": 1,
        "uncertainty": 0.25,
        "threshold": 0.5,
        "propensity": 0.0,
        "least_propensity": 0.0,
        "call_expert": False,
        "serve_draft": True,
    }
    assert entry_to_json(Resolved(1, None, "timeout")) == '{"entry":"resolved","step":1,"loss":null,"cause":"timeout"}'


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_refused(loss: float) -> None:
    """NaN and infinity are refused instead of written in a form that is not JSON."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        entry_to_json(Resolved(1, loss))


@pytest.mark.parametrize("kind", [np.float32, Fraction, np.float64])
def test_numbers_of_other_types_are_written_as_plain_json(kind: Any) -> None:
    """Real numbers that are not floats are accepted as settings, scores and losses, and written as plain numbers."""
    entries: list[Entry] = []
    router = Router(kind(0.25), kind(0.5), exploration=Constant(kind(0.5)), seed=1, journal=entries.append)
    router.warm_start([(kind(0.5), kind(1))])
    router.observe(router.decide(kind(0.75)), kind(1))
    copies = [entry_from_json(entry_to_json(entry)) for entry in entries]
    assert Router.rebuild(copies).snapshot() == router.snapshot()
