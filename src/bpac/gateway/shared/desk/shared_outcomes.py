"""Outcomes of the rounds of a shared game that were decided in this gateway."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bpac.arguments import fraction
from bpac.dashboard.history.refusals import NOTED, RefusalReason
from bpac.errors import InputError, StoreError
from bpac.gateway.games.journal import now
from bpac.gateway.games.money.followed import NONE_FOLLOWED
from bpac.gateway.games.money.savings import Savings
from bpac.gateway.games.rounds.open_rounds import OpenRounds
from bpac.gateway.games.rounds.outcomes import DEADLINE, GRADER_FAILED
from bpac.routing.cascade.outcome import checked_outcome
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.decision import Decision
from bpac.stores.redis.messages import resolving

if TYPE_CHECKING:
    from bpac.gateway.shared.shared_game import SharedGame


class SharedOutcomes:
    """The part of a desk that is about rounds after their decision.

    Parameters
    ----------
    game: the game.
    """

    def __init__(self, game: "SharedGame") -> None:
        self.game = game
        # Counts tokens that belong to no entry, until the next operation takes them along.
        self.savings = Savings()
        # Rounds that were decided in this gateway.
        self._open = OpenRounds()
        self._looking: asyncio.Task[None] | None = None

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

    def give_up_late(self, time_now: float) -> None:
        """Give up on the outcomes whose deadline has passed."""
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

    async def stop_looking(self) -> None:
        """Stop asking for requests of episodes."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    def _cascade(self) -> Cascade:
        policy = self.game.rules.cascade
        if policy is None:
            raise TypeError("only a cascade asks several models")
        return policy

    def _noted(self, note: Mapping[str, Any]) -> dict[str, Any]:
        noted = dict(self.savings.with_late_tokens({"at": now(), **note}))
        self.savings.late, self.savings.late_followed = {}, NONE_FOLLOWED
        return noted
