"""``bpac.open``: a router in a file."""

import gc
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import bpac
from bpac.errors import InputError, Interrupted, SettingsError, StoreError, StoreInUse
from bpac.routing.audit.audit import audit_journal
from bpac.routing.journal.entries import Labelled
from bpac.routing.policies import POLICIES, Portfolio
from bpac.stores import open_store

# Decides for ever, and prints each step once ``decide`` or ``observe`` has returned.
DECIDE = """
import sys, bpac
router = bpac.open(sys.argv[1], epsilon=0.1)
while True:
    decision = router.decide(0.3)
    print("decided", decision.step, flush=True)
    if decision.call_expert and decision.step % 3:
        router.observe(decision, 0.0)
        print("observed", decision.step, flush=True)
"""


def play(router: bpac.Router, rounds: int) -> None:
    """Rounds whose drafts lose above 0.5."""
    for number in range(rounds):
        uncertainty = (number * 37 % 100) / 100
        decision = router.decide(uncertainty)
        if decision.call_expert:
            router.observe(decision, float(uncertainty > 0.5))


def test_a_reopened_router_goes_on_where_it_was(tmp_path: Path) -> None:
    """Threshold, wealth, certificate and open audits are the same after closing and opening."""
    with bpac.open(tmp_path / "router.db", epsilon=0.1, alpha=0.05) as router:
        play(router, 400)
        owed = router.decide(0.99)
        before = router.snapshot()
        assert router.threshold > 0.0
    with bpac.open(tmp_path / "router.db") as router:
        assert router.snapshot() == before
        assert router.owed == (owed,)
        router.observe(owed, 1.0)
        assert router.settings.alpha == 0.05


def test_the_state_does_not_depend_on_the_snapshot(tmp_path: Path) -> None:
    """Read from its first entry on, or from a snapshot that is damaged, the journal gives the same router."""
    path = tmp_path / "router.db"
    with bpac.open(path, epsilon=0.1) as router:
        play(router, 300)
        before = router.snapshot()
    for statement in ("UPDATE snapshots SET snapshot = '{}'", "DELETE FROM snapshots"):
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()
        with bpac.open(path) as router:
            assert router.snapshot() == before


def test_a_long_journal_is_read_from_its_latest_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A router that was never closed has a snapshot all the same, and several threads may be deciding meanwhile."""
    monkeypatch.setattr("bpac.saved_router.SNAPSHOT_EVERY", 50)
    path = tmp_path / "router.db"
    router = bpac.open(path, epsilon=0.1)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: play(router, 100), range(8)))
    assert router.step == 800
    state = router.snapshot()
    kept = router._store.snapshot(router._game)
    router._store.close()  # as a crash would leave it
    assert kept is not None
    assert kept["router"]["entries"] > state["entries"] - 150
    with bpac.open(path) as router:
        assert router.snapshot() == state


def test_nothing_that_returned_is_forgotten_by_a_kill(tmp_path: Path) -> None:
    """Whatever the process, each decision and outcome that was returned to it is there after SIGKILL."""
    path = tmp_path / "router.db"
    decided = observed = 0
    for lines in (5, 40, 201):
        child = subprocess.Popen([sys.executable, "-c", DECIDE, path], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        said += child.stdout.read().splitlines(keepends=True)
        child.wait()
        child.stdout.close()
        said = [line for line in said if line.endswith("\n")]
        decided = max([decided, *(int(line.split()[1]) for line in said if line.startswith("decided"))])
        observed += sum(line.startswith("observed") for line in said)
        with bpac.open(path) as router:
            assert router.step >= decided
            resolved = sum('"resolved"' in line for line in router.exported())
            assert resolved >= observed


def test_the_exported_journal_passes_the_audit(tmp_path: Path) -> None:
    """Thresholds, certificate, hash chain and coins of a router in a file can be checked by anybody."""
    with bpac.open(tmp_path / "router.db", epsilon=0.1) as router:
        play(router, 300)
    with bpac.open(tmp_path / "router.db") as router:
        play(router, 10)
        lines = list(router.exported())
    audit = audit_journal(f"{line}\n" for line in lines)
    assert audit.differences == []
    assert audit.unproved == []
    assert audit.rounds == 310
    assert bpac.Router.rebuild(bpac.read_journal(f"{line}\n" for line in lines)).step == 310


def test_a_decision_is_not_made_if_it_cannot_be_written(tmp_path: Path) -> None:
    """If the file fails, ``decide`` raises, the step is not counted, and nothing more is decided."""
    with bpac.open(tmp_path / "router.db", epsilon=0.1) as router:
        play(router, 20)
        router._store._writing.execute("PRAGMA query_only = 1")
        for _ in range(2):
            with pytest.raises(StoreError, match="router"):
                router.decide(0.3)
        assert router.step == 20
    with bpac.open(tmp_path / "router.db") as router:
        assert router.step == 20
        router.decide(0.3)


def test_one_process_owns_the_file(tmp_path: Path) -> None:
    """A second opening is refused while the first lasts."""
    with bpac.open(tmp_path / "router.db", epsilon=0.1), pytest.raises(StoreInUse):
        bpac.open(tmp_path / "router.db")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "does not exist: give epsilon"),
        ({"alpha": 0.1}, "give epsilon together with the other settings"),
        ({"epsilon": 0.1, "seed": 1}, "seed cannot be set"),
        ({"epsilon": 0.1, "journal": print}, "journal cannot be set"),
        ({"epsilon": 2.0}, "epsilon"),
    ],
)
def test_wrong_settings_leave_no_file(tmp_path: Path, settings: dict[str, object], message: str) -> None:
    """What cannot be opened is refused with a remedy before a file is made."""
    with pytest.raises(SettingsError, match=message):
        bpac.open(tmp_path / "router.db", **settings)  # type: ignore[arg-type]
    assert not (tmp_path / "router.db").exists()


def test_other_settings_are_another_promise(tmp_path: Path) -> None:
    """A file is opened with the settings it was made with, or with none."""
    path = tmp_path / "router.db"
    bpac.open(path, epsilon=0.1, policy="budget").close()
    bpac.open(path, epsilon=0.1, policy="budget").close()
    with pytest.raises(SettingsError, match=r"epsilon is 0\.1, not 0\.2"):
        bpac.open(path, epsilon=0.2, policy="budget")
    with pytest.raises(SettingsError, match="policy is"):
        bpac.open(path, epsilon=0.1)
    bpac.open(path).close()


def test_a_gateways_file_is_not_taken_for_a_routers(tmp_path: Path) -> None:
    """The journals of a gateway's routes are left alone."""
    store = open_store(f"sqlite:///{tmp_path / 'bpac.db'}")
    store.open_game("homework", "", "terms")
    store.close()
    with pytest.raises(StoreError, match="journals of a gateway"):
        bpac.open(tmp_path / "bpac.db", epsilon=0.1)


def test_an_empty_file_needs_epsilon(tmp_path: Path) -> None:
    """A file without a router, made by a start that failed, is started with epsilon only."""
    (tmp_path / "router.db").touch()
    with pytest.raises(SettingsError, match="holds no router yet"):
        bpac.open(tmp_path / "router.db")
    bpac.open(tmp_path / "router.db", epsilon=0.1).close()


def test_a_journal_that_lost_entries_is_refused(tmp_path: Path) -> None:
    """A file that no longer holds what was acknowledged is not gone on with."""
    path = tmp_path / "router.db"
    with bpac.open(path, epsilon=0.1) as router:
        play(router, 20)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM entries WHERE number > 10")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="restore the file from a copy"):
        bpac.open(path)


def test_history_is_fed_once(tmp_path: Path) -> None:
    """A program that warms its router up at every start is refused the second time, and nothing counts twice."""
    rows = [(0.5, 0.0)] * 20
    with bpac.open(tmp_path / "router.db", epsilon=0.1) as router:
        router.warm_start(rows)
    with bpac.open(tmp_path / "router.db") as router:
        assert router.labelled == 20
        with pytest.raises(InputError, match="20 rows of history already"):
            router.warm_start(rows)
        assert router.labelled == 20
        router.decide(0.3)


def test_history_that_fails_half_way_is_not_fed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash in the middle of a warm start leaves none of its rows in the file."""
    router = bpac.open(tmp_path / "router.db", epsilon=0.1)
    real, calls = router._route.learned, []

    def dying(row: Labelled) -> None:
        calls.append(row)
        if len(calls) == 11:
            raise KeyboardInterrupt
        real(row)

    monkeypatch.setattr(router._route, "learned", dying)
    with pytest.raises(KeyboardInterrupt):
        router.warm_start([(0.5, 0.0)] * 20)
    with pytest.raises(Interrupted):
        router.decide(0.3)
    router.close()
    with bpac.open(tmp_path / "router.db") as router:
        assert router.labelled == 0


def test_closing_waits_for_decisions_of_other_threads(tmp_path: Path) -> None:
    """Every decision that was returned is in the file, though another thread closed it meanwhile."""
    for number in range(5):
        router = bpac.open(tmp_path / f"{number}.db", epsilon=0.1)
        decided: list[int] = []

        def decide(router: bpac.Router = router, decided: list[int] = decided) -> None:
            with suppress(StoreError):
                while True:
                    decided.append(router.decide(0.3).step)

        threads = [threading.Thread(target=decide) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(decided) < 50:
            pass
        router.close()
        for thread in threads:
            thread.join()
        with bpac.open(tmp_path / f"{number}.db") as router:
            assert router.step >= max(decided)


def test_an_interrupt_after_the_commit_stops_the_router(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outcome that was written and not applied cannot be reported again: the file stays readable."""
    router = bpac.open(tmp_path / "router.db", epsilon=0.1)
    decision = router.decide(0.3)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(router, "_settle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            router.observe(decision, 0.0)
    with pytest.raises(Interrupted, match="open its file again"):
        router.observe(decision, 0.0)
    router.close()
    with bpac.open(tmp_path / "router.db") as router:
        assert router.owed == ()


def test_a_file_whose_first_opening_failed_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash while a new file is set up leaves nothing in it that could not be opened."""
    with monkeypatch.context() as patched:
        patched.setattr("bpac.saved_router.Opened", None)
        with pytest.raises(TypeError):
            bpac.open(tmp_path / "router.db", epsilon=0.1)
    bpac.open(tmp_path / "router.db", epsilon=0.2).close()


def test_a_failed_close_releases_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the last snapshot cannot be written, the error is raised, and the file can be opened again."""
    router = bpac.open(tmp_path / "router.db", epsilon=0.1)
    router.decide(0.3)
    router._store._writing.execute("PRAGMA query_only = 1")
    with pytest.raises(StoreError):
        router.close()
    bpac.open(tmp_path / "router.db").close()


def test_a_forgotten_router_releases_its_file(tmp_path: Path) -> None:
    """A router that is dropped without being closed does not lock its file for good."""
    router = bpac.open(tmp_path / "router.db", epsilon=0.1)
    router.decide(0.3)
    del router
    gc.collect()
    with bpac.open(tmp_path / "router.db") as router:
        assert router.step == 1


@pytest.mark.parametrize("started", [0, 30])
def test_a_copy_without_its_other_files_is_refused(tmp_path: Path, started: int) -> None:
    """After a crash the newest rounds are in files beside the first: a copy of it alone would forget them."""
    router = bpac.open(tmp_path / "router.db", epsilon=0.1)
    play(router, started)
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "router.db", tmp_path / "copy" / "router.db")
    router.close()
    with pytest.raises(StoreError, match=r"without .*router\.db\.head"):
        bpac.open(tmp_path / "copy" / "router.db", epsilon=0.1)


def test_a_forked_process_does_not_own_the_file(tmp_path: Path) -> None:
    """A worker that was forked with an open router is refused with a clear error, and the parent goes on."""
    with bpac.open(tmp_path / "router.db", epsilon=0.1) as router:
        router.decide(0.3)
        child = os.fork()
        if child == 0:
            try:
                router.decide(0.3)
            except StoreError as error:
                os._exit(0 if "open it after the fork" in str(error) else 2)
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert router.decide(0.3).step == 2


def test_a_trial_of_a_saved_router_is_not_saved(tmp_path: Path) -> None:
    """What is tried out leaves no trace in the file."""
    with bpac.open(tmp_path / "router.db", epsilon=0.1) as router:
        play(router.trial(), 30)
        assert router.step == 0


def test_a_file_from_before_a_default_changed_is_opened_with_the_same_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The router goes on as it began: the newer default applies to new files only."""
    with monkeypatch.context() as patch:
        patch.setitem(POLICIES, "portfolio", Portfolio(floor_fractions=()))
        with bpac.open(tmp_path / "r.db", epsilon=0.1) as router:
            router.observe(router.decide(0.3), 0.0)
    with bpac.open(tmp_path / "r.db", epsilon=0.1) as router:
        assert router.step == 1
        assert router.settings.policy == Portfolio(floor_fractions=())
    with pytest.raises(SettingsError, match=r"epsilon is 0\.1, not 0\.2"):
        bpac.open(tmp_path / "r.db", epsilon=0.2)
