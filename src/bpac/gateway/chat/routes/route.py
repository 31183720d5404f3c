"""A route at work: what happens to one chat request, by these rules.

1. Ticket. A request takes a ticket when it arrives, before its draft is generated, and is decided on the terms of that
   ticket however long the draft takes (MATH section 12). What an audit costs at this moment is looked up before
   (``games/money/audit_prices.py``).
2. Draft. The draft's model is asked first. If its server is known to be down, or if the route minimises money and
   drafts cost more than they save (``games/money/draft_worth.py``), the request has no draft (rule 3). This is decided
   on arrival: by trial requests of the gateway's own, and from earlier requests and a coin.
3. Score. The uncertainty of the draft is computed. A request whose draft has no score is not a round (MATH section 13):
   it withdraws its ticket, and the expert answers it.
4. Decide. The router of the game keeps the draft or calls the expert, with the probability that it records. Where
   the game learns scores, what is known of the draft is recorded, too (``chat/drafts/features.py``).
5. Durable. The decision is durable in the journal before anything is served on it, and before the expert is asked.
6. Serve. The caller gets the draft or the expert's answer, with the decision in the headers. If the expert fails or
   refuses, the caller may get the draft instead, once the journal says so.
7. Settle. From the decision on the round counts, whatever happens to the request: the expert call is a task of its own,
   which grades the draft and records the outcome (MATH section 5, ``chat/experts/expert.py``).
8. A request that ends before its decision withdraws its ticket: its caller left, or something failed. If it is cut off
   because the gateway stops, it does not: the next start of the gateway charges it as a loss.
9. Where sessions are sticky, all this happens to the first request of an episode, and its later requests follow the
   decision (``games/rounds/sessions.py``, ``chat/routes/following.py``).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from bpac.dashboard.history.unscored import CALLER_LEFT, COSTS_MORE, OUTAGE
from bpac.errors import AnswerError, ModelError, StoreError
from bpac.gateway.chat.drafts.draft import Draft, WholeDraft
from bpac.gateway.chat.drafts.features import features_of
from bpac.gateway.chat.drafts.streamed_draft import Spawn, StreamedDraft
from bpac.gateway.chat.experts.expert import Expert, ExpertCall, is_refusal
from bpac.gateway.chat.experts.expert_result import DraftInstead, ExpertResult
from bpac.gateway.chat.outside import fetched_alone
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse, Header, expert_response
from bpac.gateway.chat.routes.following import FIRST, NONE, SESSION, FollowingAnswers
from bpac.gateway.chat.upstreams.model import Model
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.desk import WITHOUT_TICKET, Decided, GameDesk, LastTerms, NoTicket
from bpac.gateway.games.money.savings import DRAFT
from bpac.gateway.games.rounds.draft_outages import ends_drafts
from bpac.gateway.telemetry.metrics.stages import Stages
from bpac.models.prompts import PromptFeatures
from bpac.routing.learning.features import Features
from bpac.routing.tickets.ticket import Ticket
from bpac.wire.usage import Usage

log = logging.getLogger("bpac.gateway")

# Why a request has no score if its draft's model was known to be down when it arrived.
DRAFT_DOWN = "draft-down"
# Why it has none if the store that gives out tickets cannot be reached.
STORE_DOWN = "store-down"
# The header's value instead of a decision's id if no decision was made.
UNSCORED = "unscored"


@dataclass(frozen=True, slots=True)
class ServedRoute:
    """One route: answers requests by the rules above.

    Parameters
    ----------
    settings: the settings of the route.
    draft_model: generates drafts.
    expert: answers, and grades drafts.
    stages: measures how long each stage of a request takes.
    spawn: starts a task that outlives its request.
    prompts: computes the features of prompts, for games that learn from them.
    """

    settings: RouteSettings
    draft_model: Model
    expert: Expert
    stages: Stages
    spawn: Spawn
    prompts: PromptFeatures

    async def answer(self, request: ChatRequest, game: GameDesk, caller_left: Callable[[], bool]) -> ChatResponse:
        """The response to a request; an error that is raised is what the caller gets.

        Parameters
        ----------
        request: what is asked.
        game: the game that the request belongs to.
        caller_left: asked when the request is cancelled: whether its caller left; otherwise the gateway stops.
        """
        if self.settings.sticky_by is None:
            return await self._answer(request, game, caller_left)
        if not request.session:
            response = await self._answer(request, game, caller_left)
            response.headers.append((SESSION, NONE))
            return response
        try:
            joined = await game.join_session(request.caller, request.session)
        except NoTicket:
            # What the session follows is not known: the expert loses nothing, whatever it is.
            response = await self._answer_without_score(request, game, WITHOUT_TICKET, STORE_DOWN)
            response.headers.append((SESSION, NONE))
            return response
        if joined.episode is not None:
            return await self._following.answer(request, game, joined.episode)
        try:
            begins = request._replace(joined=joined)
            response = await self._answer(begins, game, caller_left)
        finally:
            game.leave_session(joined)
        unscored = (b"x-bpac-decision", UNSCORED.encode()) in response.headers
        response.headers.append((SESSION, NONE if unscored else FIRST))
        return response

    @property
    def _following(self) -> FollowingAnswers:
        return FollowingAnswers(self.draft_model, self.expert, self.stages, self.settings.deadline, self.spawn)

    async def _answer(self, request: ChatRequest, game: GameDesk, caller_left: Callable[[], bool]) -> ChatResponse:
        """Rules 1 to 8."""
        try:
            ticket, skips_draft = await game.arrive(self.expert.load.calls, request.joined)
        except NoTicket as error:
            if error.last_terms is None or request.unscorable or self.draft_model.down is not None:
                return await self._answer_without_score(request, game, WITHOUT_TICKET, STORE_DOWN)
            return await self._answer_on_last_terms(request, game, error.last_terms)
        try:
            if request.unscorable:
                return await self._answer_without_score(request, game, ticket, request.unscorable)
            if (down := self.draft_model.down) is not None:
                # Like a draft that ends at once, as the gateway's own trial request did: see DraftOutages.
                return await self._answer_without_score(request, game, ticket, DRAFT_DOWN, ends_drafts(down))
            if skips_draft:
                return await self._answer_without_score(request, game, ticket, COSTS_MORE)
            draft = self._draft(request, game)
            try:
                return await self._round(request, game, ticket, draft)
            except BaseException:
                draft.release()
                raise
        except BaseException as error:
            withdraw_failed(error, game, ticket, caller_left)
            raise

    async def _round(self, request: ChatRequest, game: GameDesk, ticket: Ticket, draft: Draft) -> ChatResponse:
        """Rules 2 to 7."""
        embedding = self.prompts.start(request.question) if game.embeds_prompts else None
        try:
            uncertainty = await draft.scored(self.stages)
        except (ModelError, AnswerError) as error:
            draft.discard()
            return await self._answer_without_score(request, game, ticket, reason_of(error), ends_drafts(error))
        prompt = await self.prompts.get(embedding) if embedding is not None else ()
        if not game.is_under_way(ticket):
            draft.discard()
            return await self._answer_without_score(request, game, ticket, OUTAGE)
        if draft.scored_answer is not None and not self.settings.is_switch:  # there the score is the same by design
            game.scored(uncertainty, draft.scored_answer)
        features = _features(request, game, draft, prompt)
        carry_out = partial(self._call_expert, request, game, draft)
        note = {**draft.note, **request.note}
        # Until it is known whether the grader needs the draft, even if the caller leaves while this waits.
        draft.keep_for_grader()
        try:
            made = await game.decide(
                uncertainty, ticket, note, carry_out, features=features, unfinished=not draft.complete
            )
        except Exception:
            draft.not_for_grader()
            raise
        if made is None:
            draft.discard()
            return await self._answer_without_score(request, game, ticket, OUTAGE)
        decided, result = made
        if result is None or decided.decision.serve_draft:
            with self.stages("journal"):
                await game.durable()
            return draft.response(self._headers(decided, uncertainty, "draft", draft.deployment))
        # The expert call waits until the decision is durable, so nothing of it comes before.
        found = await result.get()
        if isinstance(found, DraftInstead):
            await game.durable()
            response = draft.response(self._headers(decided, uncertainty, "draft", draft.deployment))
            response.headers.append((b"x-bpac-fallback", found.reason.encode()))
            return response
        headers = self._headers(decided, uncertainty, "expert", result.deployment)
        return expert_response(found, headers, stream=request.stream)

    async def _answer_on_last_terms(self, request: ChatRequest, game: GameDesk, terms: LastTerms) -> ChatResponse:
        """The draft of a request that is no round, if the terms that were published last accept it; or the expert's."""
        draft = self._draft(request, game)
        try:
            embedding = self.prompts.start(request.question) if game.embeds_prompts else None
            try:
                uncertainty = await draft.scored(self.stages)
            except (ModelError, AnswerError) as error:
                draft.discard()
                return await self._answer_without_score(request, game, WITHOUT_TICKET, reason_of(error))
            prompt = await self.prompts.get(embedding) if embedding is not None else ()
            decision = await terms.decide(uncertainty, _features(request, game, draft, prompt))
            if decision is None:
                draft.discard()
                return await self._answer_without_score(request, game, WITHOUT_TICKET, STORE_DOWN)
            game.savings.drafted(Usage.from_note(draft.note, DRAFT))
            request.is_known((b"x-bpac-decision", UNSCORED.encode()), (b"x-bpac-unscored", STORE_DOWN.encode()))
            headers = self._described(UNSCORED, "draft", uncertainty, decision.threshold, decision.propensity)
            self._name_deployment(headers, draft.deployment)
            headers.append((b"x-bpac-unscored", STORE_DOWN.encode()))
            return draft.response(headers)
        except BaseException:
            draft.release()
            raise

    def _draft(self, request: ChatRequest, game: GameDesk) -> Draft:
        count = self.settings.first_tokens if request.stream else None
        if count is None:
            return WholeDraft(self.draft_model, request, self.settings.score, game.savings)
        return StreamedDraft(self.draft_model, request, self.settings, count, spawn=self.spawn, savings=game.savings)

    def _call_expert(self, request: ChatRequest, game: GameDesk, draft: Draft, decided: Decided) -> ExpertResult | None:
        """Start the expert call of a round, and return where its result appears; none if the expert is not asked."""
        decision = decided.decision
        request.is_known((b"x-bpac-decision", decided.decision_id.encode()))
        if request.joined is not None:
            request.is_known((SESSION, FIRST))
        if not decision.call_expert:
            draft.not_for_grader()
            return None
        draft_on_failure = self.settings.on_expert_failure == "draft" and not decision.serve_draft
        cancelled = not draft.complete and self._cancels_draft(decided)
        if cancelled:
            draft.cancel()
        result = ExpertResult()
        call = ExpertCall(game, decided, request, result, draft.whole, draft_on_failure, cancelled)
        self.spawn(self.expert.answer_and_grade(call))
        return result

    def _cancels_draft(self, decided: Decided) -> bool:
        """Whether the rest of a draft is needed neither by its caller, if the expert fails, nor by the grader."""
        if self.settings.on_expert_failure == "draft" or self.settings.on_takeover == "finish":
            return False
        if decided.decision.uncertainty < decided.decision.threshold:
            return False  # the caller gets it, or would get it if the expert refused
        return not decided.worth_grading

    async def _answer_without_score(
        self, request: ChatRequest, game: GameDesk, ticket: Ticket, reason: str, ended: bool = False
    ) -> ChatResponse:
        """The expert's answer to a request whose draft has no score (rule 3).

        Parameters
        ----------
        request, game, ticket: what is asked, the game it belongs to, and its ticket.
        reason: why the draft has no score.
        ended: whether what ended the draft may have ended other drafts at the same time.
        """
        await game.no_score(ticket, reason, ended=ended)
        if request.joined is not None:  # there is no episode: the next request of the session may begin it
            game.leave_session(request.joined)
        request.is_known((b"x-bpac-decision", UNSCORED.encode()), (b"x-bpac-unscored", reason.encode()))
        result = ExpertResult()
        # Nothing is learnt from the answer, so it is for the caller alone.
        fetch = partial(self.expert.answer_only, request, game.savings.answered)
        found, task = await fetched_alone(self.spawn, result, fetch)
        headers = self._described(UNSCORED, "expert", 1.0, ticket.threshold, 1.0)
        self._name_deployment(headers, result.deployment)
        headers.append((b"x-bpac-unscored", reason.encode()))
        response = expert_response(found, headers, stream=request.stream)
        response.abandon = task.cancel
        return response

    def _headers(self, decided: Decided, uncertainty: float, answered_by: str, deployment: str) -> list[Header]:
        decision, decision_id, _ = decided
        _, of_decision, threshold, propensity, *_ = decision
        # The score as it was measured, because the decision has the dithered one; unless a learned score has decided.
        if decision.uncertainties and of_decision != decision.uncertainties[0]:
            uncertainty = of_decision
        headers = self._described(decision_id, answered_by, uncertainty, threshold, propensity)
        self._name_deployment(headers, deployment)
        return headers

    def _name_deployment(self, headers: list[Header], deployment: str) -> None:
        """Say which deployment answered, if the model has several: in a header and in the trace."""
        if deployment:
            headers.append((b"x-bpac-deployment", deployment.encode()))
            self.stages.traces.describe(deployment=deployment)

    def _described(
        self, decision_id: str, answered_by: str, uncertainty: float, threshold: float, propensity: float
    ) -> list[Header]:
        self.stages.metrics.count("bpac_answers_total", route=self.settings.name, answered_by=answered_by)
        self.stages.traces.describe(
            route=self.settings.name, decision=decision_id, answered_by=answered_by, uncertainty=uncertainty,
            threshold=threshold, propensity=propensity,
        )  # fmt: skip
        if log.isEnabledFor(logging.DEBUG):
            values = {"decision": decision_id, "route": self.settings.name, "answered_by": answered_by}
            log.debug("answered", extra=values)
        return [
            (b"x-bpac-decision", decision_id.encode()),
            (b"x-bpac-answered-by", answered_by.encode()),
            (b"x-bpac-uncertainty", b"%a" % uncertainty),
            (b"x-bpac-threshold", b"%a" % threshold),
            (b"x-bpac-propensity", b"%a" % propensity),
        ]


def withdraw_failed(error: BaseException, game: GameDesk, ticket: Ticket, caller_left: Callable[[], bool]) -> None:
    """Withdraw the ticket of a request that ends before its decision (rule 8).

    Parameters
    ----------
    error: what ended it.
    game, ticket: its game and its ticket.
    caller_left: whether its caller has left; if not, and it was cancelled, the gateway stops.
    """
    cancelled = isinstance(error, asyncio.CancelledError)
    if not cancelled or caller_left():
        with suppress(StoreError):  # all later requests report it
            game.withdraw(ticket, CALLER_LEFT if cancelled else "error")


def _features(request: ChatRequest, game: GameDesk, draft: Draft, prompt: Sequence[float]) -> Features | None:
    """What is known of a draft beside its score, where the game learns scores."""
    if not game.feature_names:
        return None
    return features_of(
        game.feature_names, draft.scored_answer, segment=game.segment, task=request.task, prompt=prompt,
        complete=draft.complete,
    )  # fmt: skip


def reason_of(error: Exception) -> str:
    """Why a draft has no score."""
    if isinstance(error, ModelError):
        return "draft-refused" if is_refusal(error) else "draft-failed"
    return "no-score"
