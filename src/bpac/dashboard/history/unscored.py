"""Requests without a score: they are not rounds, but counted, because they save nothing (MATH section 13)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bpac.routing.journal.entries import Entry, Started, Withdrawn

# The reason of a ticket that is withdrawn because the caller disconnected: not counted here.
CALLER_LEFT = "caller-left"
# The reason of tickets that an outage of the draft model cut off.
OUTAGE = "outage"
# The reason of requests that were not drafted, because drafts cost more money than they save.
COSTS_MORE = "draft-costs-more"
# After this many requests in a row without a score, a route counts as not routing.
MANY = 20
# The recent share is that of about this many of the latest requests.
RECENT = 100


@dataclass(frozen=True, slots=True)
class UnscoredReport:
    """The requests without a score.

    Parameters
    ----------
    requests: how many there were.
    share: their share of all requests.
    reasons: how many there were by reason.
    """

    requests: int
    share: float
    reasons: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)


@dataclass(slots=True)
class Unscored:
    """The number of requests without a score, counted from the entries of a journal.

    Parameters
    ----------
    reasons: number of requests without a score, by reason.
    in_a_row: their number since the last decision, without those that were not to be drafted.
    since: when the first of these was counted, in seconds since 1970; 0 if unknown.
    recent: the share of requests without a score among about the latest 100 (0 to 1).

    >>> unscored = Unscored()
    >>> unscored.withdrawn("no-score")
    >>> unscored.report(rounds=3)
    UnscoredReport(requests=1, share=0.25, reasons={'no-score': 1})
    """

    reasons: Counter[str] = field(default_factory=Counter)
    in_a_row: int = 0
    since: float = 0.0
    recent: float = 0.0

    def follow(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Count the requests without a score that an entry records.

        Parameters
        ----------
        entry: an entry of the journal.
        note: the note of the gateway with it: ``cut_off`` is the number of requests that an outage cut off.
        """
        if isinstance(entry, Withdrawn):
            self.withdrawn(entry.reason, at=note.get("at", 0.0))
        elif isinstance(entry, Started) and note.get("cut_off"):
            self.withdrawn(OUTAGE, note["cut_off"], note.get("at", 0.0))

    def withdrawn(self, reason: str, requests: int = 1, at: float = 0.0) -> None:
        """Count tickets that were withdrawn or cut off, unless the caller disconnected."""
        if reason == CALLER_LEFT:
            return
        self.reasons[reason] += requests
        if reason != COSTS_MORE:  # that says nothing about whether drafts can be scored
            self.since = self.since if self.in_a_row else at
            self.in_a_row += requests
        self.recent = 1.0 - (1.0 - self.recent) * (1.0 - 1.0 / RECENT) ** requests

    def scored(self) -> None:
        """Note a request whose draft had a score."""
        self.in_a_row = 0
        self.recent *= 1.0 - 1.0 / RECENT

    def report(self, rounds: int) -> UnscoredReport:
        """The number of requests without a score, their share of all, and the reasons.

        Parameters
        ----------
        rounds: number of requests that were decided.
        """
        requests = self.reasons.total()
        share = requests / (requests + rounds) if requests else 0.0
        return UnscoredReport(requests, share, dict(sorted(self.reasons.items())))

    def only(self, rounds: int) -> bool:
        """Whether requests have no score at present: none had one so far, or many in a row had none."""
        return self.in_a_row >= MANY or (self.in_a_row > 0 and not rounds)
