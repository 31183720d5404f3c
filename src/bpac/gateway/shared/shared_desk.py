"""A shared game as chat requests use it: the interface is described in ``games/desk.py``.

While Redis cannot be reached, requests get no ticket, and the expert answers them. A request whose decision may or may
not have been made when Redis was lost is answered by the expert, too; if it was made, its audit counts as a loss of 1.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from bpac.answer import Answer
from bpac.arguments import fraction
from bpac.dashboard.history.refusals import NOTED, RefusalReason
from bpac.errors import InputError, StoreError
from bpac.gateway.games.decision_ids import id_with_key
from bpac.gateway.games.desk import REPORTED, TICKET, Arrival, Decided, DecidedBefore, Joined, NoTicket
from bpac.gateway.games.drafting import DraftsUnderWay
from bpac.gateway.games.followed import NONE_FOLLOWED
from bpac.gateway.games.journal import now
from bpac.gateway.games.open_rounds import OpenRounds
from bpac.gateway.games.outcomes import DEADLINE, GRADER_FAILED
from bpac.gateway.games.savings import DRAFT, Savings
from bpac.gateway.games.sessions import NOTED as SESSION
from bpac.gateway.games.sessions import session_key
from bpac.gateway.shared.named_tickets import named_ticket
from bpac.gateway.shared.tickets_here import TicketsHere
from bpac.gateway.telemetry.counters import Metrics
from bpac.gateway.telemetry.unscored_log import UnscoredLog
from bpac.models.prompts import PROMPT_FEATURES
from bpac.routing.cascade.outcome import checked_outcome
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.recorded_walks import recorded_walk, walk_on_terms
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.cascade.walk import Walk
from bpac.routing.decision import Decision
from bpac.routing.learning.features import Features
from bpac.routing.recorded_terms import draft_scores
from bpac.routing.tickets.ticket import Ticket
from bpac.stores.redis.messages import SharedTicket, resolving
from bpac.stores.redis.named_decisions import NamedDecision, NamedTerms
from bpac.stores.redis.replica import Draft
from bpac.wire.usage import Usage

if TYPE_CHECKING:
    from bpac.gateway.shared.shared_game import SharedGame

T = TypeVar("T")

# Seconds until a request looks again whether the first one of its session is decided, at first and at most.
FIRST_LOOK, LONGEST_LOOK = 0.02, 0.25
# Draws that dither scores; callers must not be able to predict them.
_DITHER = random.SystemRandom()


class SharedDesk:
    """The desk of a shared game.

    Parameters
    ----------
    game: the game.
    metrics: counts requests that found Redis gone.
    """

    def __init__(self, game: "SharedGame", metrics: Metrics) -> None:
        self.game = game
        self._metrics = metrics
        self._tickets = TicketsHere(game)
        self.drafting = DraftsUnderWay(self._tickets, game.route)
        # Counts tokens that belong to no entry, until the next operation takes them along.
        self.savings = Savings()
        # Rounds that were decided in this gateway.
        self._open = OpenRounds()
        self._deciding: set[asyncio.Task[Any]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._unscored_log = UnscoredLog(game.route.name)
        metrics.count("bpac_without_store_total", by=0, route=game.route.name)

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
        return self.game.rules.feature_names

    @property
    def embeds_prompts(self) -> bool:
        """Whether the embedding of the prompt is among it."""
        return not set(PROMPT_FEATURES).isdisjoint(self.feature_names)

    async def arrive(self, expert_calls: int, joined: Joined | None = None) -> Arrival:
        """Take the ticket of a request that has just arrived, unless it came with the claim of its session."""
        skips = self.game.arrived(expert_calls)
        if joined is not None and joined.ticket is not None:
            return Arrival(joined.ticket, skips)
        try:
            shared = await self.game.side.arrive()
        except StoreError as error:
            refused = self._no_ticket(error)
            refused.last_terms = None if skips else self.game.outside.last_terms()
            raise refused from error
        return Arrival(self._under_way(shared), skips)

    def _no_ticket(self, error: StoreError) -> NoTicket:
        self._metrics.count("bpac_without_store_total", route=self.game.route.name)
        return NoTicket(str(error), cause=error.cause, remedy=error.remedy)

    def _under_way(self, shared: SharedTicket) -> Ticket:
        """Note a ticket that may be decided here."""
        # A ticket that was given out before a cut is void by now; its place must not be mistaken for another one's.
        self._forget_void(shared.generation)
        self._tickets.shared[shared.terms] = shared
        self.drafting.arrived(shared.terms)
        return shared.terms

    def _forget_void(self, generation: int) -> None:
        void = [terms for terms, ticket in self._tickets.shared.items() if ticket.generation < generation]
        for terms in void:
            del self._tickets.shared[terms]
            self.drafting.decided(terms)

    def portable(self, ticket: Ticket) -> str:
        """What another gateway needs to decide a ticket."""
        return self._tickets.shared[ticket].to_text()

    async def taken_over(self, text: str) -> Ticket | None:
        """A ticket of another gateway; none if it was cut off, or if an alarm has rung since."""
        side = self.game.side
        shared = side.messages.read_ticket(text)
        if shared is None:  # perhaps this gateway has not heard yet what was published before the ticket was given out
            with suppress(StoreError):
                await side.sent()
            shared = side.messages.read_ticket(text)
        return None if shared is None else self._under_way(shared)

    async def arrive_named(self, name: str) -> DecidedBefore | Ticket | None:
        """The ticket of a name, or its decision; none if an alarm has rung since another gateway gave it out."""
        side = self.game.side
        try:
            found = await side.join_name(named_ticket(self.game.route, name))
        except StoreError as error:
            raise self._no_ticket(error) from error
        if isinstance(found, NamedDecision):
            return self._decided_before(found)
        if isinstance(found, SharedTicket):
            return self._under_way(found)
        ticket = side.messages.ticket_of(found.generation, found.terms, found.scores - 1)
        return None if ticket is None else self._under_way(ticket)

    async def decided_under(self, name: str) -> DecidedBefore | None:
        """The decision of the ticket with a name, wherever it was made; none if there is none (any more)."""
        found = await self.game.side.find_name(name)
        return None if found is None else self._decided_before(found)

    def _decided_before(self, found: NamedDecision) -> DecidedBefore:
        return DecidedBefore(self._decided_by(found), found.note.get(REPORTED), found.ticket.to_text())

    def _decided_by(self, found: NamedDecision) -> Decided:
        step = found.decision.step
        return Decided(found.decision, id_with_key(self.game.store.secret, self.game.kept, step, found.key))

    def done_elsewhere(self, ticket: Ticket) -> bool:
        """Whether the journal says that a ticket of this gateway was decided or withdrawn; then it is forgotten."""
        route = self.game.state.route
        if ticket not in self._tickets.shared or ticket.epoch != route.epoch or route.by_arrival is None:
            return False
        if route.by_arrival.arrivals.is_open(ticket.number):
            return False
        del self._tickets.shared[ticket]
        self.drafting.decided(ticket)
        return True

    async def join_session(self, caller: str, session: str) -> Joined:
        """The decision that a request of a session follows, or the claim to begin an episode, which is a ticket."""
        game, pause = self.game, FIRST_LOOK
        key = session_key(game.store.secret, caller, session)
        while True:
            try:
                found = await game.side.join_name(game.sessions.named(key))
            except StoreError as error:
                raise self._no_ticket(error) from error
            if isinstance(found, NamedDecision):
                return Joined(key, 0, self._decided_by(found))
            if isinstance(found, SharedTicket):
                return Joined(key, found.terms.number, None, self._under_way(found))
            # Another request of the session is on its way to its decision, here or at another gateway.
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK)

    def leave_session(self, joined: Joined) -> None:
        """Nothing to do: the claim ends with the ticket, which is decided, withdrawn or cut off."""

    async def walk(self, ticket: Ticket) -> Walk:
        """Send a request of a cascade on its way, on the terms of its ticket."""
        policy, shared = self._cascade(), self._tickets.shared.get(ticket)
        # A ticket that was cut off while the request waited has no rules; its walk is never decided.
        return walk_on_terms(policy, ticket if shared else ticket._replace(score=0), shared.joined if shared else ())

    def _cascade(self) -> Cascade:
        policy = self.game.rules.cascade
        if policy is None:
            raise TypeError("only a cascade asks several models")
        return policy

    def is_under_way(self, ticket: Ticket) -> bool:
        """Whether a ticket can still be decided, as far as it is known here."""
        shared = self._tickets.shared.get(ticket)
        return shared is not None and shared.generation >= self.game.side.messages.generation

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
        """Decide a request; none if its ticket was cut off, or if Redis is gone: then the expert answers."""
        shared = self._tickets.shared.get(ticket)
        if shared is None:
            self.savings.drafted(Usage.from_note(note, DRAFT))
            return None
        draft: Draft
        if isinstance(uncertainty, Walk):
            draft = recorded_walk(self._cascade(), uncertainty, shared.joined)
        else:
            known = features if self.game.rules.learns else None
            draft = draft_scores(self.game.rules, uncertainty, _DITHER.random(), shared.models, known)
        # A task of its own: from the decision on the round counts, even if its caller leaves while this waits.
        task = asyncio.create_task(
            self._decided(ticket, shared, draft, note, carry_out=carry_out, unfinished=unfinished)
        )
        self._deciding.add(task)
        task.add_done_callback(self._deciding.discard)
        return await asyncio.shield(task)

    async def _decided(
        self,
        ticket: Ticket,
        shared: SharedTicket,
        draft: Draft,
        note: dict[str, Any],
        *,
        carry_out: Callable[[Decided], T],
        unfinished: bool,
    ) -> tuple[Decided, T] | None:
        game = self.game
        del self._tickets.shared[ticket]
        self.drafting.decided(ticket)
        noted = self._noted(note)
        try:
            decision = await game.side.decide(shared, draft, noted, self._named(note))
        except StoreError:
            decision = None
        if decision is None:
            self.savings.drafted(Usage.from_note(noted, DRAFT))
            return None
        if decision.call_expert:
            self._open.wait_for(decision, game.route)
        self.drafting.release()
        key = game.side.messages.key(decision.step)
        worth = not unfinished or game.router.worth_grading(decision)
        decided = Decided(decision, id_with_key(game.store.secret, game.kept, decision.step, key), worth)
        return decided, carry_out(decided)

    def _named(self, note: Mapping[str, Any]) -> NamedTerms | None:
        """The name under which a decision is kept: of its session, or of the ticket that its caller holds."""
        if SESSION in note:
            return self.game.sessions.named(note[SESSION])
        return named_ticket(self.game.route, note[TICKET]) if TICKET in note else None

    async def durable(self) -> None:
        """Nothing to wait for: a decision that Redis has acknowledged is as durable as Redis makes it."""

    def withdraw(self, ticket: Ticket, reason: str) -> None:
        """Withdraw a ticket without a decision; nothing happens if it was decided or withdrawn before."""
        self.drafting.withdraw(ticket, reason)

    def abandon(self, ticket: Ticket) -> None:
        """Forget a ticket that nobody is going to decide: it stays a loss of 1; nothing happens if it was decided."""
        self.drafting.abandon(ticket)

    async def no_score(self, ticket: Ticket, reason: str, *, ended: bool) -> None:
        """Withdraw the ticket of a request whose draft has no score."""
        self._unscored_log.add(reason)
        self.drafting.no_score(ticket, reason, ended=ended)

    async def resolve(
        self, decision: Decision, loss: float | None, note: dict[str, Any], cause: str = GRADER_FAILED
    ) -> None:
        """Record the loss of a draft, or forfeit the round for a cause if there is none."""
        self._open.close(decision.step)
        try:
            known = None if loss is None else fraction(loss, "loss")
        except InputError:  # a grader that returns NaN has not found a loss
            known = None
        self.game.side.tell(
            resolving(decision.step, known, self._noted(note), cause="" if known is not None else cause)
        )

    async def resolve_stages(
        self, decision: Decision, answers: Sequence[StageAnswer], losses: Sequence[float | None], note: dict[str, Any]
    ) -> None:
        """Record what an audit of a cascade found."""
        self._open.close(decision.step)
        part = decision.cascade
        assert part is not None  # the desk of a cascade decided it
        # Checked here, where a mistake is found with its cause: the folder takes it as it is.
        stages = checked_outcome(decision, answers, losses, self._cascade())
        accepted = decision.uncertainty < decision.threshold
        loss = (stages.losses[part.stage - 1] or 0.0) if accepted else 0.0
        self.game.side.tell(resolving(decision.step, loss, self._noted(note), stages=stages))

    async def forfeit(self, decision: Decision, cause: str, *, draft_served: bool = False) -> bool:
        """Forfeit a round: loss 1; false if it has an outcome already, or if Redis cannot be told."""
        if decision.step not in self._open:
            return False
        note = self._noted(self._open.close(decision.step))
        return await self._recorded(resolving(decision.step, None, note, cause=cause, draft_served=draft_served))

    async def refuse(self, decision: Decision, reason: RefusalReason, *, draft_served: bool) -> bool:
        """Record that the expert refused to answer; false if the round has an outcome, or if Redis cannot be told."""
        if decision.step not in self._open:
            return False
        note = self._noted({**self._open.close(decision.step), NOTED: str(reason)})
        return await self._recorded(resolving(decision.step, None, note, draft_served=draft_served, refused=True))

    async def _recorded(self, operation: tuple[Any, ...]) -> bool:
        """Whether Redis has an outcome: a draft may be served in the expert's place only then."""
        try:
            await self.game.side.told(operation)
        except StoreError:
            self.game.side.tell(operation)  # it is kept until Redis is back; a round that is counted twice is found
            return False
        return True

    async def await_feedback(self, decision: Decision, note: dict[str, Any], answers: dict[str, str]) -> None:
        """Keep what is needed for feedback on an open round: the note of its outcome, and both answers."""
        self._open.keep(decision.step, note, answers)

    def answers(self, step: int) -> dict[str, str] | None:
        """Both answers of a round that waits for feedback; none if they are not kept."""
        return self._open.answers(step)

    def waits_for(self, step: int) -> bool:
        """Whether a round of this gateway is open."""
        return step in self._open

    def closed(self, step: int) -> dict[str, Any]:
        """Stop waiting for the outcome of a round, and return what is noted with it."""
        self._open.forget_answers(step)
        return self._noted(self._open.close(step))

    @staticmethod
    def check_loss(loss: float) -> None:
        """Raise ``InputError`` unless this is a loss."""
        fraction(loss, "loss")

    def sweep(self, time_now: float) -> None:
        """Give up on the drafts and the outcomes whose deadline has passed."""
        self.drafting.sweep(time_now)
        self._adopt_orphans()
        late = self._open.late(time_now)
        if late and self.game.sessions.loss_is_reported:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._give_up_silent(late))
        else:
            self._give_up(late)

    def _give_up(self, late: Sequence[Decision]) -> None:
        for decision in late:
            self.game.side.tell(resolving(decision.step, None, self.closed(decision.step), cause=DEADLINE))

    async def _give_up_silent(self, late: Sequence[Decision]) -> None:
        """Give up on the outcomes of episodes that had no request lately, at any gateway."""
        try:
            silent = await self.game.sessions.silent(late)
        except StoreError:
            return  # it is asked again; until then the round is open, which counts as a loss of 1
        for decision in late:
            if decision not in silent:
                self._open.extend(decision, self.game.route)
        self._give_up([decision for decision in silent if decision.step in self._open])

    def _adopt_orphans(self) -> None:
        """The folder watches the deadlines of audits that wait for feedback and whose gateway is gone."""
        folder = self.game.folder
        if not folder.token or folder.state is None or not folder.members:
            return
        for step, owner in folder.state.owners.by_step.items():
            if owner not in folder.members and step not in self._open:
                decision = folder.state.route.find(step)
                if decision is not None and step not in folder.state.route.given_up:
                    self._open.wait_for(decision, self.game.route)

    async def stop(self) -> None:
        """Wait for decisions that are being made."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        if self._deciding:
            await asyncio.wait(self._deciding, timeout=self.game.side.timeout + 1.0)

    def _noted(self, note: Mapping[str, Any]) -> dict[str, Any]:
        noted = dict(self.savings.with_late_tokens({"at": now(), **note}))
        self.savings.late, self.savings.late_followed = {}, NONE_FOLLOWED
        return noted
