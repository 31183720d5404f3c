"""A shared game as chat requests use it: the interface is described in ``games/desk.py``.

A request whose decision may or may not have been made when Redis was lost is answered by the expert; if it was made,
its audit counts as a loss of 1.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from bpac.answer import Answer
from bpac.errors import StoreError
from bpac.gateway.games.desk import TICKET, Decided
from bpac.gateway.games.money.savings import DRAFT
from bpac.gateway.games.rounds.decision_ids import id_with_key
from bpac.gateway.games.rounds.sessions import NOTED as SESSION
from bpac.gateway.shared.desk.named_tickets import named_ticket
from bpac.gateway.shared.desk.shared_arrivals import SharedArrivals
from bpac.gateway.shared.desk.shared_outcomes import SharedOutcomes
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.models.prompts import PROMPT_FEATURES
from bpac.routing.cascade.recorded_walks import recorded_walk, walk_on_terms
from bpac.routing.cascade.walk import Walk
from bpac.routing.learning.features import Features
from bpac.routing.recorded_terms import draft_scores
from bpac.routing.tickets.ticket import Ticket
from bpac.stores.redis.messages import SharedTicket
from bpac.stores.redis.replicas.batches import Draft
from bpac.stores.redis.replicas.named_decisions import NamedTerms
from bpac.wire.usage import Usage

if TYPE_CHECKING:
    from bpac.gateway.shared.shared_game import SharedGame

T = TypeVar("T")

# Draws that dither scores; callers must not be able to predict them.
_DITHER = random.SystemRandom()


class SharedDesk(SharedArrivals, SharedOutcomes):
    """The desk of a shared game.

    Parameters
    ----------
    game: the game.
    metrics: counts requests that found Redis gone.
    """

    def __init__(self, game: "SharedGame", metrics: Metrics) -> None:
        SharedArrivals.__init__(self, game, metrics)
        SharedOutcomes.__init__(self, game)
        self._deciding: set[asyncio.Task[Any]] = set()

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

    def scored(self, uncertainty: float, draft: Answer) -> None:
        """Watch the scores."""
        self.game.scores.add(uncertainty, draft)

    async def walk(self, ticket: Ticket) -> Walk:
        """Send a request of a cascade on its way, on the terms of its ticket."""
        policy, shared = self._cascade(), self._tickets.shared.get(ticket)
        # A ticket that was cut off while the request waited has no rules; its walk is never decided.
        return walk_on_terms(policy, ticket if shared else ticket._replace(score=0), shared.joined if shared else ())

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

    def sweep(self, time_now: float) -> None:
        """Give up on the drafts and the outcomes whose deadline has passed."""
        self.drafting.sweep(time_now)
        self.give_up_late(time_now)

    async def stop(self) -> None:
        """Wait for decisions that are being made."""
        await self.stop_looking()
        if self._deciding:
            await asyncio.wait(self._deciding, timeout=self.game.side.timeout + 1.0)
