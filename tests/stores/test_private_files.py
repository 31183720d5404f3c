"""The files of a store: only for their owner, whatever the umask, and never through a symbolic link."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bpac.errors import StoreError
from bpac.stores import SqliteStore, files_of, open_store
from bpac.stores.private_files import make_private
from tests.stores.journals import play

NAMES = ("bpac.db", "bpac.db-wal", "bpac.db-shm", "bpac.db.lock", "bpac.db.head")


@pytest.fixture(params=[0o000, 0o022, 0o077])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """A permissive and a strict umask."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    """The mode of each file."""
    return {path.name: path.lstat().st_mode & 0o777 for path in directory.iterdir()}


@pytest.mark.usefixtures("_umask")
def test_only_the_owner_can_read_a_store(tmp_path: Path) -> None:
    """Database, log, index of the log and lock are created for their owner only."""
    store = SqliteStore(str(tmp_path / "bpac.db"))
    play(store, 10)
    assert modes(tmp_path) == dict.fromkeys(NAMES, 0o600)
    store.close()
    assert set(modes(tmp_path).values()) == {0o600}


def test_files_that_others_may_read_are_made_private(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also those that a crash left beside the database; the log names them."""
    path = tmp_path / "bpac.db"
    SqliteStore(str(path)).close()
    for name in ("bpac.db", "bpac.db.lock", "bpac.db.head"):
        (tmp_path / name).chmod(0o644)
    (tmp_path / "bpac.db-wal").touch()
    (tmp_path / "bpac.db-wal").chmod(0o666)
    SqliteStore(str(path)).close()
    assert set(modes(tmp_path).values()) == {0o600}
    logged = {vars(record)["file"] for record in caplog.records if record.levelno == logging.WARNING}
    assert logged == {str(tmp_path / name) for name in ("bpac.db", "bpac.db.lock", "bpac.db.head", "bpac.db-wal")}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
def test_links_are_not_followed(tmp_path: Path, name: str, there: bool) -> None:
    """Their target is neither created nor written nor changed in its mode; the error says what to do."""
    victim = tmp_path / "victim"
    if there:
        victim.write_bytes(b"precious")
        victim.chmod(0o640)
    place = tmp_path / "store"
    place.mkdir()
    (place / name).symlink_to(victim)
    with pytest.raises(StoreError, match=r"is a symbolic link, and stores do not follow links: give the address of .*"):
        SqliteStore(str(place / "bpac.db"))
    assert victim.exists() is there
    if there:
        assert (victim.read_bytes(), victim.stat().st_mode & 0o777) == (b"precious", 0o640)
    # And nothing is left behind that would keep the next one out.
    (place / name).unlink()
    SqliteStore(str(place / "bpac.db")).close()


def test_a_link_is_not_read_either(tmp_path: Path) -> None:
    """``bpac status`` and ``export`` refuse a symbolic link."""
    SqliteStore(str(tmp_path / "bpac.db")).close()
    (tmp_path / "link.db").symlink_to(tmp_path / "bpac.db")
    with pytest.raises(StoreError, match="symbolic link"):
        open_store(f"sqlite:///{tmp_path / 'link.db'}", read_only=True)


def test_directories_may_be_links(tmp_path: Path) -> None:
    """As /var/lib and /tmp are on many systems; the store is the same by either name."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    SqliteStore(str(tmp_path / "link" / "bpac.db")).close()
    assert (tmp_path / "real" / "bpac.db").exists()
    assert files_of(f"sqlite:///{tmp_path / 'link' / 'bpac.db'}") == files_of(
        f"sqlite:///{tmp_path / 'real' / 'bpac.db'}"
    )


def test_what_cannot_be_made_private_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another owner that others may read, or something that is not a file: one line with the remedy."""
    path = tmp_path / "bpac.db"
    path.touch()
    path.chmod(0o644)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("bpac.stores.private_files.os.chmod", refuse)
    with pytest.raises(StoreError, match=r"can be read by others \(mode 644\) and cannot be made private .* chmod 600"):
        make_private(str(path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="not a regular file"):
        make_private(str(tmp_path / "pipe"))
    with pytest.raises(StoreError, match="cannot be written"):
        make_private(str(tmp_path / "nowhere" / "bpac.db"))
    make_private(str(tmp_path / "nowhere" / "bpac.db"), create=False)
