"""The history of one game, in as little memory after ten million rounds as after ten thousand."""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from bpac.betting.bounds.certificate import Certificate
from bpac.dashboard.bins import Bins
from bpac.dashboard.unscored import Unscored
from bpac.routing.decision import Decision
from bpac.routing.router import Router

MOST_POINTS = 400
MOST_EVENTS = 100
BATCH = 1024
# What a point of the series knows, in this order.
COLUMNS = ("step", "at", "threshold", "expert_calls", "average_upper", "spent_tokens", "always_tokens", "epoch")

# Tokens spent so far, and what always asking the expert would have spent.
Tokens = Callable[[], tuple[float, float]]


class Standing(Protocol):
    """What a history asks of a router when a point is due."""

    def certificate(self) -> Certificate:
        """Bounds on the loss served so far."""


def no_tokens() -> tuple[float, float]:
    """Nobody counts."""
    return 0, 0


class History:
    """What a dashboard shows of the past: a series of points, events, and where the traffic lies.

    It is a fold over the journal like the router: fed as things happen, from the journal, or from a state and the
    rest of the journal, it is the same. The series starts with every step; when it is full, every other point goes and
    from then on only every other step gets one. A certificate is asked for only then.

    >>> router, history = Router(epsilon=0.05, seed=1), History()
    >>> for step in range(100):
    ...     decision = router.decide(0.3)
    ...     history.decided(decision, at=step, standing=router)
    ...     if decision.call_expert:
    ...         router.observe(decision, 0.0)
    ...         history.resolved(decision, 0.0)
    >>> [event["text"] for event in history.events()]
    ['the threshold opened: drafts with an uncertainty below 1 are kept']
    >>> sum(history.uncertainty()["called"]) == router.summary().expert_calls
    True
    """

    __slots__ = (
        "_bins",
        "_due",
        "_epoch",
        "_events",
        "_outcomes",
        "_points",
        "_recent",
        "_seen",
        "_stride",
        "_threshold",
        "at",
        "expert_calls",
        "step",
        "unscored",
    )

    def __init__(self) -> None:
        self.step = 0
        self.at = 0.0
        self.expert_calls = 0
        self.unscored = Unscored()
        self._bins = Bins()
        # What is not in the bins yet.
        self._recent: list[Decision] = []
        self._outcomes: list[tuple[Decision, float]] = []
        # On the terms of the decided query that arrived last: queries are not decided in the order of arrival.
        self._seen = 0
        self._threshold = 0.0
        self._epoch = 1
        self._points: list[list[float]] = []
        self._stride = 1
        self._due = 1
        # Step, time, kind, and the threshold or the number of the epoch.
        self._events: deque[tuple[int, float, str, float]] = deque(maxlen=MOST_EVENTS)

    def decided(self, decision: Decision, at: float, standing: Standing, tokens: Tokens = no_tokens) -> None:
        """Take in a decision that the router has made and applied.

        Parameters
        ----------
        decision: what was decided.
        at: when, in seconds since 1970.
        standing: the router.
        tokens: spent so far, this round's draft included.
        """
        # As little as possible, because this is done for every query; what can wait is done for many at once.
        step, threshold, call_expert, seen = decision[0], decision[2], decision[5], decision[10]
        self.step, self.at = step, at
        self.unscored.in_a_row = 0
        if seen >= self._seen or not decision[9]:
            self._seen = seen
            if threshold != self._threshold or decision[7] != self._epoch:
                self._change(threshold, decision[7])
        recent = self._recent
        recent.append(decision)
        if call_expert:
            self.expert_calls += 1
        # An audit by coin has no outcome yet, which the certificate counts as a loss: that would say more about when we
        # look than about what was served. The next round will do as well.
        if step >= self._due and (not call_expert or decision[3] == 1.0):
            self._mark(standing, tokens)
        if len(recent) >= BATCH:
            self._collect()

    def resolved(self, decision: Decision, loss: float | None) -> None:
        """Take in the outcome of an audit.

        Parameters
        ----------
        decision: what was decided.
        loss: its loss; none if it is given up, and so stays 1.
        """
        if loss is not None and decision[7] == self._epoch:
            self._outcomes.append((decision, loss))
            if len(self._outcomes) >= BATCH:
                self._collect()

    @property
    def epoch(self) -> int:
        """The epoch of the latest decision; the router's is a later one if the alarm has rung since."""
        return self._epoch

    @property
    def bins(self) -> Bins:
        """Traffic and weighted losses by uncertainty."""
        self._collect()
        return self._bins

    def events(self) -> list[dict[str, Any]]:
        """What happened, oldest first, as JSON values."""
        return [
            {"step": step, "at": at, "kind": kind, "text": _told(kind, value)} for step, at, kind, value in self._events
        ]

    def last_event(self, kind: str) -> int | None:
        """The step of the latest event of a kind, as far as it is remembered."""
        return next((step for step, _, found, _ in reversed(self._events) if found == kind), None)

    def series(self, router: Router, savings: Mapping[str, Any] | None = None) -> dict[str, list[float]]:
        """The points by column; the last one is the present.

        Parameters
        ----------
        router: of the game.
        savings: tokens spent and saved so far; none if nobody counts.
        """
        points = self._points
        if self.step:
            spent = sum(savings[f"{kind}_tokens"] for kind in ("draft", "expert", "judge")) if savings else 0
            always = savings["always_tokens"] if savings else 0
            average = router.certificate().average_upper
            now = [self.step, self.at, router.threshold, self.expert_calls, average, spent, always, router.epoch]
            points = [*(point for point in points if point[0] < self.step), now]
        return {name: [_short(point[index]) for point in points] for index, name in enumerate(COLUMNS)}

    def uncertainty(self) -> dict[str, Any]:
        """How many rounds had which uncertainty, by whether the expert was called, as JSON values."""
        return self.bins.histogram()

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {
            "step": self.step,
            "at": self.at,
            "expert_calls": self.expert_calls,
            "unscored": [dict(self.unscored.reasons), self.unscored.in_a_row],
            "seen": self._seen,
            "threshold": self._threshold,
            "epoch": self._epoch,
            "stride": self._stride,
            "points": [list(point) for point in self._points],
            "events": [list(event) for event in self._events],
            "bins": self.bins.state(),
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "History":
        """The history that a state was taken of."""
        history = cls()
        history.step, history.at, history.expert_calls = state["step"], state["at"], state["expert_calls"]
        reasons, in_a_row = state["unscored"]
        history.unscored = Unscored(Counter(reasons), in_a_row)
        history._seen, history._threshold, history._epoch = state["seen"], state["threshold"], state["epoch"]
        history._stride, history._points = state["stride"], [list(point) for point in state["points"]]
        history._due = int(history._points[-1][0]) + history._stride if history._points else 1
        history._events.extend((step, at, kind, value) for step, at, kind, value in state["events"])
        history._bins.load(state["bins"])
        return history

    def _change(self, threshold: float, epoch: int) -> None:
        if epoch != self._epoch:
            self._events.append((self.step, self.at, "epoch", epoch))
            self._collect()
            self._bins.start_epoch()
        elif self._threshold == 0.0:
            self._events.append((self.step, self.at, "opened", threshold))
        elif threshold == 0.0:
            self._events.append((self.step, self.at, "closed", self._threshold))
        self._threshold, self._epoch = threshold, epoch

    def _collect(self) -> None:
        if self._recent:
            current = [decision for decision in self._recent if decision[7] == self._epoch]
            if len(current) < len(self._recent):
                # Queries under way when the alarm rang belong to the epoch in which they arrived.
                self._bins.decided_before([decision for decision in self._recent if decision[7] != self._epoch])
            if current:
                self._bins.decided(current)
            self._recent = []
        if self._outcomes:
            self._bins.resolved(self._outcomes)
            self._outcomes = []

    def _mark(self, standing: Standing, tokens: Tokens) -> None:
        average = standing.certificate().average_upper
        point = [self.step, self.at, self._threshold, self.expert_calls, average, *tokens(), self._epoch]
        self._points.append(point)
        if len(self._points) >= MOST_POINTS:
            self._points = self._points[::2]
            self._stride *= 2
        self._due = int(self._points[-1][0]) + self._stride


def _told(kind: str, value: float) -> str:
    return {
        "epoch": f"the drift alarm rang: epoch {value:.0f} begins, and the threshold starts again from 0",
        "opened": f"the threshold opened: drafts with an uncertainty below {value:.4g} are kept",
        "closed": f"the threshold fell from {value:.4g} to 0: every query goes to the expert",
    }[kind]


def _short(value: float) -> float:
    """Seven digits are more than a chart can show, and half the bytes; large numbers are times and tokens."""
    if isinstance(value, int):
        return value
    return round(value, 3) if value > 1e4 else float(f"{value:.7g}")
