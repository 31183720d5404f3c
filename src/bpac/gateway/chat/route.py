"""A route at work: ticket → draft → score → decide → journal → draft or expert, and the audit behind it.

1. A request takes its ticket when it arrives, before its draft is asked for (MATH section 12), and is decided on the
   terms of that ticket however long the draft takes.
2. A request that does not come to a decision withdraws its ticket: its caller left, its draft has no score, or
   something failed on the way. One that is cut off because the gateway stops does not: the next start is charged.
3. A request whose draft has no score is no round (MATH section 13). The expert answers it.
4. From the decision on the round counts, whatever becomes of the request: its audit is a task of its own (MATH
   section 5).
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass

from bpac.answer import Answer
from bpac.arguments import fraction
from bpac.dashboard.unscored import CALLER_LEFT, OUTAGE
from bpac.errors import AnswerError, BpacError, ModelError, NoScore, StoreError
from bpac.gateway.chat.channel import Channel
from bpac.gateway.chat.draft_outages import ends_drafts
from bpac.gateway.chat.expert import Auditor, Drafted, ExpertCall, is_refusal
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse, Header, events_of, nothing
from bpac.gateway.chat.streamed_draft import Spawn, StreamedDraft
from bpac.gateway.chat.upstream import Upstream
from bpac.gateway.config.routes import RouteSettings
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.telemetry.stages import Stages
from bpac.routing.decision import Decision
from bpac.routing.tickets.ticket import Ticket
from bpac.wire.completions import Completion
from bpac.wire.json import from_json, to_json
from bpac.wire.rendering import DONE, chunks, visible, without_logprobs

log = logging.getLogger("bpac.gateway")

# The name of a decision that was not made.
UNSCORED = "unscored"


@dataclass(frozen=True, slots=True)
class ServedRoute:
    """One route: what is done with a request, from the draft to the grade.

    Parameters
    ----------
    settings: of the route.
    draft: the model that writes drafts.
    auditor: the expert and the grader.
    stages: its stages, timed and traced.
    spawn: starts a task that outlives its request.
    """

    settings: RouteSettings
    draft: Upstream
    auditor: Auditor
    stages: Stages
    spawn: Spawn

    async def answer(self, request: ChatRequest, keeper: LiveGame, left: Callable[[], bool]) -> ChatResponse:
        """Answer a request; what is raised is the caller's to hear.

        Parameters
        ----------
        request: what is asked.
        keeper: of the game it belongs to.
        left: whether the caller has left, asked when the request is cancelled: otherwise the gateway stops.
        """
        ticket = keeper.arrive()
        first_tokens = self.settings.first_tokens if request.stream else None
        try:
            if request.unscorable:
                return await self._unscored(request, keeper, ticket, request.unscorable)
            if first_tokens is not None:
                return await self._answer_from_beginning(request, keeper, ticket, first_tokens)
            return await self._answer(request, keeper, ticket)
        except BaseException as error:
            cancelled = isinstance(error, asyncio.CancelledError)
            if not cancelled or left():
                with suppress(StoreError):  # said already, to all who ask since
                    keeper.withdraw(ticket, CALLER_LEFT if cancelled else "error")
            raise

    async def _answer(self, request: ChatRequest, keeper: LiveGame, ticket: Ticket) -> ChatResponse:
        generated = 0
        try:
            with self.stages("draft"):
                draft, samples = await self._drafted(request)
            generated = draft.answer.completion_tokens + sum(sample.completion_tokens for sample in samples)
            uncertainty = self._scored(draft.answer, samples)
        except (ModelError, AnswerError) as error:
            keeper.savings.drafted(generated)
            return await self._unscored(request, keeper, ticket, _reason(error), ends_drafts(error))
        if not keeper.is_under_way(ticket):
            keeper.savings.drafted(generated)
            return await self._unscored(request, keeper, ticket, OUTAGE)
        decision = keeper.decide(uncertainty, ticket, {"draft_tokens": generated, **request.note})

        async def drafted(answer: Answer = draft.answer) -> Answer:
            return answer

        channel = self._audited(keeper, decision, request, drafted)
        if channel is None or decision.serve_draft:
            await self._durable(keeper)
            return self._draft_served(request, keeper, decision, draft)
        # Nothing of the expert's comes before the decision is durable: its audit waits for that.
        try:
            return self._expert_served(request, keeper, decision, await channel.get(), channel)
        except ModelError:
            if not channel.draft_instead:
                raise
            # Nor the draft in its place, before the journal says so.
            await keeper.store.durable()
            return _marked(self._draft_served(request, keeper, decision, draft), channel.draft_instead)

    async def _drafted(self, request: ChatRequest) -> tuple[Completion, list[Answer]]:
        """The draft, and the further answers its score needs; of those some may fail."""
        needs = self.settings.score.needs
        asked = request.draft_body(needs, stream=False)
        logprobs_only = not needs.top_logprobs
        if not needs.samples:
            return await self.draft.whole(asked, logprobs_only=logprobs_only), []
        calls = [self.draft.whole(asked, logprobs_only=logprobs_only) for _ in range(1 + needs.samples)]
        draft, *others = await asyncio.gather(*calls, return_exceptions=True)
        if isinstance(draft, BaseException):
            raise draft
        return draft, [other.answer for other in others if isinstance(other, Completion)]

    def _scored(self, draft: Answer, samples: list[Answer]) -> float:
        try:
            return fraction(self.settings.score(draft, samples), "uncertainty")
        except BpacError as error:
            raise NoScore("the draft has no score") from error
        except Exception as error:  # a score may be anything; a draft it cannot read has none
            log.warning("score failed", extra={"error": type(error).__name__})
            raise NoScore("the draft has no score") from error

    async def _durable(self, keeper: LiveGame) -> None:
        with self.stages("journal"):
            await keeper.store.durable()

    def _audited(
        self, keeper: LiveGame, decision: Decision, request: ChatRequest, drafted: Drafted, cancelled: bool = False
    ) -> Channel | None:
        """Start the audit, if the round has one, and return where its answer appears."""
        if not decision.call_expert:
            return None
        channel = Channel()
        instead = self.settings.on_expert_failure == "draft" and not decision.serve_draft
        self.spawn(self.auditor.audit(ExpertCall(keeper, decision, request, channel, instead, cancelled), drafted))
        return channel

    def _draft_served(
        self, request: ChatRequest, keeper: LiveGame, decision: Decision, draft: Completion
    ) -> ChatResponse:
        headers = self._headers(keeper, decision, "draft")
        confidence_asked = bool(self.settings.score.needs.suffix)
        if request.logprobs or confidence_asked:
            sent = to_json(visible(draft.body(), request, confidence_asked))
        else:
            sent = without_logprobs(draft.raw, draft.logprobs)
        if not request.stream:
            return ChatResponse(headers, sent)

        async def events() -> AsyncGenerator[bytes, None]:
            yield b"".join(chunks(from_json(sent), request.include_usage)) + DONE

        return ChatResponse(headers, events=events())

    def _expert_served(
        self, request: ChatRequest, keeper: LiveGame, decision: Decision, first: bytes, channel: Channel
    ) -> ChatResponse:
        return _passed_on(request, self._headers(keeper, decision, "expert"), first, channel)

    async def _unscored(
        self, request: ChatRequest, keeper: LiveGame, ticket: Ticket, reason: str, ended: bool = False
    ) -> ChatResponse:
        """The expert's answer to a request whose draft has no score; without a score, no draft is served.

        Parameters
        ----------
        request, keeper, ticket: what is asked, of which game, and when it arrived.
        reason: why the draft has no score.
        ended: whether what ended the draft may have ended others at the same time.
        """
        if ended:
            keeper.draft_ended(ticket, reason)
        else:
            keeper.withdraw(ticket, reason)
        channel = Channel()
        task = self.spawn(self.auditor.answer(request, channel, keeper.savings))
        try:
            first = await channel.get()
        except BaseException:
            task.cancel()  # nothing is learnt from it, so nobody but the caller waits for it
            raise
        headers = self._described(UNSCORED, "expert", 1.0, ticket.threshold, 1.0)
        served = _passed_on(request, headers, first, channel)
        served.headers.append((b"x-bpac-unscored", reason.encode()))
        served.abandon = task.cancel
        return served

    async def _answer_from_beginning(
        self, request: ChatRequest, keeper: LiveGame, ticket: Ticket, count: int
    ) -> ChatResponse:
        """Score the first tokens of the draft, and let it flow on from there if it is accepted."""
        draft = StreamedDraft(self.draft, request, self.settings, self.spawn, keeper.savings)
        audited = False
        try:
            try:
                with self.stages("draft"):
                    beginning = await draft.answer(count)
                uncertainty = self._scored(beginning, [])
            except (ModelError, AnswerError) as error:
                draft.cancel()
                return await self._unscored(request, keeper, ticket, _reason(error), ends_drafts(error))
            if not keeper.is_under_way(ticket):
                draft.cancel()
                return await self._unscored(request, keeper, ticket, OUTAGE)
            decision = keeper.decide(uncertainty, ticket, dict(request.note))
            cancelled = self._cancels(keeper, decision)
            channel = self._audited(keeper, decision, request, draft.whole, cancelled)
            # A draft that is audited is finished for the grader, also when the caller has left.
            audited = channel is not None and not cancelled
            await self._durable(keeper)
            if channel is None or decision.serve_draft:
                return self._beginning_served(keeper, decision, draft, audited)
            if cancelled:
                draft.cancel()
            try:
                return self._expert_served(request, keeper, decision, await channel.get(), channel)
            except ModelError:
                if not channel.draft_instead:
                    raise
                await keeper.store.durable()
                return _marked(self._beginning_served(keeper, decision, draft, audited), channel.draft_instead)
        except BaseException:
            if not audited:
                draft.cancel()
            raise

    def _cancels(self, keeper: LiveGame, decision: Decision) -> bool:
        """Whether nobody needs the rest of a draft: not its caller, should the expert fail, and not the grader."""
        if self.settings.on_expert_failure == "draft" or self.settings.on_takeover == "finish":
            return False
        if decision.uncertainty < decision.threshold:
            return False  # the caller gets it, or would get it if the expert refused
        return not keeper.router.worth_grading(decision)

    def _beginning_served(
        self, keeper: LiveGame, decision: Decision, draft: StreamedDraft, audited: bool
    ) -> ChatResponse:
        headers = self._headers(keeper, decision, "draft")
        return ChatResponse(headers, events=draft.events(), abandon=nothing if audited else draft.cancel)

    def _headers(self, keeper: LiveGame, decision: Decision, answered_by: str) -> list[Header]:
        _, uncertainty, threshold, propensity, *_ = decision
        return self._described(keeper.id_of(decision.step), answered_by, uncertainty, threshold, propensity)

    def _described(
        self, name: str, answered_by: str, uncertainty: float, threshold: float, propensity: float
    ) -> list[Header]:
        self.stages.metrics.count("bpac_answers_total", route=self.settings.name, answered_by=answered_by)
        self.stages.traces.describe(
            route=self.settings.name, decision=name, answered_by=answered_by, uncertainty=uncertainty,
            threshold=threshold, propensity=propensity,
        )  # fmt: skip
        if log.isEnabledFor(logging.DEBUG):
            log.debug("answered", extra={"decision": name, "route": self.settings.name, "answered_by": answered_by})
        return [
            (b"x-bpac-decision", name.encode()),
            (b"x-bpac-answered-by", answered_by.encode()),
            (b"x-bpac-uncertainty", b"%a" % uncertainty),
            (b"x-bpac-threshold", b"%a" % threshold),
            (b"x-bpac-propensity", b"%a" % propensity),
        ]


def _passed_on(request: ChatRequest, headers: list[Header], first: bytes, channel: Channel) -> ChatResponse:
    """What the expert says, as it comes."""
    return ChatResponse(headers, events=events_of(first, channel)) if request.stream else ChatResponse(headers, first)


def _marked(served: ChatResponse, why: str) -> ChatResponse:
    """A draft that is served in the place of the expert's answer, and why."""
    served.headers.append((b"x-bpac-fallback", why.encode()))
    return served


def _reason(error: Exception) -> str:
    """Why a draft has no score."""
    if isinstance(error, ModelError):
        return "draft-refused" if is_refusal(error) else "draft-failed"
    return "no-score"
