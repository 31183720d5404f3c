"""Stores: where journals are kept, so that a gateway continues after a crash where it stopped."""

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from bpac.errors import SettingsError, StoreError, StoreInUse
from bpac.stores.memory import MemoryStore
from bpac.stores.private_files import place_of
from bpac.stores.redis.server.address import is_redis, read_address
from bpac.stores.sqlite.reading.read_only import ReadOnlySqliteStore
from bpac.stores.sqlite.store import LOGS, SqliteStore
from bpac.stores.store import Claim, CoinKey, Game, Link, LostEntries, Store, StoredEntry, StoredRound

__all__ = [
    "Claim",
    "CoinKey",
    "Game",
    "Link",
    "LostEntries",
    "MemoryStore",
    "ReadOnlySqliteStore",
    "SqliteStore",
    "Store",
    "StoreError",
    "StoreInUse",
    "StoredEntry",
    "StoredRound",
    "files_of",
    "open_store",
]


def open_store(address: str, *, read_only: bool = False) -> Store:
    """The store at an address.

    Parameters
    ----------
    address: ``memory://``, or ``sqlite:///FILE`` (``sqlite:////FILE`` from the root); ``?sync=full`` makes every
        commit wait for the disk, so that not even a power failure loses an entry. Or ``redis://HOST:PORT/DB`` and its
        relatives (``bpac.stores.redis.server.address``), for games that several gateways share.
    read_only: whether to open the store for reading only, also while a gateway writes to it (default: false).

    >>> open_store("memory://").games()
    []
    """
    if is_redis(address):
        from bpac.stores.redis.store import RedisStore  # noqa: PLC0415  # redis-py is optional

        return RedisStore(read_address(address), read_only=read_only)
    parts = urlsplit(address)
    if address == "memory://":
        if read_only:
            raise SettingsError("store: memory:// keeps no journals after the gateway stops; use sqlite:///FILE")
        return MemoryStore()
    if parts.scheme != "sqlite" or parts.netloc or len(parts.path) < 2:
        raise SettingsError(f"store must be memory://, sqlite:///FILE or redis://HOST, got {_shown(address)!r}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    sync = options.pop("sync", "normal")
    if options or sync not in ("normal", "full"):
        raise SettingsError(f"store: after the ? must be sync=normal or sync=full, got {parts.query!r}")
    path = parts.path[1:]
    return ReadOnlySqliteStore(path) if read_only else SqliteStore(path, wait_for_disk=sync == "full")


def files_of(address: str) -> list[Path]:
    """The files of the store at an address, whether they exist or not.

    >>> [file.name for file in files_of("sqlite:///bpac.db")][:2]
    ['bpac.db', 'bpac.db-wal']
    """
    parts = urlsplit(address)
    if parts.scheme != "sqlite":
        return []
    path = place_of(parts.path[1:])
    return [Path(path + ending) for ending in ("", *LOGS, ".lock", ".head")]


def _shown(address: str) -> str:
    """An address for an error message, without the part before an @, which may be a password."""
    scheme, mark, rest = address.partition("://")
    return f"{scheme}://***@{rest.rpartition('@')[2]}" if mark and "@" in rest else address
