"""What an audit finds: forgers know how the hash chain works, and write it anew."""

import json
from collections.abc import Callable

import pytest

from bpac.errors import InputError, JournalError
from bpac.routing.audit.audit import Audit, audit_journal, claimed_heads
from bpac.routing.coins import COMMITTED_BLOCK
from bpac.routing.journal.chain import GAME, chained, split_head
from bpac.routing.journal.entry_lines import entry_to_json
from bpac.routing.router import Router
from tests.routing.exports import RESTART_AT, ROUNDS, edited, exported, places, rechained, without

Forge = Callable[[list[str]], list[str]]
EXPORT = exported()
LINES = EXPORT.lines


def whats(audit: Audit) -> str:
    """All differences, as text."""
    return "\n".join(found.what for found in audit.differences)


def test_an_honest_journal_has_no_difference() -> None:
    """Entries, claims and all coins of blocks that are over are computed again; the open block is counted."""
    audit = audit_journal(LINES)
    assert whats(audit) == ""
    assert (audit.rounds, audit.claims, audit.chained, audit.unproved) == (ROUNDS, 3, True, [])
    assert (audit.entries, audit.head) == (len(EXPORT.entries), EXPORT.head.hex())
    assert (audit.coins.verified, audit.coins.open, audit.coins.withheld) == (RESTART_AT, ROUNDS - RESTART_AT, 0)


def _decided(lines: list[str]) -> list[dict[str, object]]:
    return [json.loads(lines[at]) for at in places(lines, "decided")]


def _kept_draft(lines: list[str]) -> int:
    return next(at for at, entry in enumerate(_decided(lines)) if not entry["call_expert"] and at < RESTART_AT)


def _audited(lines: list[str]) -> int:
    return next(at for at, entry in enumerate(_decided(lines)) if entry["propensity"] != 1.0 and entry["call_expert"])


def _swapped(lines: list[str]) -> list[str]:
    at = next(at for at in places(lines, "resolved") if at + 1 in places(lines, "decided"))
    return [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]


FORGERIES: dict[str, tuple[Forge, str]] = {
    "one altered loss": (lambda lines: edited(lines, "resolved", 11, loss=0.5), "does not fit its hash"),
    "one altered setting": (
        lambda lines: [lines[0], lines[1].replace('"max_owed":4096', '"max_owed":4095'), *lines[2:]],
        "does not fit its hash",
    ),
    "another game": (lambda lines: [lines[0].replace("small", "large"), *lines[1:]], "does not fit its hash"),
    "an entry left out": (lambda lines: [*lines[:-2], lines[-1]], "hash"),
    "entries reordered": (_swapped, "does not fit its hash"),
    "a claim about another head": (lambda lines: edited(lines, "claim", 1, head="0" * 64), "claimed head"),
    "a coin that was changed": (
        lambda lines: rechained(edited(lines, "decided", _kept_draft(lines), call_expert=True, serve_draft=False)),
        "the coin of step",
    ),
    "an audit that was not made": (
        lambda lines: rechained(edited(lines, "decided", _audited(lines), call_expert=False, serve_draft=True)),
        "",
    ),
    "a key that was chosen afterwards": (
        lambda lines: edited(lines, "revealed", 0, key="ab" * 32),
        "this key is not the one that line 3 committed to",
    ),
    "a key that is too short": (lambda lines: edited(lines, "revealed", 0, key="x"), "this key is not the one"),
    "a key that is a number": (lambda lines: edited(lines, "revealed", 0, key=3), "this key is not the one"),
    "a key in another form": (
        lambda lines: edited(lines, "revealed", 0, key=EXPORT.keys[1].hex().upper()),
        "this key is not the one",
    ),
    "a key of another block": (
        lambda lines: edited(lines, "revealed", 0, first_step=2),
        "does not belong to the block that has just ended",
    ),
    "a key that is withheld": (lambda lines: without(lines, "revealed"), "is not revealed, although the block is over"),
    "a commitment that was chosen afterwards": (
        lambda lines: rechained(edited(lines, "committed", 0, digest="ab" * 32)),
        "this key is not the one that line 3 committed to",
    ),
    "a commitment left out": (
        lambda lines: rechained([line for at, line in enumerate(lines) if at != places(lines, "committed")[1]]),
        "does not belong to the block that has just ended",
    ),
    "losses invented, claims kept": (
        lambda lines: rechained([line.replace('"loss":1.0', '"loss":0.0') for line in lines]),
        "threshold",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_found(name: str) -> None:
    """Each is reported, although the forger knows the format and writes hashes that fit where that helps."""
    forge, says = FORGERIES[name]
    audit = audit_journal(forge(LINES))
    assert audit.differences
    assert says in whats(audit)


def test_rounds_after_the_end_of_a_block_have_no_coins_that_were_committed_to() -> None:
    """A commitment fixes the coins of one block, and not of the rounds after it."""
    lines = exported(RESTART_AT + COMMITTED_BLOCK + 20).lines
    at = places(lines, "committed")[2]
    forged = rechained([line for number, line in enumerate(lines) if number not in (at, at + 1)])
    assert "comes after the end of the block that was committed to" in whats(audit_journal(forged))


def test_a_key_is_revealed_when_the_next_block_begins() -> None:
    """A block that is full is over; the coins of the next one are still secret."""
    lines = exported(RESTART_AT + COMMITTED_BLOCK + 1).lines
    assert len(places(lines, "revealed")) == 2
    assert audit_journal(lines).coins.open == 1


def test_a_journal_that_was_rewritten_as_a_whole_is_found_by_a_noted_head() -> None:
    """A journal that is rewritten from the first entry on is consistent, and has none of the heads noted before."""
    forged = exported().lines  # other coins, and so another journal
    assert whats(audit_journal(forged)) == ""
    for noted in ([EXPORT.head.hex()], claimed_heads(LINES)):
        assert "is not in this journal" in whats(audit_journal(forged, noted))
        honest = audit_journal(LINES, noted)
        assert (honest.differences, honest.noted) == ([], len(list(noted)))


def test_a_journal_without_hashes_and_commitments_is_said_to_prove_less() -> None:
    """Its numbers are computed again, and the audit says what they do not show."""
    lines = exported(60, committed=False).lines
    audit = audit_journal(lines)
    assert (audit.differences, audit.chained, audit.coins.uncommitted) == ([], True, 60)
    assert "did not commit to the coins of 60 rounds" in audit.unproved[0]
    plain = [split_head(line)[0] for line in without(lines, GAME, "claim")]
    audit = audit_journal(plain)
    assert (audit.differences, audit.chained, audit.head, len(audit.unproved)) == ([], False, None, 2)
    old_claim = json.dumps({"entry": "claim", **_claim(lines)})
    assert audit_journal([*plain, old_claim]).claims == 1  # without a head to compare
    # Hashes cannot be missing from some lines only.
    assert "carries no hash" in whats(audit_journal([*lines[:10], *plain[9:]]))
    assert "the line that names the game is missing" in whats(audit_journal(lines[1:]))


def _claim(lines: list[str]) -> dict[str, object]:
    claim: dict[str, object] = json.loads(lines[places(lines, "claim")[0]])
    return {name: value for name, value in claim.items() if name not in ("entry", "head")}


def test_an_entry_that_no_router_writes_ends_the_audit() -> None:
    """What follows such an entry proves nothing; everything before it was checked."""
    at = places(LINES, "decided")[20]
    audit = audit_journal(rechained([*LINES[:at], *LINES[at + 1 :]]))
    assert "an entry is missing" in whats(audit) or "a decision is missing" in whats(audit)
    assert audit.rounds <= 21


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "the journal is empty: nothing can be audited"),
        (LINES[:1], "the journal is empty"),
        (["{}"], "line 1 is not a journal entry.*bpac audit reads what bpac export wrote"),
        ([LINES[0], LINES[2]], "line 2: entry 1 must be the opened entry"),
        (['{"entry":"claim","entries":3}', *LINES], "line 1 is not a journal entry, and comes before the first"),
    ],
)
def test_anything_but_a_journal_is_refused(lines: list[str], says: str) -> None:
    """An empty file, another file, and a journal without its beginning cannot be audited at all."""
    with pytest.raises(JournalError, match=says):
        audit_journal(lines)


def test_claims_without_heads_cannot_be_compared() -> None:
    """An export of an older version has none."""
    with pytest.raises(InputError, match="claims that carry a head are missing"):
        claimed_heads(['{"entry":"claim","entries":3}'])


def _archived_at(lines: list[str], at: int, **changes: object) -> list[str]:
    """The lines with one that says that all entries before it are in an archive."""
    entries = [json.loads(line) for line in lines[:at] if json.loads(line)["entry"] not in (GAME, "claim", "revealed")]
    heads = [head for _, head in map(split_head, lines[:at]) if head is not None]
    values = {"entry": "archived", "entries": len(entries), "head": heads[-1].hex(), "file": "archive.jsonl", **changes}
    return [*lines[:at], json.dumps(values), *lines[at:]]


def test_an_archive_and_the_rest_are_audited_as_one_journal() -> None:
    """A line between them says what the archive has; another number or head is a difference, and its lack an error."""
    at = places(LINES, "decided")[40]
    assert whats(audit_journal(_archived_at(LINES, at))) == ""
    for changes in ({"entries": 3}, {"head": "0" * 64}):
        assert "are archived in archive.jsonl" in whats(audit_journal(_archived_at(LINES, at, **changes)))
    rest = _archived_at(LINES, at)[at:]
    with pytest.raises(JournalError, match="give the archives in order before this file"):
        audit_journal([LINES[0], *rest])


def test_an_audit_says_what_a_round_is() -> None:
    """From the terms in the first line; terms that cannot be read, or that are none, are about requests."""
    lines: list[str] = []
    router = Router(0.1, seed=1, journal=lambda entry: lines.append(entry_to_json(entry)))
    router.observe(router.decide(0.5), 0.0)
    of_episodes = '{"episode": {"by": "user"}}'
    for terms, unit in ((of_episodes, "episode"), ("{}", "request"), ("[", "request"), ("7", "request")):
        assert audit_journal(chained(lines, terms=terms)).unit == unit
