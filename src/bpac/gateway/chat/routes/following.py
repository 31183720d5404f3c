"""Later requests of an episode: the model that its first request was decided for answers them.

1. Nothing is decided, so there is no ticket, no draft to compare with, no coin and no entry in the journal. The tokens
   are counted with the game (``games/money/followed.py``).
2. An episode of the expert stays with the expert: if it fails, the caller gets the error. A draft in its place would be
   a loss that is counted nowhere.
3. In an episode of the draft's model the expert answers a request that the draft's model cannot answer, because it is
   down, fails, or refuses (a conversation may outgrow its context). That loses nothing, and the episode goes on.
"""

from dataclasses import dataclass

from bpac.errors import ModelError
from bpac.gateway.chat.drafts.streamed_draft import Spawn
from bpac.gateway.chat.experts.expert import Expert
from bpac.gateway.chat.experts.expert_result import ExpertResult
from bpac.gateway.chat.outside import AnsweredBy, fetched_alone, pass_on
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse, Header, expert_response
from bpac.gateway.chat.upstreams.model import Model
from bpac.gateway.games.desk import Decided, GameDesk
from bpac.gateway.telemetry.metrics.stages import Stages
from bpac.routing.decision import Decision
from bpac.wire.usage import NOTHING, Meter, Usage

# The header that says what a request is in its session, and its values.
SESSION = b"x-bpac-session"
FIRST, FOLLOWING, NONE = b"first", b"following", b"none"
# Why the expert answers a request of an episode of the draft's model (header x-bpac-fallback).
DRAFT_FAILED = "draft-failed"


class _Answer(ExpertResult):
    """The answer to a request, and which model gives it."""

    __slots__ = ("by", "fallback")

    def __init__(self, by: AnsweredBy) -> None:
        super().__init__()
        self.by: AnsweredBy = by
        self.fallback = ""


@dataclass(frozen=True, slots=True)
class FollowingAnswers:
    """Answers later requests of episodes.

    Parameters
    ----------
    draft_model, expert: the models of the route.
    stages: measures how long each stage of a request takes, and counts requests.
    deadline: seconds after which a stream that has not ended is given up.
    spawn: starts a task.
    """

    draft_model: Model
    expert: Expert
    stages: Stages
    deadline: float
    spawn: Spawn

    async def answer(self, request: ChatRequest, game: GameDesk, episode: Decided) -> ChatResponse:
        """The response to a request; an error that is raised is what the caller gets.

        Parameters
        ----------
        request: what is asked.
        game: the game of the episode.
        episode: what was decided at its first request; it is durable.
        """
        request.is_known((b"x-bpac-decision", episode.decision_id.encode()), (SESSION, FOLLOWING))
        answer = _Answer("draft" if episode.decision.serve_draft else "expert")
        found, task = await fetched_alone(
            self.spawn, answer, lambda _: self._fetch(request, game, episode.decision, answer)
        )
        response = expert_response(found, self._headers(episode, answer), stream=request.stream)
        response.abandon = task.cancel
        return response

    async def _fetch(self, request: ChatRequest, game: GameDesk, decision: Decision, answer: _Answer) -> None:
        if answer.by == "draft":
            if self.draft_model.down is None and await self._drafted(request, game, decision, answer):
                return
            answer.by, answer.fallback = "expert", DRAFT_FAILED
            self.stages.metrics.count("bpac_following_fallbacks_total", route=self.stages.route)

        def count(usage: Usage) -> None:
            if answer.begun or usage != NOTHING:
                game.savings.follow(decision, "expert", usage)

        await self.expert.answer_only(request, count, answer)

    async def _drafted(self, request: ChatRequest, game: GameDesk, decision: Decision, answer: _Answer) -> bool:
        """Whether the draft's model has answered; if not, nothing was passed on."""
        model, meter = self.draft_model.for_request(), Meter()
        try:
            with self.stages("draft"):
                await pass_on(request.for_draft(), model, answer, meter, self.deadline)
        except ModelError:
            if answer.begun:
                raise
            return False
        finally:
            if answer.begun:
                game.savings.follow(decision, "draft", meter.take())
            else:
                game.savings.drafted(meter.take())
        return True

    def _headers(self, episode: Decided, answer: _Answer) -> list[Header]:
        decision, route = episode.decision, self.stages.route
        metrics, traces = self.stages.metrics, self.stages.traces
        metrics.count("bpac_answers_total", route=route, answered_by=answer.by)
        metrics.count("bpac_following_total", route=route, answered_by=answer.by)
        traces.describe(
            route=route, decision=episode.decision_id, answered_by=answer.by, uncertainty=decision.uncertainty,
            threshold=decision.threshold, propensity=decision.propensity,
        )  # fmt: skip
        headers = [
            (b"x-bpac-decision", episode.decision_id.encode()),
            (b"x-bpac-answered-by", answer.by.encode()),
            (b"x-bpac-uncertainty", b"%a" % decision.uncertainty),
            (b"x-bpac-threshold", b"%a" % decision.threshold),
            (b"x-bpac-propensity", b"%a" % decision.propensity),
            (SESSION, FOLLOWING),
        ]
        if answer.deployment:
            headers.append((b"x-bpac-deployment", answer.deployment.encode()))
            traces.describe(deployment=answer.deployment)
        if answer.fallback:
            headers.append((b"x-bpac-fallback", answer.fallback.encode()))
        return headers
