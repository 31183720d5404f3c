"""Whether a model answers: its latest error, since when, and its failures by kind and status."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

# Kinds of failure that may be due to one request: the server refused what was asked, its API cannot express it, or the
# answer was too long.
# A caller can cause them, so a few of them say nothing about the model.
BY_REQUEST = frozenset({"not_expressible", "refused", "too_long"})
# After so many failures by request without a success in between, the model counts as failing.
MANY = 20


class ModelHealth:
    """What is known about one model, from all attempts to get an answer of it.

    Parameters
    ----------
    clock: the time in seconds since 1970.

    Attributes
    ----------
    ok: whether the model answers, as far as is known. A failure that may be due to the request alone (``BY_REQUEST``)
        changes it only if the model has never answered, or after ``MANY`` of them in a row.
    error: the latest error; empty while the model answers.
    since: when ``ok`` last changed; none before the first attempt.
    counts: failed attempts by kind and HTTP status (none: there was no response).
    in_a_row: failed attempts since the latest success.

    >>> health = ModelHealth(clock=iter([100.0, 160.0]).__next__)
    >>> health.record_failure("busy", 503, "status 503")
    >>> health.ok, health.error, health.since
    (False, 'status 503', 100.0)
    >>> health.record_success()
    >>> health.ok, health.error, health.since
    (True, '', 160.0)
    """

    __slots__ = ("_clock", "answered", "counts", "error", "in_a_row", "last", "ok", "since")

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.ok = True
        self.error = ""
        self.since: float | None = None
        self.counts: Counter[tuple[str, int | None]] = Counter()
        self.in_a_row = 0
        self.answered = False
        # The latest failure, also after the model answers again.
        self.last: dict[str, Any] | None = None

    @property
    def failures(self) -> int:
        """The number of failed attempts."""
        return self.counts.total()

    def record_success(self) -> None:
        """Record an answer."""
        if self.answered and not self.in_a_row:  # nearly always
            return
        if not self.ok or self.since is None:
            self.since = round(self._clock(), 3)
        self.ok, self.error, self.in_a_row, self.answered = True, "", 0, True

    def record_failure(self, kind: str, status: int | None, text: str, remedy: str = "") -> None:
        """Record a failed attempt.

        Parameters
        ----------
        kind: the kind of failure, as in ``bpac_upstream_failures_total``.
        status: the HTTP status; none if there was no response.
        text: what went wrong, for operators; nothing that the server wrote.
        remedy: what to do about it (default: empty, not known).
        """
        said = f"{text}: {remedy}" if remedy else text
        now = round(self._clock(), 3)
        self.counts[kind, status] += 1
        self.in_a_row += 1
        self.last = {"kind": kind, "status": status, "error": said, "at": now, "remedy": remedy}
        if kind not in BY_REQUEST or not self.answered or self.in_a_row >= MANY or not self.ok:
            if self.ok or self.since is None:
                self.since = now
            self.ok, self.error = False, said

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        kinds = [
            {"kind": kind, "status": status, "count": count} for (kind, status), count in self.counts.most_common()
        ]
        return {
            "ok": self.ok,
            "error": self.error or None,
            "since": self.since,
            "failures": self.failures,
            "kinds": kinds,
            "last": self.last,
        }
