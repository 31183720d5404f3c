"""A game of this process, as chat requests use it: the interface is described in ``games/desk.py``."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from bpac.answer import Answer
from bpac.dashboard.history.refusals import RefusalReason
from bpac.gateway.games.desk import Arrival, Decided, Joined
from bpac.gateway.games.money.savings import DRAFT, Savings
from bpac.gateway.games.rounds.outcomes import GRADER_FAILED
from bpac.gateway.games.rounds.sessions import SessionClaim
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.cascade.walk import Walk
from bpac.routing.decision import Decision
from bpac.routing.learning.features import Features
from bpac.routing.tickets.ticket import Ticket
from bpac.wire.usage import Usage

if TYPE_CHECKING:
    from bpac.gateway.games.live_game import LiveGame

T = TypeVar("T")


class LocalDesk:
    """The desk of a live game. Nothing waits in it except ``durable`` and ``join_session``.

    Parameters
    ----------
    game: the game.
    """

    __slots__ = ("game",)

    def __init__(self, game: "LiveGame") -> None:
        self.game = game

    @property
    def number(self) -> int:
        """The number of the game in its store."""
        return self.game.number

    @property
    def segment(self) -> str:
        """The segment of the traffic; empty if the route is not divided."""
        return self.game.segment

    @property
    def feature_names(self) -> Sequence[str]:
        """What scores are learned from; none if the game learns no score."""
        return self.game.feature_names

    @property
    def embeds_prompts(self) -> bool:
        """Whether the embedding of the prompt is among it."""
        return self.game.embeds_prompts

    @property
    def savings(self) -> Savings:
        """Counts tokens that belong to no entry."""
        return self.game.savings

    async def arrive(self, expert_calls: int, joined: Joined | None = None) -> Arrival:
        """Take the ticket of a request that has just arrived."""
        game = self.game
        game.expect(expert_calls)
        return Arrival(game.drafting.arrive(), game.skips_draft())

    async def join_session(self, caller: str, session: str) -> Joined:
        """The decision that a request of a session follows, or the claim to begin an episode."""
        key = self.game.session_key(caller, session)
        found = await self.game.sessions.join(key)
        if isinstance(found, SessionClaim):
            return Joined(key, found.number, None)
        episode = self.game.followed(found)
        await self.durable()
        return Joined(key, 0, episode)

    def leave_session(self, joined: Joined) -> None:
        """Give a claim back; nothing happens if its request was decided."""
        self.game.sessions.leave(SessionClaim(joined.key, joined.claim))

    async def walk(self, ticket: Ticket) -> Walk:
        """Send a request of a cascade on its way, on the terms of its ticket."""
        return self.game.walk(ticket)

    def is_under_way(self, ticket: Ticket) -> bool:
        """Whether a ticket can still be decided: an outage may have cut it off."""
        return self.game.drafting.is_under_way(ticket)

    def scored(self, uncertainty: float, draft: Answer) -> None:
        """Watch the scores."""
        self.game.scores.add(uncertainty, draft)

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
        """Decide a request; none if its ticket was cut off."""
        decided = self.decide_now(uncertainty, ticket, note, features=features, unfinished=unfinished)
        return None if decided is None else (decided, carry_out(decided))

    def decide_now(
        self,
        uncertainty: float | Walk,
        ticket: Ticket,
        note: dict[str, Any],
        *,
        features: Features | None = None,
        unfinished: bool = False,
    ) -> Decided | None:
        """Decide a request, which is not carried out yet; none if its ticket was cut off."""
        game = self.game
        if not game.drafting.is_under_way(ticket):
            game.savings.drafted(Usage.from_note(note, DRAFT))  # the draft was made, and no entry has its note
            return None
        decision = game.decide(uncertainty, ticket, note, features)
        worth = not unfinished or game.router.worth_grading(decision)
        return Decided(decision, game.decision_id(decision.step), worth)

    async def durable(self) -> None:
        """Wait until everything that was written so far is durable."""
        await self.game.store.durable()

    def withdraw(self, ticket: Ticket, reason: str) -> None:
        """Withdraw a ticket without a decision; nothing happens if it was decided or withdrawn before."""
        self.game.drafting.withdraw(ticket, reason)

    def abandon(self, ticket: Ticket) -> None:
        """Forget a ticket that nobody is going to decide: it stays a loss of 1; nothing happens if it was decided."""
        self.game.drafting.abandon(ticket)

    async def no_score(self, ticket: Ticket, reason: str, *, ended: bool) -> None:
        """Withdraw the ticket of a request whose draft has no score."""
        self.no_score_now(ticket, reason, ended=ended)

    def no_score_now(self, ticket: Ticket, reason: str, *, ended: bool) -> None:
        """Withdraw the ticket of a request whose draft has no score."""
        self.game.unscored_log.add(reason)
        self.game.drafting.no_score(ticket, reason, ended=ended)

    async def resolve(
        self, decision: Decision, loss: float | None, note: dict[str, Any], cause: str = GRADER_FAILED
    ) -> None:
        """Record the loss of a draft, or forfeit the round for a cause if there is none."""
        self.game.outcomes.resolve(decision, loss, note, cause)

    async def resolve_stages(
        self,
        decision: Decision,
        answers: Sequence[StageAnswer],
        losses: Sequence[float | None],
        note: dict[str, Any],
    ) -> None:
        """Record what an audit of a cascade found."""
        self.game.outcomes.resolve_stages(decision, answers, losses, note)

    async def forfeit(self, decision: Decision, cause: str, *, draft_served: bool = False) -> bool:
        """Forfeit a round: loss 1; false, and nothing is recorded, if it has an outcome already."""
        return self.game.outcomes.forfeit(decision, cause, draft_served=draft_served)

    async def refuse(self, decision: Decision, reason: RefusalReason, *, draft_served: bool) -> bool:
        """Record that the expert refused to answer; false, and nothing is recorded, if the round has an outcome."""
        return self.game.outcomes.refuse(decision, reason, draft_served=draft_served)

    async def await_feedback(self, decision: Decision, note: dict[str, Any], answers: dict[str, str]) -> None:
        """Keep what is needed for feedback on an open round: the note of its outcome, and both answers."""
        self.game.outcomes.await_feedback(decision, note, answers)
