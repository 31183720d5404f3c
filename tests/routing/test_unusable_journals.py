"""A journal that could not rebuild its router later is refused at once; what a router prints of itself."""

from typing import Any

import numpy as np
import pytest

from bpac import Router
from bpac.errors import SettingsError
from bpac.routing.exploration.gain_schedules import GainDriven
from bpac.routing.exploration.schedules import Constant
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json
from bpac.routing.policies import POLICIES, Portfolio
from bpac.routing.settings import Settings


async def write_later(entry: Entry) -> None:
    """A journal that has written nothing when it returns."""


@pytest.mark.parametrize("journal", [[], "journal.jsonl", 3, {}])
def test_a_journal_that_cannot_be_called_is_refused(journal: Any) -> None:
    """A list or a path in the place of a function is refused when the router is made, and when it is rebuilt."""
    with pytest.raises(SettingsError, match=r"journal must be a function that takes an entry, such as entries\.append"):
        Router(0.1, journal=journal)
    entries: list[Entry] = []
    Router(0.1, journal=entries.append)
    with pytest.raises(SettingsError, match="journal must be a function"):
        Router.rebuild(entries, journal=journal)


def test_a_journal_that_writes_later_is_refused() -> None:
    """A coroutine function would lose every entry, because the router does not await it."""
    with pytest.raises(SettingsError, match="is a coroutine function: give a plain function"):
        Router(0.1, journal=write_later)


@pytest.mark.parametrize("coins", [3, "seed", [0.5], object()])
def test_coins_without_draws_are_refused(coins: Any) -> None:
    """Anything but a random source is refused before the first decision."""
    with pytest.raises(SettingsError, match=r"coins must have a method draws\(step\)"):
        Router(0.1, coins=coins)


def test_settings_that_a_journal_cannot_name_are_refused_with_a_journal() -> None:
    """Names of scores that JSON cannot write, or reads back as something else, fail at once and not at the rebuild."""
    unwritable: Any = {np.int64(1): 0.5, np.int64(2): 0.5}
    with pytest.raises(SettingsError, match=r"cannot be written to a journal and read back: .*not JSON serializable"):
        Router(0.1, policy=Portfolio(scores=unwritable), journal=print)
    unreadable: Any = {("a", "b"): 0.5, "c": 0.5}
    with pytest.raises(SettingsError, match=r"cannot be written to a journal and read back: .*scores"):
        Router(0.1, policy=Portfolio(scores=unreadable), journal=print)
    assert Router(0.1, policy=Portfolio(scores=unreadable)).step == 0  # it has no journal to be read back from


def test_settings_that_would_be_read_back_differently_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A router must be rebuilt with the settings that it had."""
    written = Settings(0.2, 0.1, Portfolio(), Constant()).to_json()
    monkeypatch.setattr(Settings, "to_json", lambda self: written)
    with pytest.raises(SettingsError, match="a journal would read these settings back differently"):
        Router(0.1, journal=print)


@pytest.mark.parametrize("exploration", [None, Constant(0.2), GainDriven()])
@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("always", "never", "offline", "oracle")])
def test_settings_that_a_journal_can_name_rebuild(name: str, exploration: Any) -> None:
    """Every policy with every kind of exploration is accepted with a journal, and its first line rebuilds it."""
    lines: list[str] = []
    router = Router(0.1, policy=name, exploration=exploration, journal=lambda entry: lines.append(entry_to_json(entry)))
    assert Router.rebuild(map(entry_from_json, lines)).settings == router.settings


def test_repr_says_where_a_router_stands() -> None:
    """Policy, promise, step, threshold and epoch are in what Python prints for a router."""
    router = Router(0.1, 0.2, "budget", seed=1)
    assert repr(router) == "<Router Budget, epsilon=0.1, alpha=0.2, step=0, threshold=0.0, epoch=1>"
    while router.threshold == 0.0:
        router.observe(router.decide(0.3), 0.0)
    assert f"step={router.step}, threshold={router.threshold}, epoch=1>" in repr(router)
