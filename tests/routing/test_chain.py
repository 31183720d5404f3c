"""The hash chain of a journal: one head that was noted shows whether anything before it was changed."""

import hashlib
import json

import pytest

from bpac import Router
from bpac.errors import JournalError
from bpac.routing.journal.chain import chained, split_head
from bpac.routing.journal.entries import Entry, Resolved
from bpac.routing.journal.entry_lines import entry_to_json, read_journal


def journal(rounds: int = 20) -> tuple[list[Entry], list[str]]:
    """The entries of a router, and the lines of a file that holds them, chained."""
    entries: list[Entry] = []
    router = Router(0.1, seed=3, journal=entries.append)
    for number in range(rounds):
        router.observe(router.decide(number % 10 / 10), number % 7 / 7)
    return entries, [f"{line}\n" for line in chained(map(entry_to_json, entries), route="homework", terms="{}")]


ENTRIES, LINES = journal()


def test_heads_are_what_the_documentation_says() -> None:
    """Each head is the SHA-256 of the one before it and of the line without its head."""
    head = b""
    for line in LINES:
        recorded = json.loads(line)["head"]
        text = line.replace(f',"head":"{recorded}"', "").rstrip("\n")
        head = hashlib.sha256(head + text.encode()).digest()
        assert head.hex() == recorded


def test_a_chained_journal_is_a_journal() -> None:
    """It reads back as the entries that were written, whether they are chained or not."""
    assert list(read_journal(LINES)) == ENTRIES
    assert list(read_journal(f"{entry_to_json(entry)}\n" for entry in ENTRIES)) == ENTRIES


def test_no_line_can_be_changed_moved_removed_or_added() -> None:
    """Whatever is done to an entry in the middle, the journal is refused at that line."""
    at = next(at for at, line in enumerate(LINES) if '"loss":0.14' in line)
    forgeries = {
        "altered": [*LINES[:at], LINES[at].replace('"loss":0.14', '"loss":0.00'), *LINES[at + 1 :]],
        "moved": [*LINES[: at - 2], *LINES[at : at + 2], *LINES[at - 2 : at], *LINES[at + 2 :]],
        "removed": [*LINES[:at], *LINES[at + 1 :]],
        "twice": [*LINES[: at + 1], *LINES[at:]],
        "another game": [LINES[0].replace("homework", "HOMEWORK"), *LINES[1:]],
        "other settings": [LINES[0], LINES[1].replace('"epsilon":0.1', '"epsilon":0.2'), *LINES[2:]],
        "no hash": [*LINES[:at], f"{split_head(LINES[at])[0]}\n", *LINES[at + 1 :]],
        "no game": LINES[1:],
        "two games": [*LINES[:at], *LINES],
    }
    for name, forged in forgeries.items():
        with pytest.raises(JournalError, match=r"line \d+ (does not fit its hash|carries|names a game)"):
            assert list(read_journal(forged)), name


def test_a_cut_off_end_needs_a_noted_head() -> None:
    """A journal without its last lines is one that ended earlier; only a head noted later shows what is missing."""
    assert list(read_journal(LINES[:-4])) == ENTRIES[:-4]
    assert LINES[-1][-68:] not in "".join(LINES[:-4])


def test_a_line_that_was_rewritten_is_refused() -> None:
    """Another program may write the same values in other bytes; what it wrote does not fit the hash any more."""
    rewritten = [LINES[0], json.dumps(json.loads(LINES[1])) + "\n"]
    with pytest.raises(JournalError, match="line 2 was rewritten since it was exported"):
        list(read_journal(rewritten))


def test_deeply_nested_lines_are_refused() -> None:
    """A line that exhausts the parser is refused without a crash."""
    with pytest.raises(JournalError, match="line 1 is not JSON"):
        list(read_journal(['{"entry":"resolved","step":' + "[" * 100_000 + "\n"]))
    with pytest.raises(JournalError, match="line 1 is not JSON"):
        list(read_journal(['{"entry":"claim","step":' + "[" * 100_000 + "\n"]))


def test_the_text_of_a_line_is_split_off() -> None:
    """Only a head at the end of a line is one; its digits are lower case, so that a line has one form."""
    line = chained([entry_to_json(Resolved(3, 0.5))])
    *_, last = line
    text, head = split_head(last)
    assert (text, head) == (entry_to_json(Resolved(3, 0.5)), bytes.fromhex(last[-66:-2]))
    for other in (text, last.upper(), last + " ", last.replace('"head"', '"Head"')):
        assert split_head(other) == (other, None)
