"""The hash chain of a journal: each line carries a hash over all lines before it, so that every change is found.

1. The first line of an exported journal names the game. Its head is the SHA-256 of its text.
2. The head of every entry is the SHA-256 of the head before it (32 bytes), followed by the text of the entry.
3. The text of a line is the line without its head: ``{…}`` is written as ``{…,"head":"64 hexadecimal digits"}``.

One head that was noted therefore shows later whether anything before it was changed, removed, added or reordered. Lines
that are not entries (claims, revealed keys) are not part of the chain; a claim names the head it is about.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator

from bpac.errors import JournalError

# The kind of the line that names the game.
GAME = "game"
_HEAD = re.compile(r',"head":"([0-9a-f]{64})"}$')


def next_head(head: bytes, text: str) -> bytes:
    """The head after a line.

    Parameters
    ----------
    head: before it; nothing before the first line.
    text: of the line, without its own head.
    """
    return hashlib.sha256(head + text.encode()).digest()


def game_text(number: int, route: str, segment: str, terms: str) -> str:
    """The text of the line that names the game.

    >>> game_text(1, "homework", "", "{}")
    '{"entry":"game","number":1,"route":"homework","segment":"","terms":"{}"}'
    """
    game = {"entry": GAME, "number": number, "route": route, "segment": segment, "terms": terms}
    return json.dumps(game, separators=(",", ":"))


def with_head(text: str, head: bytes) -> str:
    """The line that carries its head.

    >>> with_head('{"entry":"resolved","step":3,"loss":0.5}', bytes(32))[-30:]
    '0000000000000000000000000000"}'
    """
    return f'{text[:-1]},"head":"{head.hex()}"}}'


def split_head(line: str) -> tuple[str, bytes | None]:
    """The text of a line and the head it carries, if any.

    >>> split_head(with_head('{"entry":"resolved","step":3,"loss":0.5}', bytes(32)))[0]
    '{"entry":"resolved","step":3,"loss":0.5}'
    """
    line = line.rstrip("\n")
    found = _HEAD.search(line)
    return (line, None) if found is None else (f"{line[: found.start()]}}}", bytes.fromhex(found[1]))


def chained(texts: Iterable[str], *, route: str = "", segment: str = "", terms: str = "") -> Iterator[str]:
    """The lines of a journal with their heads, for journals without a store; the first line names the game.

    Parameters
    ----------
    texts: the entries, as ``entry_to_json`` writes them.
    route, segment, terms: what the game is about.

    >>> [line[:24] for line in chained(['{"entry":"resolved","step":3,"loss":0.5}'], route="homework")]
    ['{"entry":"game","number"', '{"entry":"resolved","ste']
    """
    game = game_text(1, route, segment, terms)
    head = next_head(b"", game)
    yield with_head(game, head)
    for text in texts:
        head = next_head(head, text)
        yield with_head(text, head)


class Checker:
    """Follows the chain along the lines of a journal.

    A journal is chained if its first line names the game; then every entry must carry its head. Older journals have no
    heads at all, and cannot be checked.
    """

    def __init__(self) -> None:
        self.head: bytes | None = None
        self._lines = 0

    def game(self, text: str, head: bytes | None) -> None:
        """Check the line that names the game; ``JournalError`` if it is not the first or does not fit its hash."""
        if self._lines or head is None:
            raise JournalError("names a game: only the first line does, and it carries its hash")
        self.head = next_head(b"", text)
        self._compare(head)

    def entry(self, text: str, head: bytes | None) -> None:
        """Check the next entry; ``JournalError`` if it does not fit its hash."""
        if self.head is None:
            if head is not None:
                raise JournalError("carries a hash, and the line that names the game is missing")
            self._lines += 1
            return
        if head is None:
            raise JournalError("carries no hash, and the lines before it do")
        self.head = next_head(self.head, text)
        self._compare(head)

    def _compare(self, head: bytes) -> None:
        self._lines += 1
        # The chain goes on from what is written, so that one change is one error.
        computed, self.head = self.head, head
        if computed != head:
            raise JournalError("does not fit its hash: this line or one before it was changed, added or removed")
