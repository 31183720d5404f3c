"""The expert of a route: it answers for the caller, and the draft is graded against its answer.

An expert call is a task of its own. From the decision on the round counts, so the call goes on when its caller leaves,
and however it ends the journal gets an outcome:

1. The decision is durable before the expert is asked: a round that the expert has seen must survive a crash.
2. The answer is sent to the caller as it arrives, unless the decision serves the draft.
3. If the expert refuses what was asked, the refusal is recorded. If it fails, the round is forfeited: loss 1. In both
   cases the caller may get the draft instead, but only after the journal says so.
4. Otherwise the draft is graded, and its loss recorded; a draft or a grade that does not come is a forfeit.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from bpac.answer import Answer
from bpac.dashboard.history.refusals import RefusalReason
from bpac.errors import AnswerError, ModelError, StoreError, Unavailable
from bpac.gateway.chat.experts.expert_result import ExpertResult
from bpac.gateway.chat.experts.grading import Grader, graded
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.upstreams.model import Model, deployment_note
from bpac.gateway.chat.upstreams.upstream_errors import UpstreamRefused
from bpac.gateway.games.desk import Decided, GameDesk
from bpac.gateway.games.money.savings import COUNTED, expert_note
from bpac.gateway.games.rounds.outcomes import DRAFT_CANCELLED, DRAFT_FAILED, EXPERT_FAILED
from bpac.gateway.telemetry.metrics.stages import Stages
from bpac.models.refusals import is_refused
from bpac.routing.decision import Decision
from bpac.wire.rendering import event_stream
from bpac.wire.stream import Transcript, without_usage
from bpac.wire.usage import NOTHING, Meter, Usage

log = logging.getLogger("bpac.gateway")

# Waits for the draft that is graded; none if it failed or was cancelled.
WholeAnswer = Callable[[], Awaitable[Answer | None]]

# Why a caller gets the draft instead of the expert's answer (header x-bpac-fallback).
FAILED, REFUSED = "expert-failed", "expert-refused"


def is_refusal(error: ModelError) -> bool:
    """Whether a server refused a request because of what was asked (MATH section 13).

    >>> is_refusal(ModelError("temperature is not supported", 400)), is_refusal(ModelError("no such key", 401))
    (True, False)
    """
    return is_refused(error.status)


@dataclass(frozen=True, slots=True)
class ExpertCall:
    """A round in which the expert is asked.

    Parameters
    ----------
    game: the game that the round belongs to.
    decided: what was decided.
    request: what was asked.
    result: where the caller waits, if the decision serves the expert's answer.
    draft: waits for the draft that is graded.
    draft_on_failure: whether the caller gets the draft if the expert fails.
    draft_cancelled: whether the draft is not finished, because its grade would change nothing.
    """

    game: GameDesk
    decided: Decided
    request: ChatRequest
    result: ExpertResult
    draft: WholeAnswer
    draft_on_failure: bool
    draft_cancelled: bool

    @property
    def decision(self) -> Decision:
        """What was decided."""
        return self.decided.decision


@dataclass(slots=True)
class ExpertLoad:
    """The calls of an expert's model that are under way, from all routes with it.

    Parameters
    ----------
    calls: how many.
    """

    calls: int = 0


@dataclass(frozen=True, slots=True)
class Expert:
    """The expert of a route, and the grader that compares drafts with its answers.

    Parameters
    ----------
    model: the expert's model.
    grader: computes losses; none if losses are reported from outside.
    stages: measures how long each stage takes.
    deadline: seconds after which a stream that has not ended is given up.
    load: calls of the model that are under way.
    """

    model: Model
    grader: Grader | None
    stages: Stages
    deadline: float
    load: ExpertLoad = field(default_factory=ExpertLoad)

    async def answer_and_grade(self, call: ExpertCall) -> None:
        """Get the expert's answer and grade the draft; however this ends, the round gets an outcome."""
        game = call.game
        meter = Meter()
        answer = await self._answered(call, meter)
        if answer is None:
            return
        note = expert_note(answer, meter) | deployment_note("expert", call.result.deployment)
        game.savings.answered(meter.lost)
        try:
            await self._grade(call, answer, meter, note)
        except asyncio.CancelledError:
            game.savings.outcome_unused(note)
            raise

    async def _grade(self, call: ExpertCall, answer: Answer, meter: Meter, note: dict[str, Any]) -> None:
        game, decision = call.game, call.decision
        draft = await call.draft()
        if draft is None:
            await game.resolve(decision, None, note, DRAFT_CANCELLED if call.draft_cancelled else DRAFT_FAILED)
            return
        if self.grader is None:
            # The outcome may come after a restart, which forgets the note; the tokens are paid for in any case.
            game.savings.answered(meter.answered)
            note[COUNTED] = True
            await game.await_feedback(decision, note, {"draft": draft.text, "expert": answer.text})
            return
        with self.stages("grading"):
            grade = await graded(self.grader, call.request.question, draft, answer)
        if grade.usage != NOTHING:
            note |= grade.usage.to_note("judge")
        await game.resolve(decision, grade.loss, note)

    async def answer_only(self, request: ChatRequest, count: Callable[[Usage], object], result: ExpertResult) -> None:
        """Get the expert's answer to a request that is not a round, so that nothing is graded.

        Parameters
        ----------
        request: what is asked.
        count: called with the tokens that were used.
        result: where the answer appears.
        """
        meter = Meter()
        try:
            with self.stages("expert"):
                await self._fetched(request, result, meter, stream=request.stream)
        finally:
            count(meter.take())

    async def _answered(self, call: ExpertCall, meter: Meter) -> Answer | None:
        """The expert's answer, which is also passed on to the caller; none if it failed, with the outcome recorded."""
        try:
            return await self._passed_on(call, meter)
        finally:
            if not call.result.ended:  # the store failed while an outcome was recorded
                call.result.fail(Unavailable("the expert's answer is lost"))

    async def _passed_on(self, call: ExpertCall, meter: Meter) -> Answer | None:
        game, result = call.game, call.result
        try:
            with self.stages("journal"):
                await game.durable()
            stream = call.request.stream and not call.decision.serve_draft
            with self.stages("expert"):
                answer = await self._fetched(call.request, result, meter, stream=stream)
        except ModelError as error:
            game.savings.answered(meter.take())  # before the outcome, whose note records it
            reason = await _draft_instead(call, error)
            if reason:
                result.serve_draft(reason)
            else:
                result.fail(error)
        except asyncio.CancelledError:
            game.savings.answered(meter.take())
            result.fail(Unavailable("the gateway stops"))
            raise
        except StoreError as error:  # it was logged; nothing can be recorded, so the round stays open: loss 1
            result.fail(error)
        except Exception as error:  # whatever it is, the caller must not wait forever
            game.savings.answered(meter.take())
            log.error("audit failed", extra={"decision": call.decided.decision_id}, exc_info=error)
            result.fail(error)
            await game.forfeit(call.decision, EXPERT_FAILED)
        else:
            result.end()
            return answer
        return None

    async def _fetched(self, request: ChatRequest, result: ExpertResult, meter: Meter, *, stream: bool) -> Answer:
        self.load.calls += 1
        try:
            return await self._asked(request, result, meter, stream=stream)
        finally:
            self.load.calls -= 1

    async def _asked(self, request: ChatRequest, result: ExpertResult, meter: Meter, *, stream: bool) -> Answer:
        model = self.model.for_request()
        if not stream:
            completion = await model.whole(request.expert_body(stream=False), meter)
            result.deployment = model.deployment
            result.put(completion.raw)
            return completion.answer
        transcript = Transcript()
        try:
            asked = request.expert_body(stream=True)
            async with aclosing(model.stream(asked, meter, within=self.deadline)) as arriving:
                async for events in arriving:
                    result.deployment = model.deployment
                    transcript.add(events)
                    if shown := events if request.include_usage else without_usage(events):
                        result.put(event_stream(shown))
            return transcript.answer()
        except AnswerError as error:
            raise model.unusable_stream() from error


async def _draft_instead(call: ExpertCall, error: ModelError) -> str:
    """Record that the expert did not answer; the reason if the caller gets the draft instead, empty if not."""
    decision, begun = call.decision, call.result.begun
    if is_refusal(error) and not begun:
        # An accepted draft is what the caller would have got if the coin had not called the expert.
        instead = decision.uncertainty < decision.threshold and not decision.serve_draft
        reason = RefusalReason.of(error.status, error.fields if isinstance(error, UpstreamRefused) else ())
        recorded = await call.game.refuse(decision, reason, draft_served=instead)
        return REFUSED if instead and recorded else ""
    instead = call.draft_on_failure and not begun
    recorded = await call.game.forfeit(decision, EXPERT_FAILED, draft_served=instead)
    # The outcome of a round that was forfeited before, at its deadline for example, cannot be changed: no draft then.
    return FAILED if instead and recorded else ""
