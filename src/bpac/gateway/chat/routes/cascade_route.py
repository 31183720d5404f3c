"""A cascade at work: what happens to one chat request of a route with several models, by these rules.

1. Ticket. As for a route with two models (``chat/routes/route.py``): a request is decided on the terms of its arrival.
2. Walk. The models of the rule in force are asked one after the other. Each answer is scored, and either accepted or
   passed over; a model that fails is passed over. If no model gave an answer with a score, the request is not a round:
   it withdraws its ticket, and the last model answers it.
3. Decide. The decision, with all answers' scores, is durable before anything is served on it and before the last model
   is asked.
4. Audit. Where the last model is asked, it answers for the caller unless the decision serves the accepted answer. If
   the decision says so, all other models are asked as well, behind the caller's back. All answers are graded against
   the last model's, and the losses recorded together.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bpac.answer import Answer
from bpac.dashboard.history.unscored import OUTAGE
from bpac.errors import AnswerError, ModelError
from bpac.gateway.chat.drafts.draft import WholeDraft
from bpac.gateway.chat.experts.expert import Expert, ExpertCall
from bpac.gateway.chat.experts.expert_result import DraftInstead, ExpertResult
from bpac.gateway.chat.experts.grading import graded
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse, Header, expert_response
from bpac.gateway.chat.routes.route import DRAFT_DOWN, STORE_DOWN, ServedRoute, reason_of, withdraw_failed
from bpac.gateway.chat.upstreams.model import Model
from bpac.gateway.games.desk import WITHOUT_TICKET, Decided, GameDesk, NoTicket
from bpac.gateway.games.rounds.draft_outages import ends_drafts
from bpac.gateway.games.rounds.outcomes import GRADER_FAILED
from bpac.routing.cascade.rounds import FAILED, NOT_ASKED, StageAnswer
from bpac.routing.tickets.ticket import Ticket
from bpac.wire.usage import NOTHING, Meter


class StageDrafts:
    """The answers of the models before the last to one request.

    Parameters
    ----------
    models: the models, in order, without the last.
    request: what is asked.
    route: the route, with the score and the stages that are measured.
    game: the game that the request belongs to.
    """

    def __init__(self, models: tuple[Model, ...], request: ChatRequest, route: ServedRoute, game: GameDesk) -> None:
        self._models = models
        self._request = request
        self._route = route
        self._game = game
        self.drafts: dict[int, WholeDraft] = {}
        self.answers: list[StageAnswer] = [NOT_ASKED] * len(models)
        self.reason = ""
        self.ended = False

    async def ask(self, stage: int) -> StageAnswer:
        """Ask a model and score its answer; none if it failed or has no score.

        Parameters
        ----------
        stage: which, from 1.
        """
        model = self._models[stage - 1]
        answer: StageAnswer = FAILED
        if (down := model.down) is not None:
            self.reason, self.ended = DRAFT_DOWN, ends_drafts(down)
        else:
            draft = WholeDraft(model, self._request, self._route.settings.score, self._game.savings)
            try:
                uncertainty = await draft.scored(self._route.stages)
            except (ModelError, AnswerError) as error:
                draft.discard()
                self.reason, self.ended = reason_of(error), ends_drafts(error)
            except BaseException:
                draft.discard()
                raise
            else:
                self.drafts[stage] = draft
                if draft.scored_answer is not None:
                    self._game.scored(uncertainty, draft.scored_answer)
                # Longer answers of a model are wrong more often; what is learned decides how much that counts.
                answer = (uncertainty, math.log1p(len((await draft.whole()).text)))
        self.answers[stage - 1] = answer
        return answer

    def note(self) -> dict[str, Any]:
        """What the journal records of the answers made so far: tokens of each model, and their sum."""
        note: dict[str, Any] = {}
        for stage, draft in sorted(self.drafts.items()):
            for key, value in draft.note.items():
                note[key.replace("draft", f"stage_{stage}", 1)] = value
                if isinstance(value, int):
                    note[key] = note.get(key, 0) + value
        return note

    def discard(self) -> None:
        """Account for answers that no decision is made on."""
        for draft in self.drafts.values():
            draft.discard()

    async def whole(self, stage: int) -> Answer | None:
        """The answer of a model; none if it has none."""
        draft = self.drafts.get(stage)
        return None if draft is None else await draft.whole()


@dataclass(frozen=True, slots=True)
class CascadeCall(ExpertCall):
    """A round of a cascade in which the last model is asked.

    Parameters
    ----------
    drafts: the answers of the other models.
    """

    drafts: StageDrafts


@dataclass(frozen=True, slots=True)
class CascadeExpert(Expert):
    """The last model of a cascade, against whose answers the others are graded."""

    async def _grade(self, call: ExpertCall, answer: Answer, meter: Meter, note: dict[str, Any]) -> None:
        if not isinstance(call, CascadeCall) or self.grader is None:
            raise TypeError("a cascade grades the answers of all its models")
        decision, drafts = call.decision, call.drafts
        part = decision.cascade
        assert part is not None  # the router of a cascade made it
        made = set(drafts.drafts)
        if part.full:
            missing = [stage for stage, known in enumerate(drafts.answers, start=1) if known == NOT_ASKED]
            await asyncio.gather(*map(drafts.ask, missing))
            _add_up(note, {key: n for key, n in drafts.note().items() if int(_stage_of(key) or 0) not in made})
        losses: list[float | None] = [None] * len(drafts.answers)
        judged = NOTHING
        with self.stages("grading"):
            for stage in drafts.drafts:
                draft = await drafts.whole(stage)
                assert draft is not None
                grade = await graded(self.grader, call.request.question, draft, answer)
                judged = judged.plus(grade.usage)
                losses[stage - 1] = grade.loss
        if judged != NOTHING:
            note |= judged.to_note("judge")
        accepted = part.stage if decision.uncertainty < decision.threshold else None
        if accepted is not None and losses[accepted - 1] is None:
            await call.game.resolve(decision, None, note, GRADER_FAILED)
            return
        # An answer that cannot be graded counts as wrong; the others still teach.
        counted = [1.0 if stage in drafts.drafts and loss is None else loss for stage, loss in enumerate(losses, 1)]
        await call.game.resolve_stages(decision, drafts.answers, counted, note)


@dataclass(frozen=True, slots=True)
class CascadeRoute(ServedRoute):
    """A route with more than two models.

    Parameters
    ----------
    models: all models but the last, in order.
    """

    models: tuple[Model, ...]

    async def answer(self, request: ChatRequest, game: GameDesk, caller_left: Callable[[], bool]) -> ChatResponse:
        """The response to a request; an error that is raised is what the caller gets.

        Parameters
        ----------
        request, game, caller_left: as for a route with two models.
        """
        try:
            ticket, _ = await game.arrive(self.expert.load.calls)
        except NoTicket:
            return await self._answer_without_score(request, game, WITHOUT_TICKET, STORE_DOWN)
        drafts = StageDrafts(self.models, request, self, game)
        try:
            if request.unscorable:
                return await self._answer_without_score(request, game, ticket, request.unscorable)
            return await self._walked(request, game, ticket, drafts)
        except BaseException as error:
            # What was asked before the request ended is paid for; what a decision has counted is not counted again.
            drafts.discard()
            withdraw_failed(error, game, ticket, caller_left)
            raise

    async def _walked(self, request: ChatRequest, game: GameDesk, ticket: Ticket, drafts: StageDrafts) -> ChatResponse:
        """Rules 2 to 4."""
        walk = await game.walk(ticket)
        while (stage := walk.next_stage) is not None:
            answer = await drafts.ask(stage)
            if answer:
                walk.answered(*answer)
            else:
                walk.failed()
        if not game.is_under_way(ticket):
            drafts.discard()
            return await self._answer_without_score(request, game, ticket, OUTAGE)
        if not drafts.drafts:
            return await self._answer_without_score(request, game, ticket, drafts.reason, drafts.ended)
        made = await game.decide(
            walk, ticket, {**drafts.note(), **request.note}, partial(self._ask_last, request, game, drafts)
        )
        if made is None:
            drafts.discard()
            return await self._answer_without_score(request, game, ticket, OUTAGE)
        decided, (kept, result) = made
        decision = decided.decision
        if result is None or decision.serve_draft:
            with self.stages("journal"):
                await game.durable()
            return self._kept(decided, drafts, kept)
        found = await result.get()
        if isinstance(found, DraftInstead):
            await game.durable()
            response = self._kept(decided, drafts, kept)
            response.headers.append((b"x-bpac-fallback", found.reason.encode()))
            return response
        headers = self._headers(decided, decision.uncertainty, "expert", result.deployment)
        self._name_stage(headers, len(self.models) + 1)
        return expert_response(found, headers, stream=request.stream)

    def _ask_last(
        self, request: ChatRequest, game: GameDesk, drafts: StageDrafts, decided: Decided
    ) -> tuple[int, ExpertResult | None]:
        """The stage whose answer the caller gets if not the last one's, and where the result of the last one appears.

        There is no result if the last model is not asked.
        """
        decision, part = decided.decision, decided.decision.cascade
        assert part is not None  # the router of a cascade made it
        # The accepted answer, or the latest.
        kept = part.stage if part.stage in drafts.drafts else max(drafts.drafts)
        request.is_known((b"x-bpac-decision", decided.decision_id.encode()))
        if not decision.call_expert:
            return kept, None
        result = ExpertResult()
        instead = self.settings.on_expert_failure == "draft" and not decision.serve_draft
        call = CascadeCall(game, decided, request, result, drafts.drafts[kept].whole, instead, False, drafts)
        self.spawn(self.expert.answer_and_grade(call))
        return kept, result

    def _kept(self, decided: Decided, drafts: StageDrafts, stage: int) -> ChatResponse:
        """The answer of a model before the last as the response."""
        draft = drafts.drafts[stage]
        headers = self._headers(decided, decided.decision.uncertainty, "draft", draft.deployment)
        self._name_stage(headers, stage)
        return draft.response(headers)

    def _name_stage(self, headers: list[Header], stage: int) -> None:
        """Say which model answered: in headers, in the trace and in the metrics."""
        name = self.settings.models[stage - 1].name
        headers += [(b"x-bpac-stage", b"%d" % stage), (b"x-bpac-model", name.encode())]
        self.stages.traces.describe(stage=stage, model=name)
        self.stages.metrics.count("bpac_stage_answers_total", route=self.settings.name, stage=str(stage), model=name)


def _stage_of(key: str) -> str:
    """The number of the stage in the key of a note; empty if there is none."""
    kind, _, rest = key.partition("_")
    return rest.partition("_")[0] if kind == "stage" else ""


def _add_up(note: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add counts of tokens to a note."""
    for key, value in more.items():
        note[key] = note[key] + value if isinstance(value, int) and key in note else value
