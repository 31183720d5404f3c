"""Audits: thresholds, certificate, hash chain and coins, computed again from an exported journal and nothing else.

1. Every line is checked against the hash chain (``journal/chain.py``).
2. Every decision is made again by the rule (``rule.py``), on the threshold and rate that were in force when its query
   arrived (``terms.py``); then the entry is applied to a state that starts empty.
3. Learned scores are fitted again to the rounds before them, and drafts are scored again (``scores.py``).
4. Coins are computed again once the key of their block is revealed (``coins.py``).
5. Every claim is compared with the threshold and the certificate of that state.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bpac.errors import InputError, JournalError
from bpac.routing.audit.coins import CoinChecks, CoinCounts
from bpac.routing.audit.scores import learned_differences
from bpac.routing.audit.terms import TermsInForce
from bpac.routing.decision import Decision
from bpac.routing.journal.chain import GAME, Checker, split_head
from bpac.routing.journal.entries import ARCHIVED, CLAIM, REVEALED, Committed, Entry, Learned
from bpac.routing.journal.entry_lines import entry_from_json, remark_from_json
from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.journal.units import Unit, unit_of
from bpac.routing.route import Route


@dataclass(frozen=True, slots=True)
class Difference:
    """A value in a journal that differs from what follows from the entries before it.

    Parameters
    ----------
    line: of the journal.
    what: which value.
    recorded, computed: the value in the journal, and the one that follows.
    """

    line: int
    what: str
    recorded: Any
    computed: Any


@dataclass(slots=True)
class Audit:
    """The result of an audit.

    Parameters
    ----------
    rounds: decisions whose threshold and probabilities were computed again.
    claims: claims of the gateway whose threshold and certificate were computed again.
    differences: values that differ.
    threshold, certificate: at the end of the journal.
    owed: rounds without an outcome, which count as loss 1.
    forfeits: rounds given up, by cause; they count as loss 1, too.
    chained: whether the lines carry a hash chain; without it nothing shows that they are as they were written.
    entries: how many entries there are.
    head: head of the hash chain at the end of the journal, to be noted and given to the next audit.
    noted: how many heads that were noted earlier are in the journal.
    coins: how many rounds have coins that were computed again.
    answered: how many queries each model of a cascade answered, by stage; empty for a pair.
    unit: what a round is: a request, or an episode of several requests that follow one decision.
    """

    rounds: int = 0
    claims: int = 0
    differences: list[Difference] = field(default_factory=list)
    threshold: float = 0.0
    certificate: dict[str, Any] = field(default_factory=dict)
    owed: int = 0
    forfeits: dict[str, int] = field(default_factory=dict)
    chained: bool = False
    entries: int = 0
    head: str | None = None
    noted: int = 0
    coins: CoinCounts = field(default_factory=CoinCounts)
    answered: dict[str, int] = field(default_factory=dict)
    unit: Unit = "request"

    @property
    def unproved(self) -> list[str]:
        """What this journal cannot prove."""
        lacking = []
        if not self.chained:
            lacking.append("it has no hash chain, so changes cannot be detected")
        if self.coins.uncommitted:
            lacking.append(
                f"it did not commit to the coins of {self.coins.uncommitted} rounds beforehand, so whether they are "
                "random cannot be checked"
            )
        return lacking


class _Journal:
    """The journal that is audited, line by line."""

    def __init__(self, noted: Iterable[str]) -> None:
        self.audit = Audit()
        self.route: Route | None = None
        self._terms: TermsInForce | None = None
        self._chain = Checker()
        self._coins = CoinChecks()
        self.noted = set(noted)

    def read(self, line: str, number: int) -> None:
        """Check a line; ``JournalError`` if nothing after it can be checked."""
        remark = remark_from_json(line)
        if remark is not None and remark[0] != GAME:
            self._remark(*remark, number)
            return
        text, head = split_head(line)
        try:
            (self._chain.entry if remark is None else self._chain.game)(text, head)
        except JournalError as error:
            self.differ(number, str(error))
        if self._chain.head is not None:
            self.audit.chained = True
            self.noted.discard(self._chain.head.hex())
        if remark is None:
            self._entry(entry_from_json(text, number), number)
        else:
            self.audit.unit = unit_of(str(remark[1].get("terms")))

    def _entry(self, entry: Entry, number: int) -> None:
        if self.route is None or self._terms is None:
            self.route = opened(entry)
            self._terms = TermsInForce(self.route)
            return
        if isinstance(entry, Decision):
            self.audit.rounds += 1
            found = self._terms.differences(entry)
            self.audit.differences += [Difference(number, *difference) for difference in found]
        elif isinstance(entry, Learned):
            found = learned_differences(self.route, entry)
            self.audit.differences += [Difference(number, *difference) for difference in found]
        follow(self.route, [entry])
        self._terms.followed(entry)
        if isinstance(entry, Decision):
            self._differences(self._coins.decided(entry, number))
        elif isinstance(entry, Committed):
            self._differences(self._coins.committed(entry, number))

    def _remark(self, kind: str, values: Mapping[str, Any], number: int) -> None:
        if kind == ARCHIVED:
            self._archived(values, number)
            return
        if self.route is None:
            raise JournalError(f"line {number} is not a journal entry, and comes before the first")
        if kind == REVEALED:
            self._differences(self._coins.revealed(values, number))
        else:
            _check_claim(self.audit, self.route, self._chain.head, values, number)

    def _archived(self, values: Mapping[str, Any], number: int) -> None:
        """Check that the lines before are all those that were archived."""
        wanted = f"the first {values.get('entries')} entries are archived in {values.get('file')}"
        if self.route is None:
            raise JournalError(f"line {number} says that {wanted}: give the archives in order before this file")
        head = None if self._chain.head is None else self._chain.head.hex()
        if (values.get("entries"), values.get("head")) != (self.route.entries, head):
            self.differ(number, f"{wanted}, and the lines before it end with entry {self.route.entries}, or differ")

    def end(self) -> Audit:
        """The result."""
        self._differences(self._coins.end())
        audit, route = self.audit, self.route
        if route is None:
            raise JournalError("the journal is empty: nothing can be audited")
        audit.certificate = _certificate(route)
        audit.threshold = route.bettor.threshold
        audit.owed, audit.forfeits = len(route.owed), dict(route.forfeits)
        audit.answered = {str(stage): route.answered[stage] for stage in range(1, route.stages + 1)}
        audit.entries, audit.coins = route.entries, self._coins.counts
        audit.head = None if self._chain.head is None else self._chain.head.hex()
        return audit

    def differ(self, number: int, what: str) -> None:
        """Add a difference to the result."""
        self.audit.differences.append(Difference(number, what, None, None))

    def _differences(self, found: Iterator[tuple[int, str]]) -> None:
        for number, what in found:
            self.differ(number, what)


def audit_journal(lines: Iterable[str], noted: Iterable[str] = ()) -> Audit:
    """Compute again what a journal claims; ``JournalError`` if it cannot be read as one at all.

    Parameters
    ----------
    lines: the journal, as ``bpac export`` wrote it.
    noted: heads of its hash chain that were noted earlier; each must be in it still.
    """
    noted = set(noted)
    journal = _Journal(noted)
    number = 0
    for number, line in enumerate(lines, start=1):
        try:
            journal.read(line, number)
        except JournalError as error:
            if journal.route is None:
                where = "" if str(error).startswith("line ") else f"line {number}: "
                raise JournalError(f"{where}{error}; bpac audit reads what bpac export wrote") from error
            # What follows an entry that no router can have written cannot be checked.
            journal.differ(number, str(error))
            break
    for head in sorted(journal.noted):
        journal.differ(number, f"the noted head {head} is not in this journal: it was changed or cut off before it")
    audit = journal.end()
    audit.noted = len(noted) - len(journal.noted)
    return audit


def claimed_heads(lines: Iterable[str]) -> set[str]:
    """The heads in the claims of an earlier export; its other lines may be missing."""
    remarks = (remark_from_json(line) for line in lines)
    heads = {str(remark[1].get("head") or "") for remark in remarks if remark is not None and remark[0] == CLAIM}
    if not heads or "" in heads:
        raise InputError("claims that carry a head are missing: it must be what bpac export wrote, or lines of that")
    return heads


def _check_claim(audit: Audit, route: Route, head: bytes | None, claim: Mapping[str, Any], number: int) -> None:
    audit.claims += 1
    certificate = _certificate(route)
    computed: dict[str, Any] = {
        "entries": route.entries,
        "step": route.step,
        "threshold": route.bettor.threshold,
        "certificate": certificate,
    }
    if head is not None:
        computed["head"] = head.hex()
    for name, value in computed.items():
        if claim.get(name) != value:
            audit.differences.append(Difference(number, f"claimed {name}", claim.get(name), value))


def _certificate(route: Route) -> dict[str, Any]:
    return asdict(route.certificate())
