"""Exported journals, as a gateway writes them, without a gateway."""

import json
from typing import Any

from bpac import Router
from bpac.routing.coins import CommittedCoins
from bpac.routing.journal.chain import game_text, next_head, split_head, with_head
from bpac.routing.journal.entries import CLAIM, REVEALED, Committed, Entry
from bpac.routing.journal.entry_lines import entry_to_json

ROUNDS, RESTART_AT = 300, 200


class Export:
    """The lines of an exported journal: entries with their heads, claims, and the keys of blocks that are over."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.keys: dict[int, bytes] = {}
        self.lines: list[str] = []
        self.head = b""
        self._block = 0
        self._chain(game_text(1, "homework", "", '{"draft": "small"}'))

    def write(self, entry: Entry) -> None:
        """Write an entry: the journal of a router."""
        self.entries.append(entry)
        self._chain(entry_to_json(entry))
        if isinstance(entry, Committed):
            if self._block:
                self._remark(REVEALED, first_step=self._block, key=self.keys[self._block].hex())
            self._block = entry.first_step

    def claim(self, router: Router) -> None:
        """Write what a gateway claims about its router."""
        certificate = {name: getattr(router.certificate(), name) for name in ("rounds", "lower", "upper", "confidence")}
        standing = {"step": router.step, "threshold": router.threshold, "certificate": certificate}
        self._remark(CLAIM, entries=len(self.entries), head=self.head.hex(), **standing)

    def _chain(self, text: str) -> None:
        self.head = next_head(self.head, text)
        self.lines.append(with_head(text, self.head))

    def _remark(self, kind: str, **values: Any) -> None:
        self.lines.append(json.dumps({"entry": kind, **values}, separators=(",", ":")))


def exported(rounds: int = ROUNDS, *, committed: bool = True) -> Export:
    """The export of a game with claims on the way, whose process was started again once."""
    export = Export()

    def coins() -> CommittedCoins | None:
        return CommittedCoins(export.keys) if committed else None

    router = Router(0.3, coins=coins(), journal=export.write)
    for number in range(rounds):
        if number == RESTART_AT:
            router = Router.rebuild(list(export.entries), coins=coins(), journal=export.write)
        decision = router.decide(number * 7 % 10 / 10)
        if decision.call_expert:
            router.observe(decision, float(number % 11 == 0))
        if number % 100 == 50:
            export.claim(router)
    return export


def rechained(lines: list[str]) -> list[str]:
    """The lines with a hash chain that fits them, as a forger would write it; claims get the heads they need."""
    head, forged = b"", []
    for line in lines:
        data = json.loads(line)
        if data["entry"] == CLAIM:
            forged.append(json.dumps(data | {"head": head.hex()}))
        elif data["entry"] == REVEALED:
            forged.append(line)
        else:
            text = split_head(line)[0]
            head = next_head(head, text)
            forged.append(with_head(text, head))
    return forged


def edited(lines: list[str], kind: str, number: int, **changes: Any) -> list[str]:
    """The lines with other values in one entry of a kind."""
    at = places(lines, kind)[number]
    text, head = split_head(lines[at])
    altered = json.dumps(json.loads(text) | changes, separators=(",", ":"))
    return [*lines[:at], altered if head is None else with_head(altered, head), *lines[at + 1 :]]


def without(lines: list[str], *kinds: str) -> list[str]:
    """The lines that are of none of these kinds."""
    return [line for line in lines if json.loads(line)["entry"] not in kinds]


def places(lines: list[str], kind: str) -> list[int]:
    """Where the lines of a kind are."""
    return [at for at, line in enumerate(lines) if json.loads(line)["entry"] == kind]
