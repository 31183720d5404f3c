"""Audits: every threshold and certificate, computed again from an exported journal and nothing else."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from bpac.errors import JournalError
from bpac.routing.decision import Decision
from bpac.routing.journal import Entry, Started, claim_from_json, entry_from_json
from bpac.routing.rebuilding import follow, opened
from bpac.routing.route import Route


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a journal says something else than follows from what came before.

    Parameters
    ----------
    line: of the journal.
    what: is said.
    recorded, computed: what it says, and what follows.
    """

    line: int
    what: str
    recorded: Any
    computed: Any


@dataclass(slots=True)
class Audit:
    """What came of an audit.

    Parameters
    ----------
    rounds: decisions whose threshold and probabilities were computed again.
    claims: claims of the gateway whose threshold and certificate were.
    differences: where it differs.
    threshold, certificate: at the end of the journal.
    owed: rounds without an outcome, which count as loss 1.
    forfeits: rounds given up, by cause; they count as loss 1, too.
    """

    rounds: int = 0
    claims: int = 0
    differences: list[Difference] = field(default_factory=list)
    threshold: float = 0.0
    certificate: dict[str, Any] = field(default_factory=dict)
    owed: int = 0
    forfeits: dict[str, int] = field(default_factory=dict)


class _Terms(NamedTuple):
    """What was in force from an entry on, until the next one changes it: a query is decided on what it met on arrival.

    Parameters
    ----------
    since: how many entries the journal had.
    threshold, rate, epoch: in force then (û, ρ).
    run: how many entries it had when queries last began to take tickets.
    """

    since: int
    threshold: float
    rate: float
    epoch: int
    run: int = 0

    @classmethod
    def now(cls, route: Route, run: int = 0) -> "_Terms":
        """What is in force after the entries that a route has seen."""
        route.charge()
        return cls(route.entries, route.game.threshold, route.rate, route.epoch, run)


def audit_journal(lines: Iterable[str]) -> Audit:
    """Compute again what a journal claims; ``JournalError`` if its first line does not open one.

    Parameters
    ----------
    lines: of the journal, as ``bpac export`` wrote it.
    """
    audit = Audit()
    route: Route | None = None
    terms: list[_Terms] = []
    for number, line in enumerate(lines, start=1):
        try:
            claim = claim_from_json(line)
            if route is None:
                route = opened(entry_from_json(line, number))
                terms.append(_Terms.now(route))
            elif claim is not None:
                _check_claim(audit, route, claim, number)
            else:
                entry = entry_from_json(line, number)
                _check_entry(audit, route, entry, number, terms)
                follow(route, [entry])
                run = route.entries if isinstance(entry, Started) else terms[-1].run
                if terms[-1][1:] != (now := _Terms.now(route, run))[1:]:
                    terms.append(now)
        except JournalError as error:
            if route is None:
                where = "" if str(error).startswith("line ") else f"line {number}: "
                raise JournalError(f"{where}{error}; bpac audit reads what bpac export wrote") from error
            # What follows an entry that cannot be is worth nothing.
            audit.differences.append(Difference(number, str(error), None, None))
            break
    if route is None:
        raise JournalError("the journal is empty: nothing can be audited")
    audit.certificate = _certificate(route)
    audit.threshold = route.game.threshold
    audit.owed, audit.forfeits = len(route.owed), dict(route.forfeits)
    return audit


def _check_entry(audit: Audit, route: Route, entry: Entry, number: int, terms: list[_Terms]) -> None:
    if not isinstance(entry, Decision):
        return
    audit.rounds += 1
    met = terms[-1]
    if entry.epoch != route.epoch:
        # An alarm has rung since it arrived: nothing that was certified before is used.
        met = met._replace(threshold=0.0, rate=1.0)
    elif entry.ticket and route.in_order:
        met = terms[bisect_right(terms, entry.seen, key=itemgetter(0)) - 1]
        if not met.run <= entry.seen <= route.entries or (met.run, met.epoch) != (terms[-1].run, route.epoch):
            audit.differences.append(Difference(number, f"entries seen by step {entry.step}", entry.seen, None))
    computed = {
        "threshold": met.threshold,
        "propensity": met.rate if entry.uncertainty < met.threshold else 1.0,
        "least_propensity": route.least_propensity(met.threshold, met.rate),
    }
    for name, value in computed.items():
        recorded = getattr(entry, name)
        if recorded != value:
            audit.differences.append(Difference(number, f"{name} of step {entry.step}", recorded, value))


def _check_claim(audit: Audit, route: Route, claim: Mapping[str, Any], number: int) -> None:
    audit.claims += 1
    certificate = _certificate(route)
    computed = {
        "entries": route.entries,
        "step": route.step,
        "threshold": route.game.threshold,
        "certificate": certificate,
    }
    for name, value in computed.items():
        if claim.get(name) != value:
            audit.differences.append(Difference(number, f"claimed {name}", claim.get(name), value))


def _certificate(route: Route) -> dict[str, Any]:
    return asdict(route.certificate())
