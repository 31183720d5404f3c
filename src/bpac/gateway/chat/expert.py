"""The expert at work: for the caller, if one waits, and for the grader, whoever waits."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from bpac.answer import Answer
from bpac.errors import AnswerError, ModelError, Unavailable
from bpac.gateway.chat.channel import Channel
from bpac.gateway.chat.grading import Grader, graded
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.upstream import Upstream
from bpac.gateway.games.live_game import DRAFT_CANCELLED, DRAFT_FAILED, EXPERT_FAILED, LiveGame
from bpac.gateway.games.savings import Savings
from bpac.gateway.telemetry.stages import Stages
from bpac.models.retrying import LATER
from bpac.routing.decision import Decision
from bpac.wire.rendering import event_stream
from bpac.wire.stream import Transcript, without_usage

log = logging.getLogger("bpac.gateway")

# The draft to grade, when it is there; none if it never will be.
Drafted = Callable[[], Awaitable[Answer | None]]

# Why a caller gets the draft in the place of the expert's answer.
FAILED, REFUSED = "expert-failed", "expert-refused"
# Refusals that are about the operator's key, account or rate, not about what was asked.
OPERATORS = LATER | {401, 402, 403, 407}


def is_refusal(error: ModelError) -> bool:
    """Whether a server refused a request for what was asked in it (MATH section 13).

    >>> is_refusal(ModelError("temperature is not supported", 400)), is_refusal(ModelError("no such key", 401))
    (True, False)
    """
    return error.status is not None and 400 <= error.status < 500 and error.status not in OPERATORS


@dataclass(frozen=True, slots=True)
class ExpertCall:
    """A round in which the expert is asked.

    Parameters
    ----------
    keeper: of its game.
    decision: what was decided.
    request: what was asked.
    channel: where the caller waits for the expert's answer, if the caller gets that.
    draft_instead: whether the caller gets the draft should the expert fail.
    draft_cancelled: whether the draft is not finished, because its grade would change nothing.
    """

    keeper: LiveGame
    decision: Decision
    request: ChatRequest
    channel: Channel
    draft_instead: bool
    draft_cancelled: bool


@dataclass(frozen=True, slots=True)
class Auditor:
    """The expert of a route and its grader.

    Parameters
    ----------
    expert: the model.
    grader: tells the loss; none if that comes from outside.
    stages: of its route.
    deadline: seconds after which a stream that does not end is given up.
    """

    expert: Upstream
    grader: Grader | None
    stages: Stages
    deadline: float

    async def audit(self, round_: ExpertCall, drafted: Drafted) -> None:
        """Fetch the expert's answer and grade the draft by it; however this ends, the round is accounted for."""
        keeper, decision = round_.keeper, round_.decision
        expert = await self._answered(round_)
        if expert is None:
            return
        note: dict[str, Any] = {"expert_tokens": expert.completion_tokens}
        draft = await drafted()
        if draft is None:
            keeper.resolve(decision, None, note, DRAFT_CANCELLED if round_.draft_cancelled else DRAFT_FAILED)
            return
        if self.grader is None:
            keeper.remember(decision, note, {"draft": draft.text, "expert": expert.text})
            return
        with self.stages("grading"):
            grade = await graded(self.grader, round_.request.question, draft, expert)
        if grade.tokens:
            note["judge_tokens"] = grade.tokens
        keeper.resolve(decision, grade.loss, note)

    async def answer(self, request: ChatRequest, channel: Channel, savings: Savings) -> None:
        """Fetch the expert's answer for a caller whose draft has no score; nobody grades it."""
        try:
            with self.stages("expert"):
                expert = await self._fetched(request, channel, stream=request.stream)
            savings.answered(expert.completion_tokens)
        except asyncio.CancelledError:
            channel.end(Unavailable("the caller has left"))
            raise
        except Exception as error:  # whatever it is, the caller must not wait for ever
            channel.end(error)
        else:
            channel.end()

    async def _answered(self, round_: ExpertCall) -> Answer | None:
        """The expert's answer, which also goes to the caller; none if there is none, and the round is given up."""
        try:
            return await self._passed_on(round_)
        finally:
            if not round_.channel.ended:  # the store failed, say
                round_.channel.end(Unavailable("the expert's answer is lost"))

    async def _passed_on(self, round_: ExpertCall) -> Answer | None:
        keeper, channel = round_.keeper, round_.channel
        try:
            # Not even the expert may know of a round that a crash would forget.
            with self.stages("journal"):
                await keeper.store.durable()
            stream = round_.request.stream and not round_.decision.serve_draft
            with self.stages("expert"):
                expert = await self._fetched(round_.request, channel, stream=stream)
        except ModelError as error:
            channel.draft_instead = _accounted(round_, error)
            channel.end(error)
        except asyncio.CancelledError:
            channel.end(Unavailable("the gateway stops"))
            raise
        except Exception as error:  # whatever it is, the caller must not wait for ever
            log.error("audit failed", extra={"decision": keeper.id_of(round_.decision.step)}, exc_info=error)
            channel.end(error)
            keeper.forfeit(round_.decision, EXPERT_FAILED)
        else:
            channel.end()
            return expert
        return None

    async def _fetched(self, request: ChatRequest, channel: Channel, *, stream: bool) -> Answer:
        if not stream:
            completion = await self.expert.whole(request.expert_body(stream=False))
            channel.put(completion.raw)
            return completion.answer
        transcript = Transcript()
        try:
            async for events in self.expert.stream(request.expert_body(stream=True), within=self.deadline):
                transcript.add(events)
                if shown := events if request.include_usage else without_usage(events):
                    channel.put(event_stream(shown))
            return transcript.answer()
        except AnswerError as error:
            raise Unavailable(f"{self.expert} sent what is no answer") from error


def _accounted(round_: ExpertCall, error: ModelError) -> str:
    """Account for a round whose expert did not answer; why the caller gets the draft instead, empty if not."""
    decision, begun = round_.decision, round_.channel.begun
    if is_refusal(error) and not begun:
        # An accepted draft is what the caller would have had, had the coin spared the expert.
        instead = decision.uncertainty < decision.threshold and not decision.serve_draft
        recorded = round_.keeper.refuse(decision, draft_served=instead)
        return REFUSED if instead and recorded else ""
    instead = round_.draft_instead and not begun
    recorded = round_.keeper.forfeit(decision, EXPERT_FAILED, draft_served=instead)
    # A round that was given up before, by its deadline say, cannot be told of it: then there is no draft.
    return FAILED if instead and recorded else ""
