"""Rounds in which the expert was called and whose outcome has not come: their deadlines, notes and answers."""

import itertools
import time
from typing import Any

from bpac.gateway.config.routes.routes import RouteSettings
from bpac.routing.decision import Decision

# Rounds that wait for feedback whose answers are kept in memory.
MOST_ANSWERS = 1000


class OpenRounds:
    """The open rounds of a game that this process knows of."""

    def __init__(self) -> None:
        # Rounds and their deadlines, in the order in which these were set, so the next deadline comes first.
        self._open: dict[int, tuple[float, Decision]] = {}
        # What is noted with the outcome of a round that waits for feedback, and both of its answers.
        self._notes: dict[int, dict[str, Any]] = {}
        self._answers: dict[int, dict[str, str]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, step: int) -> bool:
        return step in self._open

    def wait_for(self, decision: Decision, route: RouteSettings) -> None:
        """Wait for the outcome of a round until its deadline."""
        self._open[decision.step] = (time.monotonic() + route.deadline, decision)
        # Beyond ``max_owed`` the router forfeits the oldest rounds by itself, so they can be forgotten here.
        if len(self._open) > 2 * route.max_owed:
            self.close(next(iter(self._open)))

    def extend(self, decision: Decision, route: RouteSettings) -> None:
        """Begin the time until the deadline of an open round anew; nothing happens if it is not open."""
        if self._open.pop(decision.step, None) is not None:
            self.wait_for(decision, route)

    def keep(self, step: int, note: dict[str, Any], answers: dict[str, str]) -> None:
        """Keep what is needed for feedback on an open round; answers only of the latest rounds."""
        if step in self._open:
            self._notes[step] = note
            self._answers[step] = answers
            if len(self._answers) > MOST_ANSWERS:
                del self._answers[next(iter(self._answers))]

    def note(self, step: int) -> dict[str, Any]:
        """The note that is kept for the outcome of a round; empty if there is none."""
        return self._notes.get(step, {})

    def answers(self, step: int) -> dict[str, str] | None:
        """Both answers of a round that waits for feedback; none if they are not kept."""
        return self._answers.get(step)

    def close(self, step: int) -> dict[str, Any]:
        """Stop waiting for the outcome of a round, and return the note that was kept for it."""
        self._open.pop(step, None)
        return self._notes.pop(step, {})

    def forget_answers(self, step: int) -> None:
        """Forget both answers of a round."""
        self._answers.pop(step, None)

    def late(self, time_now: float) -> list[Decision]:
        """The rounds whose deadline has passed.

        Parameters
        ----------
        time_now: the time on the monotonic clock, in seconds.
        """
        late = itertools.takewhile(lambda waiting: waiting[0] <= time_now, self._open.values())
        return [decision for _, decision in late]
