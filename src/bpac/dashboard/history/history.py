"""The history of one game in bounded memory: ten million requests take no more than ten thousand."""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from bpac.betting.bounds.certificate import Certificate
from bpac.dashboard.history.bins import Bins
from bpac.dashboard.history.refusals import Refusals
from bpac.dashboard.history.unscored import Unscored
from bpac.dashboard.savings import TokenSavings
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.routing.router import Router
from bpac.routing.switching import SwitchEvidence

MOST_POINTS = 400
MOST_EVENTS = 100
BATCH = 1024
# The values of a point of the series, in this order.
COLUMNS = ("step", "at", "threshold", "expert_calls", "average_upper", "spent_tokens", "always_tokens", "epoch")

# Tokens used so far, and the tokens that always asking the expert would have used.
Tokens = Callable[[], tuple[float, float]]


class Standing(Protocol):
    """The part of a router that a history needs for a point of its series."""

    def certificate(self) -> Certificate:
        """Bounds on the loss so far."""


def no_tokens() -> tuple[float, float]:
    """For games whose tokens are not counted."""
    return 0, 0


class History:
    """The past of a game as a dashboard shows it: a series of points, events, and the distribution of the scores.

    Parameters
    ----------
    switch: whether the game asks if the draft's model may replace the expert (default: false).

    Like the router, it is a fold over the journal: the result is the same whether entries are added as they happen,
    read from the journal, or added to a saved state. The series starts with a point for every step; whenever it is
    full, every other point is dropped and the distance between new points doubles. Certificates are computed for
    points only.

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
        "refusals",
        "step",
        "switch",
        "unscored",
    )

    def __init__(self, *, switch: bool = False) -> None:
        # What the audits say about replacing the expert, in a game that asks for it.
        self.switch = SwitchEvidence() if switch else None
        self.step = 0
        self.at = 0.0
        self.expert_calls = 0
        self.unscored = Unscored()
        self.refusals = Refusals()
        self._bins = Bins()
        # Decisions and outcomes that are not in the bins yet.
        self._recent: list[Decision] = []
        self._outcomes: list[tuple[Decision, float]] = []
        # Requests are not decided in the order of arrival: threshold and epoch are those of the latest arrival.
        self._seen = 0
        self._threshold = 0.0
        self._epoch = 1
        self._points: list[list[float]] = []
        self._stride = 1
        self._due = 1
        # Step, time, kind, and the threshold or the number of the epoch.
        self._events: deque[tuple[int, float, str, float]] = deque(maxlen=MOST_EVENTS)

    def decided(self, decision: Decision, at: float, standing: Standing, tokens: Tokens = no_tokens) -> None:
        """Add a decision that the router has made and applied.

        Parameters
        ----------
        decision: the decision.
        at: its time, in seconds since 1970.
        standing: the router.
        tokens: returns the tokens used so far, including this draft (default: not counted).
        """
        # This runs for every request, so it does as little as possible; the rest is done in batches.
        step, threshold, call_expert, seen = decision[0], decision[2], decision[5], decision[10]
        self.step, self.at = step, at
        self.unscored.scored()
        if seen >= self._seen or not decision[9]:
            self._seen = seen
            if threshold != self._threshold or decision[7] != self._epoch:
                self._change(threshold, decision[7])
        recent = self._recent
        recent.append(decision)
        if call_expert:
            self.expert_calls += 1
        # The certificate counts an audit without an outcome as a loss, so a point right after a random audit would show
        # a spike that is gone with its outcome. The next request can have the point instead.
        if step >= self._due and (not call_expert or decision[3] == 1.0):
            self._mark(standing, tokens)
        if len(recent) >= BATCH:
            self._collect()

    def resolved(self, decision: Decision, loss: float | None) -> None:
        """Add the outcome of an audit.

        Parameters
        ----------
        decision: the decision.
        loss: its loss; None if it could not be graded, so that it stays 1.
        """
        if loss is not None and decision[7] == self._epoch:
            self._outcomes.append((decision, loss))
            if len(self._outcomes) >= BATCH:
                self._collect()

    def written(self, entry: Entry, note: Mapping[str, Any], epoch: int = 0) -> None:
        """Count what an entry of the journal says about requests without a score, refusals and a switch of models.

        Parameters
        ----------
        entry: the entry.
        note: the note of the gateway with it.
        epoch: the epoch of the router, needed for entries about tickets (default: not known).
        """
        self.unscored.follow(entry, note)
        self.refusals.follow(entry, note)
        if self.switch is not None:
            self.switch.follow(entry, epoch)

    @property
    def epoch(self) -> int:
        """The epoch of the latest decision; the router is in a later one if the alarm was triggered since."""
        return self._epoch

    @property
    def bins(self) -> Bins:
        """Traffic and weighted losses by uncertainty."""
        self._collect()
        return self._bins

    def events(self) -> list[dict[str, Any]]:
        """The events, oldest first, as JSON values."""
        return [
            {"step": step, "at": at, "kind": kind, "text": _event_text(kind, value)}
            for step, at, kind, value in self._events
        ]

    def last_event(self, kind: str) -> int | None:
        """The step of the latest event of a kind; None if there is none among the latest events."""
        return next((step for step, _, found, _ in reversed(self._events) if found == kind), None)

    def series(self, router: Router, savings: TokenSavings | None = None) -> dict[str, list[float]]:
        """The points by column; the last one is the present.

        Parameters
        ----------
        router: the router of the game.
        savings: tokens used and saved so far (default: None, not counted).
        """
        points = self._points
        if self.step:
            spent = savings.spent_tokens if savings else 0
            always = savings.always_tokens if savings else 0
            average = router.certificate().average_upper
            now = [self.step, self.at, router.threshold, self.expert_calls, average, spent, always, router.epoch]
            points = [*(point for point in points if point[0] < self.step), now]
        return {name: [_short(point[index]) for point in points] for index, name in enumerate(COLUMNS)}

    def uncertainty(self) -> dict[str, Any]:
        """Histogram of the uncertainty, by whether the expert was called, as JSON values."""
        return self.bins.histogram()

    def state(self) -> dict[str, Any]:
        """The whole state, as JSON values, for ``load``."""
        return {
            "step": self.step,
            "at": self.at,
            "expert_calls": self.expert_calls,
            "unscored": [dict(self.unscored.reasons), self.unscored.in_a_row],
            "unscored_lately": [self.unscored.since, self.unscored.recent],
            "refusals": [dict(self.refusals.reasons), self.refusals.recent, self.refusals.since],
            "seen": self._seen,
            "threshold": self._threshold,
            "epoch": self._epoch,
            "stride": self._stride,
            "points": [list(point) for point in self._points],
            "events": [list(event) for event in self._events],
            "bins": self.bins.state(),
            **({"switch": self.switch.state()} if self.switch is not None else {}),
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "History":
        """The history with a saved state."""
        history = cls()
        history.step, history.at, history.expert_calls = state["step"], state["at"], state["expert_calls"]
        reasons, in_a_row = state["unscored"]
        # Snapshots of earlier versions lack the last two, and refusals.
        history.unscored = Unscored(Counter(reasons), in_a_row, *state.get("unscored_lately", ()))
        refusals, *lately = state.get("refusals", ({},))
        history.refusals = Refusals(Counter(refusals), *lately)
        history._seen, history._threshold, history._epoch = state["seen"], state["threshold"], state["epoch"]
        history._stride, history._points = state["stride"], [list(point) for point in state["points"]]
        history._due = int(history._points[-1][0]) + history._stride if history._points else 1
        history._events.extend((step, at, kind, value) for step, at, kind, value in state["events"])
        history._bins.load(state["bins"])
        if "switch" in state:
            history.switch = SwitchEvidence.load(state["switch"])
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
                # Requests that were in progress when the alarm was triggered belong to the epoch of their arrival.
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


def _event_text(kind: str, value: float) -> str:
    return {
        "epoch": f"the drift alarm was triggered: epoch {value:.0f} begins and the threshold is reset to 0",
        "opened": f"the threshold opened: drafts with an uncertainty below {value:.4g} are kept",
        "closed": f"the threshold fell from {value:.4g} to 0: the expert answers every request",
    }[kind]


def _short(value: float) -> float:
    """Rounded to seven digits: a chart cannot show more, and it halves the size. Large values are times and tokens."""
    if isinstance(value, int):
        return value
    return round(value, 3) if value > 1e4 else float(f"{value:.7g}")
