"""Audits of what a store exports, on the command line too; what audits find is in tests/routing/test_audit.py."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bpac.cli.program import main
from bpac.errors import JournalError
from bpac.routing.audit.audit import Audit, audit_journal
from bpac.routing.coins import COMMITTED_BLOCK, CommittedCoins
from bpac.routing.journal.chain import GAME, split_head
from bpac.routing.journal.entries import Entry
from bpac.routing.router import Router
from bpac.stores import Claim, Game, MemoryStore
from bpac.stores.coin_keys import CoinKeys
from bpac.stores.export import journal_lines
from tests.routing.exports import edited, without

ROUNDS, RESTART_AT = 300, 200


def kept(rounds: int = ROUNDS, *, committed: bool = True) -> tuple[MemoryStore, Game]:
    """A game with claims, whose gateway was restarted once."""
    store = MemoryStore()
    game = store.open_game("homework", "", '{"draft": "small"}')

    def journal(entry: Entry) -> None:
        store.append(game, entry, {})

    def coins() -> CommittedCoins | None:
        return CommittedCoins(CoinKeys(store, game)) if committed else None

    router = Router(0.3, coins=coins(), journal=journal)
    for number in range(rounds):
        if number == RESTART_AT:
            router = Router.rebuild([kept.entry for kept in store.entries(game)], coins=coins(), journal=journal)
        decision = router.decide(number * 7 % 10 / 10)
        if decision.call_expert:
            router.observe(decision, float(number % 11 == 0))
        if number % 100 == 50:
            store.save_snapshot(game, {}, Claim.of(router, router.snapshot()["entries"]))
    return store, game


STORE, GAME_KEPT = kept()
LINES = list(journal_lines(STORE, GAME_KEPT))


def whats(audit: Audit) -> str:
    """All differences, in words."""
    return "\n".join(found.what for found in audit.differences)


def test_an_honest_journal_has_no_difference() -> None:
    """Entries, claims and the coins of all ended blocks are recomputed; the rounds of the open block are counted."""
    audit = audit_journal(LINES)
    assert whats(audit) == ""
    assert (audit.rounds, audit.claims, audit.chained, audit.unproved) == (ROUNDS, 3, True, [])
    assert audit.entries == len(list(STORE.entries(GAME_KEPT)))
    assert audit.head == STORE.head(GAME_KEPT).hex()
    assert (audit.coins.verified, audit.coins.open, audit.coins.withheld) == (RESTART_AT, ROUNDS - RESTART_AT, 0)


def test_a_key_is_revealed_when_the_next_block_begins() -> None:
    """Without a restart, a key is revealed as soon as the next block begins."""
    store, game = kept(RESTART_AT - 1)
    assert not any('"revealed"' in line for line in journal_lines(store, game))
    store, game = kept(RESTART_AT + COMMITTED_BLOCK + 1)
    assert sum('"revealed"' in line for line in journal_lines(store, game)) == 2
    assert audit_journal(journal_lines(store, game)).coins.open == 1


def test_a_cut_off_end_is_found_by_what_was_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line: by a head, or by the claims of an earlier export; what was not cut off is still there."""
    whole, cut, early = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl", tmp_path / "early.jsonl"
    whole.write_text("\n".join(LINES) + "\n")
    cut.write_text("\n".join(LINES[:-150]) + "\n")
    early.write_text("\n".join(LINES[:-200]) + "\n")
    head = STORE.head(GAME_KEPT).hex()
    assert main(["audit", str(cut)]) == 0
    assert main(["audit", str(cut), "--head", head]) == 1
    assert f"the noted head {head} is not in this journal" in capsys.readouterr().out
    assert main(["audit", str(cut), "--claims", str(whole)]) == 1
    assert main(["audit", str(cut), "--claims", str(early)]) == 0
    assert main(["audit", str(whole), "--head", head.upper(), "--claims", str(cut), "--json"]) == 0
    capsys.readouterr()
    assert main(["audit", str(whole), "--head", head, "--claims", str(cut)]) == 0
    printed = capsys.readouterr().out
    assert f"keep it to detect later changes: {head}" in printed
    assert "heads given with --head or --claims: 3 found" in printed
    assert f"coins: {RESTART_AT} verified; {ROUNDS - RESTART_AT} can be verified when" in printed
    with pytest.raises(SystemExit):
        main(["audit", str(whole), "--head", "abc"])
    assert "64 hexadecimal digits" in capsys.readouterr().err
    assert main(["audit", str(whole), "--claims", str(tmp_path / "nothing")]) == 2
    (tmp_path / "none.jsonl").write_text(LINES[0] + "\n")
    assert main(["audit", str(whole), "--claims", str(tmp_path / "none.jsonl")]) == 2
    assert "claims that carry a head are missing" in capsys.readouterr().err


def test_audits_say_what_old_journals_do_not_prove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without hashes or commitments numbers are recomputed; the audit says what is not proved, or fails if strict."""
    store, game = kept(60, committed=False)
    lines = list(journal_lines(store, game))
    audit = audit_journal(lines)
    assert (audit.differences, audit.chained, audit.coins.uncommitted) == ([], True, 60)
    assert "did not commit to the coins of 60 rounds" in audit.unproved[0]
    old = [split_head(line)[0] for line in without(lines, GAME, "claim")]
    path = tmp_path / "old.jsonl"
    path.write_text("\n".join(old) + "\n")
    assert main(["audit", str(path)]) == 0
    assert "not proved: it has no hash chain" in capsys.readouterr().out
    assert main(["audit", str(path), "--strict", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["differences"], found["chained"], found["head"], len(found["unproved"])) == (
        [],
        False,
        None,
        2,
    )
    # Hashes cannot be taken from some lines only.
    assert "carries no hash" in whats(audit_journal([*lines[:10], *old[9:]]))
    assert "the line that names the game is missing" in whats(audit_journal(lines[1:]))


def test_every_flipped_bit_of_an_export_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever it is, in one line and without a traceback."""
    store, game = kept(12)
    other = Router.rebuild([kept.entry for kept in store.entries(game)], coins=CommittedCoins(CoinKeys(store, game)))
    store.append(game, _commitment(other), {})
    lines = list(journal_lines(store, game))
    assert any('"revealed"' in line for line in lines)
    whole = ("\n".join(lines) + "\n").encode()
    path = tmp_path / "journal.jsonl"
    for at in range(0, len(whole), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        if at % 300 == 0:  # as it is typed
            assert main(["audit", str(path)]) != 0
            assert capsys.readouterr().err.count("\n") <= 1
            continue
        try:
            with path.open(encoding="utf-8") as file:
                differences = audit_journal(file).differences
        except (JournalError, UnicodeDecodeError):
            continue
        # Within a claim a number may be written in another way.
        assert differences or whole[at : at + 1] == b"e", whole[at - 20 : at + 20]


def _commitment(router: Router) -> Entry:
    entries: list[Entry] = []
    router._journal = entries.append
    router.decide(0.5)
    return entries[0]


def test_the_program_in_the_documentation_checks_a_journal(tmp_path: Path) -> None:
    """The program in the documentation finds the same head as the audit, and stops at a line that was changed."""
    page = (Path(__file__).parents[3] / "docs" / "audit.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)

    def run(lines: list[str]) -> "subprocess.CompletedProcess[str]":
        (tmp_path / "journal.jsonl").write_text("\n".join(lines) + "\n")
        words = [sys.executable, "-W", "ignore", "-c", program]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run(LINES).stdout == f"head to note: {STORE.head(GAME_KEPT).hex()}\n"
    assert "AssertionError" in run(edited(LINES, "resolved", 11, loss=0.5)).stderr
