"""Games whose journals another process owns, as chat requests of a front use them (``games/desk.py``)."""

import asyncio
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from bpac.answer import Answer
from bpac.dashboard.history.refusals import RefusalReason
from bpac.gateway.games.desk import Arrival, Decided, Joined
from bpac.gateway.games.rounds.outcomes import GRADER_FAILED, RESTART
from bpac.gateway.telemetry.request_ids import CURRENT
from bpac.gateway.telemetry.score_watch import is_impossible, text_of
from bpac.gateway.workers.front.owner_errors import OwnerLate, OwnerLost
from bpac.gateway.workers.front.owner_link import OwnerLink
from bpac.gateway.workers.messages import walk_from_list
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.cascade.walk import Walk
from bpac.routing.decision import Decision
from bpac.routing.learning.features import Features
from bpac.routing.tickets.ticket import Ticket
from bpac.wire.usage import NOTHING, Usage

T = TypeVar("T")


class GameFacts(NamedTuple):
    """What a front knows of a game.

    Parameters
    ----------
    number: its number in the store.
    segment: the segment of the traffic.
    feature_names: what scores are learned from.
    embeds_prompts: whether the embedding of the prompt is among it.
    """

    number: int
    segment: str
    feature_names: tuple[str, ...]
    embeds_prompts: bool


class RemoteSavings:
    """Passes counts of tokens on to the owner.

    Parameters
    ----------
    link: the connection to the owner.
    number: the number of the game.
    """

    __slots__ = ("_link", "_number")

    def __init__(self, link: OwnerLink, number: int) -> None:
        self._link = link
        self._number = number

    def drafted(self, usage: Usage) -> None:
        """Count a draft that ended, or was cut off, without a decision or after it."""
        if usage != NOTHING:
            self._link.tell("drafted", self._number, list(usage))

    def answered(self, usage: Usage) -> None:
        """Count tokens of the expert that belong to no outcome."""
        if usage != NOTHING:
            self._link.tell("answered", self._number, list(usage))

    def outcome_unused(self, note: Mapping[str, Any]) -> None:
        """Count the tokens in the note of an outcome that is not recorded."""
        self._link.tell("outcome_unused", self._number, dict(note))

    def follow(self, decision: Decision, answered_by: str, usage: Usage) -> None:
        """Count a later request of an episode."""
        self._link.tell("follow", self._number, decision.to_list(), answered_by, list(usage))


class RemoteDesk:
    """The desk of a game that the owner has open.

    Parameters
    ----------
    link: the connection to the owner.
    facts: what is known of the game.
    cascade: whether the route has more than two models.
    timed: called with the seconds that each decision took, from the question to the durable reply (default: ignored).
    """

    def __init__(
        self, link: OwnerLink, facts: GameFacts, *, cascade: bool, timed: Callable[[float], None] | None = None
    ) -> None:
        self._timed = timed
        self._link = link
        self._facts = facts
        self._cascade = cascade
        self.number = facts.number
        self._walks: dict[Ticket, Walk] = {}
        self.segment = facts.segment
        self.feature_names: Sequence[str] = facts.feature_names
        self.embeds_prompts = facts.embeds_prompts
        self.savings = RemoteSavings(link, facts.number)

    async def arrive(self, expert_calls: int, joined: Joined | None = None) -> Arrival:
        """Take the ticket of a request that has just arrived."""
        terms, skips_draft, walk = await self._asked(
            self._give_back, "arrive", self.number, expert_calls, self._cascade
        )
        ticket = Ticket._make(terms)
        if walk is not None:
            self._walks[ticket] = walk_from_list(walk, ticket)
        return Arrival(ticket, skips_draft)

    async def join_session(self, caller: str, session: str) -> Joined:
        """The decision that a request of a session follows, or the claim to begin an episode."""
        while True:
            reply = await self._asked(self._leave_late, "join_session", self.number, caller, session)
            if reply is not None:
                key, claim, episode = reply
                return Joined(key, claim, episode and Decided(Decision.from_list(episode[0]), episode[1]))
            # Another request of the session is still on its way to its decision.

    async def _asked(self, late: Callable[[Any], None], *question: Any) -> Any:
        """The reply to a question before the decision, which may be asked again."""
        try:
            return await self._link.ask(*question, late=late)
        except OwnerLate:
            raise
        except OwnerLost:
            # What was given out, if anything, went with the owner or the connection. There may be another one soon.
            return await self._link.ask(*question, late=late)

    def _leave_late(self, reply: list[Any] | None) -> None:
        """Give back a claim that came too late: its request has failed, or its caller has left."""
        if reply is not None:
            self._link.tell("leave_session", self.number, *reply[:2])

    def leave_session(self, joined: Joined) -> None:
        """Give a claim back; nothing happens if its request was decided."""
        self._link.tell("leave_session", self.number, joined.key, joined.claim)

    def _give_back(self, reply: list[Any]) -> None:
        """Withdraw a ticket that came too late: its request has failed."""
        self._link.tell("withdraw", self.number, reply[0], "error")

    async def walk(self, ticket: Ticket) -> Walk:
        """Send a request of a cascade on its way, on the terms of its ticket."""
        return self._walks[ticket]

    def is_under_way(self, ticket: Ticket) -> bool:
        """The owner knows, and says so when the request is decided."""
        return True

    def scored(self, uncertainty: float, draft: Answer) -> None:
        """Watch the scores."""
        text = zlib.crc32(text_of(draft).encode("utf-8", "replace"))
        self._link.tell("scored", self.number, uncertainty, text, is_impossible(draft))

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
        """Decide a request; none if its ticket was cut off, or if the owner is lost: then the expert answers."""
        self._walks.pop(ticket, None)
        future: asyncio.Future[tuple[Decided, T] | None] = asyncio.get_running_loop().create_future()
        context, asked = copy_context(), perf_counter()

        def take(value: Any, error: Exception | None) -> None:
            made: tuple[Decided, T] | None = None
            if error is None and value is not None:
                if self._timed is not None:
                    self._timed(perf_counter() - asked)
                values, decision_id, worth = value
                decided = Decided(Decision.from_list(values), decision_id, worth)
                # Even if the caller has left meanwhile: the round counts. In the context of the request, so that its
                # expert call belongs to its trace and is logged with its id.
                made = decided, context.run(carry_out, decided)
            if not future.done():
                if error is not None and not isinstance(error, OwnerLost):
                    future.set_exception(error)
                else:
                    future.set_result(made)

        score, answers = (None, walk_answers(uncertainty)) if isinstance(uncertainty, Walk) else (uncertainty, None)
        known = features if features is None or isinstance(features, Mapping) else list(features)
        self._link.ask_with(
            take, self._forfeit_late, "decide", self.number, ticket, [score, answers], note, [known, unfinished]
        )
        return await future

    def _forfeit_late(self, reply: Any) -> None:
        """A decision came too late: the expert has answered its request without it, and nobody grades its draft."""
        if reply is not None:
            decision = Decision.from_list(reply[0])
            if decision.call_expert:
                self._link.tell("forfeit", self.number, decision.step, RESTART, False)

    async def durable(self) -> None:
        """Nothing to wait for: decisions are durable when they are returned."""

    def withdraw(self, ticket: Ticket, reason: str) -> None:
        """Withdraw a ticket without a decision; nothing happens if it was decided or withdrawn before."""
        self._walks.pop(ticket, None)
        self._link.tell("withdraw", self.number, ticket, reason)

    async def no_score(self, ticket: Ticket, reason: str, *, ended: bool) -> None:
        """Withdraw the ticket of a request whose draft has no score."""
        self._walks.pop(ticket, None)
        self._link.tell("no_score", self.number, ticket, reason, ended, CURRENT.get())

    async def resolve(
        self, decision: Decision, loss: float | None, note: dict[str, Any], cause: str = GRADER_FAILED
    ) -> None:
        """Record the loss of a draft, or forfeit the round for a cause if there is none."""
        await self._settled(note, "resolve", self.number, decision.step, loss, note, cause)

    async def resolve_stages(
        self,
        decision: Decision,
        answers: Sequence[StageAnswer],
        losses: Sequence[float | None],
        note: dict[str, Any],
    ) -> None:
        """Record what an audit of a cascade found."""
        await self._settled(
            note, "resolve_stages", self.number, decision.step, list(answers), list(losses), note
        )  # fmt: skip

    async def forfeit(self, decision: Decision, cause: str, *, draft_served: bool = False) -> bool:
        """Forfeit a round: loss 1; false, and nothing is recorded, if it has an outcome already."""
        return bool(await self._link.ask("forfeit", self.number, decision.step, cause, draft_served))

    async def refuse(self, decision: Decision, reason: RefusalReason, *, draft_served: bool) -> bool:
        """Record that the expert refused to answer; false, and nothing is recorded, if the round has an outcome."""
        return bool(await self._link.ask("refuse", self.number, decision.step, str(reason), draft_served))

    async def await_feedback(self, decision: Decision, note: dict[str, Any], answers: dict[str, str]) -> None:
        """Keep what is needed for feedback on an open round: the note of its outcome, and both answers."""
        await self._settled(note, "await_feedback", self.number, decision.step, note, answers)

    async def _settled(self, note: dict[str, Any], kind: str, *values: Any) -> None:
        """Record an outcome; if the owner was lost, the round counts as a loss there, and its tokens are counted.

        There is no reply to wait for: an outcome that the owner cannot record, or that is lost with it, leaves the
        round open in the journal, where it counts as a loss.
        """
        if not self._link.is_up:
            await self._link.up()
            self.savings.outcome_unused(note)
            return
        self._link.tell(kind, *values)


def walk_answers(walk: Walk) -> list[Any]:
    """The answers of a walk, for a message."""
    return [None if answer is None else list(answer) for answer in walk.answers]
