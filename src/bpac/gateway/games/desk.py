"""What a chat request needs of a game, wherever the game is: in this process, in another one, or on a server.

``gateway/chat`` handles HTTP, drafts, expert calls and grading; a game takes tickets, decides and keeps its journal.
Between the two there is only this interface. ``LocalDesk`` is a game of this process.

1. ``arrive`` takes the ticket of a request. Every ticket is decided, withdrawn or reported as without a score; one that
   is none of it, because the process of its request ended, counts as cut off (MATH section 12).
2. ``decide`` makes the decision and returns when it is in the journal's order; ``durable`` returns when all that this
   desk has returned so far cannot be lost. Nothing is served before that. A desk whose ``decide`` returns only when the
   decision is durable has nothing to wait for in ``durable``.
3. From the decision on the round counts, so it is carried out even if its caller leaves while ``decide`` waits: the
   desk itself calls ``carry_out``, exactly once for each decision that it learns of, before ``decide`` returns.
4. What ends an audit (``resolve``, ``resolve_stages``, ``forfeit``, ``refuse``) may arrive more than once, or after the
   round has an outcome: the first outcome counts. ``StoreError`` if it cannot be recorded: the round stays open, which
   counts as a loss of 1.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from bpac.answer import Answer
from bpac.dashboard.history.refusals import RefusalReason
from bpac.errors import StoreError
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.games.rounds.outcomes import GRADER_FAILED
from bpac.gateway.games.segment_names import Caller
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.cascade.walk import Walk
from bpac.routing.decision import Decision
from bpac.routing.learning.features import Features
from bpac.routing.tickets.ticket import Ticket
from bpac.wire.usage import Usage

T = TypeVar("T")

# In the note of a decision on a caller's own draft: its ticket, and the uncertainty as it was reported.
TICKET, REPORTED = "ticket", "reported"
# The terms of a request without a ticket: the expert answers it.
WITHOUT_TICKET = Ticket(0, 0, 0.0, 1.0, 0, 0)


class LastTerms(Protocol):
    """The terms that were published last, for requests that arrive while the store is gone."""

    async def decide(self, uncertainty: float, features: Features | None) -> Decision | None:
        """The decision to serve a draft, which is counted and cannot be lost; none if the expert must answer.

        Parameters
        ----------
        uncertainty: the score of the draft.
        features: what else is known of it, where the game learns scores.
        """


class NoTicket(StoreError):
    """No ticket can be had at present: the request is no round, and the expert answers it.

    Attributes
    ----------
    last_terms: on which its draft may be served instead; none unless the operator chose so.
    """

    last_terms: LastTerms | None = None


class Arrival(NamedTuple):
    """A request that has taken its ticket.

    Parameters
    ----------
    ticket: its place in the order of arrival, with the terms of its decision.
    skips_draft: whether it goes to the expert without a draft, because drafts cost more than they save.
    """

    ticket: Ticket
    skips_draft: bool


class Decided(NamedTuple):
    """A decision of a game.

    Parameters
    ----------
    decision: what was decided.
    decision_id: its id for callers, which cannot be guessed.
    worth_grading: whether the loss of the draft could still raise a threshold; true where nobody asked.
    """

    decision: Decision
    decision_id: str
    worth_grading: bool = True


class DecidedBefore(NamedTuple):
    """A decision that a caller asks for again.

    Parameters
    ----------
    decided: the decision.
    reported: the uncertainty that the caller reported with it; none if it is not known.
    portable: its ticket as ``PortableTickets.portable`` writes it (default: empty, it is not known).
    """

    decided: Decided
    reported: float | None
    portable: str = ""


class Joined(NamedTuple):
    """What a request of a session does (``games/rounds/sessions.py``).

    Parameters
    ----------
    key: of the session, which is noted with the decision.
    claim: the number of the claim of a request that begins an episode; 0 if it follows one.
    episode: the decision that it follows; none if it begins an episode.
    ticket: the ticket that comes with the claim, where claims are tickets (default: none).
    """

    key: str
    claim: int
    episode: Decided | None
    ticket: Ticket | None = None


class TokenCounts(Protocol):
    """Counts tokens that belong to no entry of the journal, or that are known only after it."""

    def drafted(self, usage: Usage) -> None:
        """Count a draft that ended, or was cut off, without a decision or after it."""

    def answered(self, usage: Usage) -> None:
        """Count tokens of the expert that belong to no outcome."""

    def outcome_unused(self, note: Mapping[str, Any]) -> None:
        """Count the tokens in the note of an outcome that is not recorded."""

    def follow(self, decision: Decision, answered_by: str, usage: Usage) -> None:
        """Count a later request of an episode, and the tokens of the model that answered it."""


class GameDesk(Protocol):
    """One game, as chat requests use it."""

    @property
    def number(self) -> int:
        """The number of the game in its store."""

    @property
    def segment(self) -> str:
        """The segment of the traffic; empty if the route is not divided."""

    @property
    def feature_names(self) -> Sequence[str]:
        """What scores are learned from; none if the game learns no score."""

    @property
    def embeds_prompts(self) -> bool:
        """Whether the embedding of the prompt is among it."""

    @property
    def savings(self) -> TokenCounts:
        """Counts tokens that belong to no entry."""

    async def arrive(self, expert_calls: int, joined: Joined | None = None) -> Arrival:
        """Take the ticket of a request that has just arrived; ``NoTicket`` if the expert is to answer without one.

        Parameters
        ----------
        expert_calls: calls of the expert's model that are under way in this process.
        joined: the claim of its session, if it begins an episode (default: none).
        """

    async def join_session(self, caller: str, session: str) -> Joined:
        """The decision that a request of a session follows, which is durable, or the claim to begin an episode.

        It waits while another request of the session is on its way to its decision. A claim ends with the decision,
        whose note must have its key, or with ``leave_session``. ``NoTicket`` if nobody knows what is followed: the
        expert is to answer.

        Parameters
        ----------
        caller: who asks.
        session: the name of the session.
        """

    def leave_session(self, joined: Joined) -> None:
        """Give a claim back; nothing happens if its request was decided."""

    async def walk(self, ticket: Ticket) -> Walk:
        """Send a request of a cascade on its way, on the terms of its ticket."""

    def is_under_way(self, ticket: Ticket) -> bool:
        """Whether a ticket can still be decided, as far as it is known here: an outage may have cut it off."""

    def scored(self, uncertainty: float, draft: Answer) -> None:
        """Watch the scores: report one, and the draft that has it."""

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
        """Decide a request; none if its ticket was cut off.

        Parameters
        ----------
        uncertainty: the score of the draft; in a cascade, the walk of the request.
        ticket: of the request.
        note: counts of tokens, and who made the request, for the journal.
        carry_out: starts what the decision demands; what it returns is returned with the decision.
        features: what else is known of the draft, where the game learns scores.
        unfinished: whether the draft is still being generated, so that it matters whether it is worth grading.
        """

    async def durable(self) -> None:
        """Wait until everything that this desk has returned so far is durable; ``StoreError`` if it cannot be."""

    def withdraw(self, ticket: Ticket, reason: str) -> None:
        """Withdraw a ticket without a decision; nothing happens if it was decided or withdrawn before."""

    async def no_score(self, ticket: Ticket, reason: str, *, ended: bool) -> None:
        """Withdraw the ticket of a request whose draft has no score.

        Parameters
        ----------
        ticket: of the request.
        reason: why there is no score.
        ended: whether what ended the draft may have ended other drafts at the same time.
        """

    async def resolve(
        self, decision: Decision, loss: float | None, note: dict[str, Any], cause: str = GRADER_FAILED
    ) -> None:
        """Record the loss of a draft, or forfeit the round for a cause if there is none."""

    async def resolve_stages(
        self,
        decision: Decision,
        answers: Sequence[StageAnswer],
        losses: Sequence[float | None],
        note: dict[str, Any],
    ) -> None:
        """Record what an audit of a cascade found."""

    async def forfeit(self, decision: Decision, cause: str, *, draft_served: bool = False) -> bool:
        """Forfeit a round: loss 1; false, and nothing is recorded, if it has an outcome already."""

    async def refuse(self, decision: Decision, reason: RefusalReason, *, draft_served: bool) -> bool:
        """Record that the expert refused to answer; false, and nothing is recorded, if the round has an outcome."""

    async def await_feedback(self, decision: Decision, note: dict[str, Any], answers: dict[str, str]) -> None:
        """Keep what is needed for feedback on an open round: the note of its outcome, and both answers."""


@runtime_checkable
class AbandonedTickets(Protocol):
    """A game that can forget tickets."""

    def abandon(self, ticket: Ticket) -> None:
        """Forget a ticket that nobody is going to decide: it stays a loss of 1; nothing happens if it was decided."""


@runtime_checkable
class PortableTickets(Protocol):
    """A game whose tickets can be decided in another gateway than the one that gave them out."""

    async def arrive_named(self, name: str) -> DecidedBefore | Ticket | None:
        """The ticket of a name, or its decision: the same at every gateway; a new ticket if it has none.

        None if its ticket cannot be decided here any more.

        Parameters
        ----------
        name: noted with the decision (as ``ticket``).
        """

    async def decided_under(self, name: str) -> DecidedBefore | None:
        """The decision of the ticket with a name, wherever it was made; none if there is none (any more)."""

    def portable(self, ticket: Ticket) -> str:
        """What another gateway needs to decide a ticket, as letters and digits."""

    async def taken_over(self, text: str) -> Ticket | None:
        """The ticket that ``portable`` wrote elsewhere; none if it cannot be decided any more."""

    def done_elsewhere(self, ticket: Ticket) -> bool:
        """Whether another gateway has decided or withdrawn a ticket of this one, which then forgets it."""


class RouteDesks(Protocol):
    """The games of a route, as chat requests use them."""

    async def desk(self, request: ChatRequest, caller: Caller, label: str) -> GameDesk:
        """The game that a request belongs to; a new one for the first request of a segment.

        Parameters
        ----------
        request: what is asked.
        caller: who asks.
        label: what follows the route's name and a colon in the request's ``model``.
        """

    def task(self, request: ChatRequest, caller: Caller, label: str) -> str:
        """The task of a request, as ``task_by`` names it; empty if it names none."""

    def desks(self) -> Iterable[GameDesk]:
        """The games that are open."""
