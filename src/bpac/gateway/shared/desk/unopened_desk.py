"""The desk of a segment whose game cannot be opened while Redis is gone: no tickets, so the expert answers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from bpac.answer import Answer
from bpac.dashboard.history.refusals import RefusalReason
from bpac.errors import StoreError
from bpac.gateway.games.desk import Decided, Joined, NoTicket
from bpac.gateway.games.money.savings import Savings
from bpac.gateway.games.rounds.outcomes import GRADER_FAILED
from bpac.gateway.shared.opening import GameOpening
from bpac.gateway.telemetry.failures.unscored_log import UnscoredLog
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.cascade.walk import Walk
from bpac.routing.decision import Decision
from bpac.routing.learning.features import Features
from bpac.routing.tickets.ticket import Ticket
from bpac.wire.usage import Usage

T = TypeVar("T")

# Counts the requests of each route that got no ticket because Redis was gone.
WITHOUT_STORE = "bpac_without_store_total"


class TokensBeforeGame:
    """Counts tokens of requests that had no game, until the game is open and takes them over.

    All are of the expert: without a ticket there is no draft.
    """

    def __init__(self) -> None:
        self._counts = Savings()

    def move_to(self, counts: Savings) -> None:
        """Let another object count, also the tokens of requests that are under way."""
        for usage in self._counts.late.values():
            counts.answered(usage)
        self._counts = counts

    def drafted(self, usage: Usage) -> None:
        """Count a draft."""
        self._counts.drafted(usage)

    def answered(self, usage: Usage) -> None:
        """Count an answer of the expert."""
        self._counts.answered(usage)

    def outcome_unused(self, note: Mapping[str, Any]) -> None:
        """Count the tokens in the note of an outcome that is not recorded."""
        self._counts.outcome_unused(note)

    def follow(self, decision: Decision, answered_by: str, usage: Usage) -> None:
        """Count a later request of an episode."""
        self._counts.follow(decision, answered_by, usage)


class UnopenedDesk:
    """A desk without a game.

    Parameters
    ----------
    segment: of the requests.
    route: the name of the route.
    opening: knows why games cannot be opened.
    metrics: counts the requests.
    """

    number = 0
    feature_names: Sequence[str] = ()
    embeds_prompts = False

    def __init__(self, segment: str, route: str, opening: GameOpening, metrics: Metrics) -> None:
        self.segment = segment
        self.savings = TokensBeforeGame()
        self._route = route
        self._opening = opening
        self._metrics = metrics
        self._unscored_log = UnscoredLog(route)

    async def arrive(self, expert_calls: int, joined: Joined | None = None) -> NoReturn:
        """Raise ``NoTicket``."""
        self._metrics.count(WITHOUT_STORE, route=self._route)
        error = self._opening.failure or StoreError("the game is being opened", cause="the game is being opened")
        raise NoTicket(str(error), cause=error.cause, remedy=error.remedy)

    async def no_score(self, ticket: Ticket, reason: str, *, ended: bool) -> None:
        """Log why the expert answers."""
        self._unscored_log.add(reason)

    async def join_session(self, caller: str, session: str) -> Joined:
        """Nothing to follow: the request gets no ticket, so it begins no episode, either."""
        return Joined("", 0, None)

    def leave_session(self, joined: Joined) -> None:
        """Nothing to give back."""

    def withdraw(self, ticket: Ticket, reason: str) -> None:
        """Nothing to withdraw."""

    def is_under_way(self, ticket: Ticket) -> bool:
        """No ticket is."""
        return False

    def scored(self, uncertainty: float, draft: Answer) -> None:
        """Nothing to watch."""

    async def durable(self) -> None:
        """Nothing to wait for."""

    async def walk(self, ticket: Ticket) -> Walk:
        """Raise ``TypeError``: this follows a ticket."""
        raise no_ticket()

    async def decide(
        self,
        uncertainty: float | Walk,
        ticket: Ticket,
        note: dict[str, Any],
        carry_out: Callable[[Decided], T],
        *,
        features: Features | None = None,
        unfinished: bool = False,
    ) -> tuple[Decided, T] | None:
        """Raise ``TypeError``: this follows a ticket."""
        raise no_ticket()

    async def resolve(
        self, decision: Decision, loss: float | None, note: dict[str, Any], cause: str = GRADER_FAILED
    ) -> None:
        """Raise ``TypeError``: this follows a ticket."""
        raise no_ticket()

    async def resolve_stages(
        self, decision: Decision, answers: Sequence[StageAnswer], losses: Sequence[float | None], note: dict[str, Any]
    ) -> None:
        """Raise ``TypeError``: this follows a ticket."""
        raise no_ticket()

    async def forfeit(self, decision: Decision, cause: str, *, draft_served: bool = False) -> bool:
        """Raise ``TypeError``: this follows a ticket."""
        raise no_ticket()

    async def refuse(self, decision: Decision, reason: RefusalReason, *, draft_served: bool) -> bool:
        """Raise ``TypeError``: this follows a ticket."""
        raise no_ticket()

    async def await_feedback(self, decision: Decision, note: dict[str, Any], answers: dict[str, str]) -> None:
        """Raise ``TypeError``: this follows a ticket."""
        raise no_ticket()


def no_ticket() -> TypeError:
    """The error of a call that follows a ticket."""
    return TypeError("a game that is not open has given out no ticket")
