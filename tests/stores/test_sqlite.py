"""What only a file can do: be owned, outlive its process, and fail."""

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from bpac.errors import SettingsError
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Labelled
from bpac.routing.router import Router
from bpac.stores import SqliteStore, StoreError, StoreInUse, open_store
from bpac.stores.sqlite.writing.checkpoints import Checkpoints
from bpac.stores.sqlite.writing.migrations import APPLICATION, MIGRATIONS
from tests.stores.journals import play


def test_a_second_gateway_on_a_file_is_refused(tmp_path: Path) -> None:
    """It says why, also if it uses another name of the directory; when the first has ended it may start."""
    path = tmp_path / "bpac.db"
    (tmp_path / "link").symlink_to(tmp_path)
    first = SqliteStore(str(path))
    for name in ("bpac.db", "link/bpac.db"):
        with pytest.raises(StoreInUse, match=r"in use by process \d+: a journal has one writer"):
            SqliteStore(str(tmp_path / name))
    first.close()
    SqliteStore(str(path)).close()


def test_a_store_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    """A store can be read while its gateway writes; a reader cannot write."""
    address = f"sqlite:///{tmp_path / 'bpac.db'}"
    store = open_store(address)
    game, written, _ = play(store, 10)
    asyncio.run(store.durable())
    reader = open_store(address, read_only=True)
    assert [kept.entry for kept in reader.entries(game)] == written
    assert reader.secret == store.secret
    with pytest.raises(StoreError, match="for reading only"):
        reader.open_game("other", "", "{}")
    reader.close()
    store.close()


def test_durable_entries_survive_kills(tmp_path: Path) -> None:
    """Nothing that was reported durable is lost, and the journal has no gaps."""
    address = f"sqlite:///{tmp_path / 'bpac.db'}"
    rng = random.Random(5)
    seen = 0
    for _ in range(6):
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.stores.journals", address], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        for _ in range(rng.randint(1, 60)):
            seen = max(seen, int(child.stdout.readline()))
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split("\n")[:-1]
        child.wait()
        child.stdout.close()
        seen = max([seen, *map(int, rest)])
        store = open_store(address)
        (game,) = store.games()
        entries = [kept.entry for kept in store.entries(game)]
        store.close()
        steps = [entry.step for entry in entries if isinstance(entry, Decision)]
        assert steps == list(range(1, len(steps) + 1))
        assert len(steps) >= seen
        assert len(Router.rebuild(entries).owed) == len(steps)


@pytest.mark.parametrize(("every", "short"), [(0.005, True), (1000.0, False)])
def test_the_log_stays_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: float, short: bool) -> None:
    """However much is written, and while others read; without checkpoints it does not."""
    short_again = threading.Event()

    class Seen(Checkpoints):
        def _checkpoint(self, how: str) -> int:
            pages = super()._checkpoint(how)
            if how == "RESTART" or pages <= 50:
                short_again.set()
            return pages

    monkeypatch.setattr("bpac.stores.sqlite.store.Checkpoints", partial(Seen, every=every, most_pages=50))
    store = SqliteStore(str(tmp_path / "bpac.db"))
    game, written, _ = play(store, 3)
    before = len(written)

    async def run() -> None:
        for number in range(3000):
            store.append(game, Labelled((0.5,), 0.0), {})
            await store.durable()
            if number % 100 == 0:
                assert len(list(store.entries(game, before + number - 50 if number else 0))) > 0
            if number % 500 == 499 and short:
                # A busy machine may give the thread of the checkpoints no turn for long.
                short_again.clear()
                assert await asyncio.to_thread(short_again.wait, 60)

    asyncio.run(run())
    pages = (tmp_path / "bpac.db-wal").stat().st_size / 4096
    assert (pages < 3000) == short
    assert len(list(store.entries(game))) == before + 3000
    store.close()
    assert not (tmp_path / "bpac.db-wal").exists()  # all of it is in the file


@pytest.mark.parametrize("sync", ["", "?sync=full"])
def test_a_cancelled_waiter_does_not_affect_others(tmp_path: Path, sync: str) -> None:
    """A caller that is cancelled while waiting cancels no other; work of a loop that ended is done by the next."""
    store = open_store(f"sqlite:///{tmp_path / 'bpac.db'}{sync}")
    game, written, _ = play(store, 3)

    async def run() -> None:
        store.append(game, Labelled((0.5,), 0.0), {})
        leaving, staying = asyncio.create_task(store.durable()), asyncio.create_task(store.durable())
        await asyncio.sleep(0)
        leaving.cancel()
        await staying
        store.append(game, Labelled((0.5,), 0.0), {})

    asyncio.run(run())
    asyncio.run(store.durable())
    assert len(list(store.entries(game))) == len(written) + 2
    store.close()


@pytest.mark.parametrize("wait_for_disk", [False, True])
def test_a_write_that_fails_stops_the_store(tmp_path: Path, wait_for_disk: bool) -> None:
    """Those who wait get the error, nothing is accepted afterwards, and nothing of the failed commit is kept."""
    path = str(tmp_path / "bpac.db")
    store = SqliteStore(path, wait_for_disk=wait_for_disk)
    game, written, _ = play(store, 3)
    asyncio.run(store.durable())
    thief = sqlite3.connect(path)
    thief.execute("INSERT INTO entries VALUES (?, ?, NULL, '{}', '{}', x'', 0)", (game.number, len(written) + 1))
    thief.commit()
    thief.close()

    async def run() -> None:
        store.append(game, written[-1], {})
        with pytest.raises(StoreError, match=r"failed .* until the gateway is restarted"):
            await store.durable()
        with pytest.raises(StoreError, match="failed"):
            store.append(game, written[-1], {})
        with pytest.raises(StoreError, match="failed"):
            await store.durable()

    asyncio.run(run())
    store.close()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("CREATE TABLE recipes (name TEXT)", "another program"),
        (f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {len(MIGRATIONS) + 1}", "upgrade bpac"),
    ],
)
def test_files_of_other_programs_or_versions_are_refused(tmp_path: Path, script: str, said: str) -> None:
    """A database of another program or of a newer version is unchanged, and can be opened again."""
    path = tmp_path / "bpac.db"
    with sqlite3.connect(path) as other:
        other.executescript(script)
    other.close()
    for _ in range(2):
        with pytest.raises(StoreError, match=said):
            SqliteStore(str(path))


def test_files_that_are_no_database_are_refused(tmp_path: Path) -> None:
    """A text file, a place that cannot be written and a missing file each give an error."""
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at as if it were one" * 20)
    with pytest.raises(StoreError, match="cannot be used as a store"):
        SqliteStore(str(tmp_path / "text.db"))
    with pytest.raises(StoreError, match="give the store another place"):
        SqliteStore(str(tmp_path / "missing" / "bpac.db"))
    with pytest.raises(StoreError, match="does not exist"):
        open_store(f"sqlite:///{tmp_path / 'nothing.db'}", read_only=True)


@pytest.mark.parametrize(
    "address", ["", "bpac.db", "sqlite://", "sqlite:///", "mysql://x/y", "sqlite:///a?sync=maybe", "sqlite:///a?b=c"]
)
def test_invalid_addresses_are_refused(address: str) -> None:
    """Each error says what is allowed."""
    with pytest.raises(SettingsError, match="store"):
        open_store(address)
