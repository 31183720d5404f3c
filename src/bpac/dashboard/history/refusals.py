"""Requests that only the expert refused: they are fair rounds (MATH section 13), and counted by reason."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from bpac.routing.journal.entries import Entry, Resolved

# The key of a note of the gateway that has the reason of a refusal.
NOTED = "refusal"
# So many reasons are told apart, with so many fields each: callers choose what a server refuses.
MOST_REASONS = 20
MOST_FIELDS = 3
# Refusals beyond that, and those of which the journal of an earlier version does not have the reason.
OTHER, NOT_RECORDED = "other", "not recorded"
# The recent share is that of about this many of the latest outcomes.
RECENT = 100
# Below this recent share, a refusal is the first of a new series.
NONE_LATELY = 0.001
_NAMES = ": it names "


class RefusalReason(NamedTuple):
    """Why a request was refused.

    Parameters
    ----------
    status: the HTTP status; ``other`` or ``not recorded`` if it is not known.
    fields: the request fields that the server's message names.

    >>> str(RefusalReason("400", ("temperature", "top_p")))
    '400: it names temperature, top_p'
    >>> RefusalReason.read("400: it names temperature, top_p") == RefusalReason("400", ("temperature", "top_p"))
    True
    """

    status: str
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.status}{_NAMES}{', '.join(self.fields)}" if self.fields else self.status

    @classmethod
    def of(cls, status: int | None, fields: Iterable[str]) -> "RefusalReason":
        """The reason of a response; of many fields, the first few."""
        return cls(OTHER if status is None else str(status), tuple(sorted(fields))[:MOST_FIELDS])

    @classmethod
    def read(cls, text: str) -> "RefusalReason":
        """The reason that ``str`` wrote."""
        status, _, fields = text.partition(_NAMES)
        return cls(status, tuple(fields.split(", ")) if fields else ())


@dataclass(frozen=True, slots=True)
class RefusalReport:
    """The requests that the expert refused.

    Parameters
    ----------
    requests: how many there were.
    share: their share of the requests for which the expert was called.
    reasons: how many there were by reason.
    """

    requests: int
    share: float
    reasons: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)

    def by_status(self) -> Counter[str]:
        """How many there were by the status of the reason, which has few values."""
        counts: Counter[str] = Counter()
        for reason, count in self.reasons.items():
            counts[RefusalReason.read(reason).status] += count
        return counts


@dataclass(slots=True)
class Refusals:
    """The number of requests that the expert refused, counted from the entries of a journal.

    Parameters
    ----------
    reasons: number of refusals whose reason is known, by reason.
    recent: the share of refusals among about the latest 100 outcomes (0 to 1).
    since: when the first of these was, in seconds since 1970; 0 if unknown.

    >>> refusals = Refusals()
    >>> refusals.follow(Resolved(1, None, refused=True), {"refusal": "400: it names tools"})
    >>> refusals.report(refused=2, expert_calls=8)
    RefusalReport(requests=2, share=0.25, reasons={'400: it names tools': 1, 'not recorded': 1})
    """

    reasons: Counter[str] = field(default_factory=Counter)
    recent: float = 0.0
    since: float = 0.0

    def follow(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Count the refusal that an entry records.

        Parameters
        ----------
        entry: an entry of the journal.
        note: the note of the gateway with it: ``refusal`` is the reason.
        """
        if not isinstance(entry, Resolved):
            return
        if entry.refused:
            if self.recent < NONE_LATELY:
                self.since = note.get("at", 0.0)
            if reason := note.get(NOTED):
                known = reason in self.reasons or len(self.reasons) < MOST_REASONS - 1
                self.reasons[reason if known else OTHER] += 1
        self.recent += (float(entry.refused) - self.recent) / RECENT

    def report(self, refused: int, expert_calls: int) -> RefusalReport:
        """The number of refusals, their share of the expert calls, and the reasons.

        Parameters
        ----------
        refused: number of refusals, with those whose reason is not known.
        expert_calls: number of requests for which the expert was called.
        """
        reasons = dict(sorted(self.reasons.items()))
        if unknown := refused - self.reasons.total():
            reasons[NOT_RECORDED] = unknown
        return RefusalReport(refused, refused / expert_calls if expert_calls else 0.0, reasons)
