"""Stores: where journals are kept, so that a gateway goes on after a crash as if nothing had happened."""

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from bpac.errors import SettingsError, StoreError, StoreInUse
from bpac.stores.memory import MemoryStore
from bpac.stores.private_files import place_of
from bpac.stores.sqlite.store import LOGS, SqliteStore
from bpac.stores.store import Claim, CoinKey, Game, Kept, KeptRound, Link, LostEntries, Store

__all__ = [
    "Claim",
    "CoinKey",
    "Game",
    "Kept",
    "KeptRound",
    "Link",
    "LostEntries",
    "MemoryStore",
    "SqliteStore",
    "Store",
    "StoreError",
    "StoreInUse",
    "files_of",
    "open_store",
]


def open_store(address: str, *, read_only: bool = False) -> Store:
    """The store at an address.

    Parameters
    ----------
    address: ``memory://``, or ``sqlite:///FILE`` (``sqlite:////FILE`` from the root); ``?sync=full`` makes every
        commit wait for the disk, so that not even a power failure loses an entry.
    read_only: look into the store of a gateway that may be running.

    >>> open_store("memory://").games()
    []
    """
    parts = urlsplit(address)
    if address == "memory://":
        if read_only:
            raise SettingsError("store: a journal in memory:// ends with its gateway; there is nothing to read")
        return MemoryStore()
    if parts.scheme != "sqlite" or parts.netloc or len(parts.path) < 2:
        raise SettingsError(f"store must be memory:// or sqlite:///FILE, got {_shown(address)!r}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    sync = options.pop("sync", "normal")
    if options or sync not in ("normal", "full"):
        raise SettingsError(f"store: after the ? only sync=normal or sync=full may stand, got {parts.query!r}")
    path = parts.path[1:]
    return SqliteStore.read_only(path) if read_only else SqliteStore(path, wait_for_disk=sync == "full")


def files_of(address: str) -> list[Path]:
    """The files of the store at an address, whether they are there or not.

    >>> [file.name for file in files_of("sqlite:///bpac.db")][:2]
    ['bpac.db', 'bpac.db-wal']
    """
    parts = urlsplit(address)
    if parts.scheme != "sqlite":
        return []
    path = place_of(parts.path[1:])
    return [Path(path + ending) for ending in ("", *LOGS, ".lock", ".head")]


def _shown(address: str) -> str:
    """An address in an error: what stands before an @ may be a password."""
    scheme, mark, rest = address.partition("://")
    return f"{scheme}://***@{rest.rpartition('@')[2]}" if mark and "@" in rest else address
