"""Old entries of a journal in Redis are moved to files while gateways use it, by the replica that folds the game.

1. A *point* is a copy of a snapshot, which Redis keeps beside the latest one. When enough entries have followed it, the
   entries up to it are archived, and the next snapshot is the next point. So nothing is computed a second time: the
   state that takes the place of the entries is the one that was published.
2. The file is complete, read back and synchronised with the disk before one script cuts the entries. The script checks
   the token of the folder, and how much was archived before. After a crash between the two, the entries are in both
   places; the next folder writes the same range again, under the same name.
3. The lines of the file must lead to the head of the hash chain that was published with the point.
4. Nothing is cut if anything fails. The stream grows until it works again.
"""

import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.json import decode

from bpac.errors import StoreError
from bpac.routing.journal.chain import split_head
from bpac.stores.export import begun_block, journal_lines
from bpac.stores.line_files import PARQUET, read_lines, write_lines
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Archived, Game

# Lines after which the thread that writes a file pauses, and for how many seconds.
LINES, PAUSE = 40, 0.001


class NotCut(StoreError):
    """A file was not needed after all: another replica folds the game, or has archived it, or this one stops."""


class ArchivedRange(NamedTuple):
    """Entries that were moved to a file.

    Parameters
    ----------
    file: its name.
    first, last: numbers of the first and the last entry.
    """

    file: str
    first: int
    last: int


class RedisArchives:
    """The archives of one game; its methods wait.

    Parameters
    ----------
    store: where the journal is.
    game: the game.

    Attributes
    ----------
    stopped: set to end what is being written.
    """

    def __init__(self, store: RedisStore, game: Game) -> None:
        self.stopped = False
        self._store = store
        self._game = game
        self._names = store.of(game)

    def due_at(self, keep: int) -> int:
        """The number of entries that the journal needs before more of it is archived; 0 if a snapshot must come first.

        Parameters
        ----------
        keep: the number of latest entries that stay in Redis at least.
        """
        command, names, cut = self._store.client.command, self._names, self._cut_before()
        point = self._point()
        if point is None or point["entries"] <= cut:  # more may have been archived by hand
            command("COPY", names.snapshot, names.point, "REPLACE")
            point = self._point()
        return 0 if point is None or point["entries"] <= cut else point["entries"] + keep

    def archive(self, folder: Path, token: int) -> ArchivedRange:
        """Move the entries up to the point to a file; if this raises, nothing was cut.

        Parameters
        ----------
        folder: where the file is written.
        token: of the folder of the game, which must still hold its lease.
        """
        point, cut = self._point(), self._cut_before()
        if point is None:
            raise StoreError(f"game {self._game.number} has no snapshot to archive behind")
        last, head = point["entries"], bytes.fromhex(point["head"])
        name = f"game-{self._game.number}-entries-{cut + 1}-{last}-{head.hex()[:12]}{PARQUET}"
        block = self._written(folder / name, cut, last, head)
        archived = Archived(last, head, point["state"], block, name)
        self._cut(archived, cut, token)
        return ArchivedRange(name, cut + 1, last)

    def _point(self) -> dict[str, Any] | None:
        text = self._store.client.command("GET", self._names.point)
        return None if text is None else decode(text)

    def _cut_before(self) -> int:
        before = self._store.archived(self._game)
        return 0 if before is None else before.entries

    def _written(self, path: Path, cut: int, last: int, head: bytes) -> str:
        """Write the file; the latest entry in it that began a block of coins."""
        before = self._store.archived(self._game)
        if (0 if before is None else before.entries) != cut:
            raise NotCut(f"game {self._game.number} was archived by another command at the same moment")
        lines = _Lines(journal_lines(self._store, self._game, last), "" if before is None else before.block)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another folder, which has lost its lease, may be writing the same file.
        unfinished = path.with_name(f"unfinished-{secrets.token_hex(6)}-{path.name}")
        try:
            write_lines(unfinished, self._paced(lines), PARQUET)
            if lines.head != head:
                raise StoreError(f"the journal of game {self._game.number} is not what was published: nothing was cut")
            digest = hashlib.sha256()
            for line in self._paced(read_lines(unfinished, PARQUET)):
                digest.update(line.encode())
            if digest.digest() != lines.digest.digest():
                raise StoreError(f"{path} could not be read back as it was written: nothing was cut")
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        return lines.block

    def _paced(self, lines: Iterable[str]) -> Iterator[str]:
        """The same lines, with pauses: requests are answered by the same process."""
        for number, line in enumerate(lines, start=1):
            yield line
            if number % LINES == 0:
                if self.stopped:
                    raise NotCut("the gateway stops")
                time.sleep(PAUSE)

    def _cut(self, archived: Archived, before: int, token: int) -> None:
        names, values = self._names, {**archived._asdict(), "head": archived.head.hex()}
        claims = sum(claim.entries <= archived.entries for claim in self._store.claims(self._game))
        keys = [names.state, names.journal, names.archived, names.claims, names.point, names.keys]
        numbers = (archived.entries, before, json.dumps(values), claims, token, self._first_needed(archived))
        status = self._store.client.run("cut_journal", keys, *numbers)
        if status != 1:
            why = "another replica folds it" if status == -1 else "it was archived by another command meanwhile"
            raise NotCut(f"game {self._game.number}: {why}, so nothing was cut")

    def _first_needed(self, archived: Archived) -> int:
        """The first step whose coin's key is still needed: its block is open, or a loss of it may be reported."""
        block = begun_block(archived.block)
        latest: dict[str, Any] = (self._store.snapshot(self._game) or archived.snapshot)["router"]["state"]
        waiting: list[int] = [decision[0] for kind in ("owed", "given_up") for decision in latest[kind]]
        return min([0 if block is None else block.first_step, *waiting])


class _Lines:
    """Lines of a journal on their way to a file: what they lead to is known when they have passed."""

    def __init__(self, lines: Iterator[str], block: str) -> None:
        self._lines = lines
        self.block = block
        self.head = b""
        self.digest = hashlib.sha256()

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            text, head = split_head(line)
            if head is not None and not text.startswith('{"entry":"claim"'):
                self.head = head
            if begun_block(text) is not None:
                self.block = text
            self.digest.update(line.encode() + b"\n")
            yield line
