"""A route at work: draft → score → decide → journal → draft or expert, and the audit behind it (MATH section 5)."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from bpac.answer import Answer
from bpac.betting.numbers import fraction
from bpac.errors import AnswerError, BpacError, ModelError, NoScore
from bpac.gateway.answers import DONE, chunks, shown
from bpac.gateway.audits import Auditor, Drafted, Round
from bpac.gateway.channel import Channel
from bpac.gateway.completions import Completion, from_json, to_json
from bpac.gateway.keeper import EXPERT_FAILED, Keeper
from bpac.gateway.prefixes import Beginning, Spawn
from bpac.gateway.requests import ChatRequest
from bpac.gateway.route_settings import RouteSettings
from bpac.gateway.served import Header, Served, events_of, nothing
from bpac.gateway.stages import Stages
from bpac.gateway.upstream import Upstream
from bpac.routing.decision import Decision

log = logging.getLogger("bpac.gateway")

INSTEAD_OF_EXPERT = (b"x-bpac-fallback", b"expert-failed")


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

    async def answer(self, request: ChatRequest, keeper: Keeper) -> Served:
        """Answer a request; what is raised is the caller's to hear."""
        if request.unscorable:
            return await self._unscored(request, keeper, request.unscorable, None)
        if request.stream and self.settings.first_tokens is not None:
            return await self._answer_from_beginning(request, keeper, self.settings.first_tokens)
        draft: Completion | None = None
        try:
            with self.stages("draft"):
                draft, samples = await self._drafted(request)
            uncertainty = self._scored(draft.answer, samples)
        except (ModelError, NoScore) as error:
            return await self._unscored(request, keeper, _reason(error), draft)
        generated = draft.answer.completion_tokens + sum(sample.completion_tokens for sample in samples)
        decision = keeper.decide(uncertainty, {"draft_tokens": generated, **request.note})

        async def drafted(answer: Answer = draft.answer) -> Answer:
            return answer

        # From here on the round counts, whatever becomes of this request: its audit is a task of its own.
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
            return await self._draft_instead(request, keeper, decision, draft)

    async def _drafted(self, request: ChatRequest) -> tuple[Completion, list[Answer]]:
        """The draft, and the further answers its score needs; of those some may fail."""
        needs = self.settings.score.needs
        asked = request.draft_body(needs, stream=False)
        numbers_only = not needs.top_logprobs
        if not needs.samples:
            return await self.draft.whole(asked, numbers_only=numbers_only), []
        calls = [self.draft.whole(asked, numbers_only=numbers_only) for _ in range(1 + needs.samples)]
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

    async def _durable(self, keeper: Keeper) -> None:
        with self.stages("journal"):
            await keeper.store.durable()

    def _audited(
        self, keeper: Keeper, decision: Decision, request: ChatRequest, drafted: Drafted, cancelled: bool = False
    ) -> Channel | None:
        """Start the audit, if the round has one, and return where its answer appears."""
        if not decision.call_expert:
            return None
        channel = Channel()
        instead = self.settings.on_expert_failure == "draft" and not decision.serve_draft
        self.spawn(self.auditor.audit(Round(keeper, decision, request, channel, instead, cancelled), drafted))
        return channel

    def _draft_served(self, request: ChatRequest, keeper: Keeper, decision: Decision, draft: Completion) -> Served:
        headers = self._headers(keeper, decision, "draft")
        confidence_asked = bool(self.settings.score.needs.suffix)
        if request.logprobs or confidence_asked:
            sent = to_json(shown(draft.body(), request, confidence_asked))
        else:
            sent = draft.without_logprobs()
        if not request.stream:
            return Served(headers, sent)

        async def events() -> AsyncGenerator[bytes, None]:
            yield b"".join(chunks(from_json(sent), request.include_usage)) + DONE

        return Served(headers, events=events())

    async def _draft_instead(
        self, request: ChatRequest, keeper: Keeper, decision: Decision, draft: Completion
    ) -> Served:
        """The draft where the expert failed: outside the theorem, and so counted as loss 1 before it is served."""
        await keeper.store.durable()
        served = self._draft_served(request, keeper, decision, draft)
        served.headers.append(INSTEAD_OF_EXPERT)
        return served

    def _expert_served(
        self, request: ChatRequest, keeper: Keeper, decision: Decision, first: bytes, channel: Channel
    ) -> Served:
        headers = self._headers(keeper, decision, "expert")
        return Served(headers, events=events_of(first, channel)) if request.stream else Served(headers, first)

    async def _unscored(self, request: ChatRequest, keeper: Keeper, reason: str, draft: Completion | None) -> Served:
        """A request whose draft has no score: a round of uncertainty 1, which no threshold accepts.

        It is decided when the expert has answered. The coin has no say in it, so that changes nothing, except that
        requests which both models refuse are no rounds: sent in masses, they would look like harmless traffic.
        """
        channel = Channel()
        task = self.spawn(self.auditor.answer(request, channel, keeper.savings))
        note = {"draft_tokens": draft.answer.completion_tokens if draft else 0, "unscored": reason, **request.note}
        try:
            first = await channel.get()
            # A draft that has no score is taken to lose all there is to lose: no wealth depends on it.
            decision = keeper.decide(1.0, note)
            keeper.resolve(decision, 1.0, {})
            await self._durable(keeper)
            served = self._expert_served(request, keeper, decision, first, channel)
        except ModelError:
            if draft is None or self.settings.on_expert_failure == "error":
                raise
            decision = keeper.decide(1.0, note)
            keeper.forfeit(decision, EXPERT_FAILED, draft_served=True)
            served = await self._draft_instead(request, keeper, decision, draft)
        except BaseException:
            task.cancel()  # nothing is learnt from it, so nobody but the caller waits for it
            raise
        served.headers.append((b"x-bpac-unscored", reason.encode()))
        served.abandon = task.cancel
        return served

    async def _answer_from_beginning(self, request: ChatRequest, keeper: Keeper, count: int) -> Served:
        """Score the first tokens of the draft, and let it flow on from there if it is accepted."""
        draft = Beginning(self.draft, request, self.settings, self.spawn, keeper.savings)
        audited = False
        try:
            try:
                with self.stages("draft"):
                    beginning = await draft.answer(count)
                uncertainty = self._scored(beginning, [])
            except (ModelError, AnswerError) as error:
                draft.cancel()
                return await self._unscored(request, keeper, _reason(error), None)
            decision = keeper.decide(uncertainty, dict(request.note))
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
                served = self._beginning_served(keeper, decision, draft, audited)
                served.headers.append(INSTEAD_OF_EXPERT)
                return served
        except BaseException:
            if not audited:
                draft.cancel()
            raise

    def _cancels(self, keeper: Keeper, decision: Decision) -> bool:
        """Whether nobody needs the rest of a draft: not its caller, should the expert fail, and not the grader."""
        if decision.serve_draft or self.settings.on_expert_failure == "draft" or self.settings.on_takeover == "finish":
            return False
        return not keeper.router.worth_grading(decision)

    def _beginning_served(self, keeper: Keeper, decision: Decision, draft: Beginning, audited: bool) -> Served:
        headers = self._headers(keeper, decision, "draft")
        return Served(headers, events=draft.events(), abandon=nothing if audited else draft.cancel)

    def _headers(self, keeper: Keeper, decision: Decision, answered_by: str) -> list[Header]:
        self.stages.metrics.count("bpac_answers_total", route=self.settings.name, answered_by=answered_by)
        name = keeper.id_of(decision.step)
        self.stages.traces.describe(
            route=self.settings.name, decision=name, answered_by=answered_by, uncertainty=decision.uncertainty,
            threshold=decision.threshold, propensity=decision.propensity,
        )  # fmt: skip
        if log.isEnabledFor(logging.DEBUG):
            log.debug("answered", extra={"decision": name, "route": self.settings.name, "answered_by": answered_by})
        return [
            (b"x-bpac-decision", name.encode()),
            (b"x-bpac-answered-by", answered_by.encode()),
            (b"x-bpac-uncertainty", b"%a" % decision.uncertainty),
            (b"x-bpac-threshold", b"%a" % decision.threshold),
            (b"x-bpac-propensity", b"%a" % decision.propensity),
        ]


def _reason(error: Exception) -> str:
    return "no-score" if isinstance(error, AnswerError) else "draft-failed"
