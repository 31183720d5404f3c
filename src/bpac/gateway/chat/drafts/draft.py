"""Drafts: an answer of the draft's model, and how uncertain it is.

A draft is scored whole (``WholeDraft``), or by its first tokens if the score needs no more and the caller wants a
stream (``StreamedDraft``). A route treats both alike:

1. ``scored`` waits until there is enough of the draft for its score, and returns the uncertainty.
2. A draft that is not decided on is discarded. One that is decided on is served with ``response``, or passed to the
   grader with ``whole``, or both.
3. ``release`` ends a draft for its caller: unless the grader needs it, it is cancelled.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

from bpac.answer import Answer
from bpac.arguments import fraction
from bpac.errors import BpacError, NoScore
from bpac.gateway.chat.drafts.impossible_drafts import impossible
from bpac.gateway.chat.drafts.stated_confidence import asked_separately, confidence_body
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse, Header
from bpac.gateway.chat.upstreams.model import Model, ModelCall, deployment_note
from bpac.gateway.games.desk import TokenCounts
from bpac.gateway.telemetry.metrics.stages import Stages
from bpac.scores import EquallySure, Score
from bpac.wire.completions import Completion
from bpac.wire.json import from_json, to_json
from bpac.wire.rendering import DONE, chunks, visible, without_logprobs
from bpac.wire.usage import Meter

log = logging.getLogger("bpac.gateway")


class Draft(ABC):
    """A draft on its way.

    Attributes
    ----------
    complete: whether all of it is there once it is scored.
    scored_answer: what was scored of it; none before that, and if it cannot be what was asked for.
    """

    complete: bool
    scored_answer: Answer | None = None
    _model: ModelCall

    @property
    def deployment(self) -> str:
        """The name of the deployment that generates it; empty if its model has only one."""
        return self._model.deployment

    @abstractmethod
    async def scored(self, stages: Stages) -> float:
        """The uncertainty of the draft in [0, 1]; a ``ModelError`` or ``AnswerError`` if it has none."""

    @property
    @abstractmethod
    def note(self) -> dict[str, Any]:
        """What the journal records of it with the decision."""

    @abstractmethod
    async def whole(self) -> Answer | None:
        """The whole draft; none if it failed or was cancelled."""

    @abstractmethod
    def response(self, headers: list[Header]) -> ChatResponse:
        """The draft as the response to its caller."""

    @abstractmethod
    def discard(self) -> None:
        """Account for a draft that no decision is made on."""

    def keep_for_grader(self) -> None:
        """Finish it even if its caller leaves."""

    def not_for_grader(self) -> None:
        """The grader does not need it: cancel it if its caller has left meanwhile."""

    def release(self) -> None:
        """Its caller does not need it any more: cancel it unless the grader needs it."""

    def cancel(self) -> None:
        """Stop generating it."""


class WholeDraft(Draft):
    """A draft that is complete before it is scored.

    Parameters
    ----------
    model: the draft's model.
    request: what the caller asked for.
    score: computes the uncertainty.
    savings: counts the tokens of a draft that no decision is made on.
    """

    complete = True

    def __init__(self, model: Model, request: ChatRequest, score: Score, savings: TokenCounts) -> None:
        self._model = model.for_request()
        self._request = request
        self._score = score
        self._savings = savings
        self._completion: Completion
        self._meter = Meter()
        self._asked_separately = asked_separately(request, score.needs)

    async def scored(self, stages: Stages) -> float:
        """The uncertainty of the draft in [0, 1]; a ``ModelError`` or ``AnswerError`` if it has none."""
        with stages("draft"):
            self._completion, samples = await self._drafted()
        answer = self._completion.answer
        if not isinstance(self._score, EquallySure) and (reason := impossible(self._request.body, answer)):
            return impossible_uncertainty(stages, reason)
        self.scored_answer = answer
        if self._asked_separately:
            with stages("draft"):
                answer = replace(answer, stated_confidence=await self._stated_confidence(answer))
        return uncertainty(self._score, answer, samples)

    async def _stated_confidence(self, answer: Answer) -> str:
        asked = confidence_body(self._request, answer, self._score.needs.question)
        return (await self._model.whole(asked, self._meter)).answer.text

    async def _drafted(self) -> tuple[Completion, list[Answer]]:
        """The draft, and the further answers that its score needs; some of those may fail."""
        needs = self._score.needs
        if self._asked_separately:
            needs = replace(needs, suffix="")
        asked = self._request.draft_body(needs, stream=False)
        logprobs_only = not needs.top_logprobs
        if not needs.samples:
            return await self._model.whole(asked, self._meter, logprobs_only=logprobs_only), []
        calls = [self._model.whole(asked, self._meter, logprobs_only=logprobs_only) for _ in range(1 + needs.samples)]
        draft, *others = await asyncio.gather(*calls, return_exceptions=True)
        if isinstance(draft, BaseException):
            raise draft
        return draft, [other.answer for other in others if isinstance(other, Completion)]

    @property
    def note(self) -> dict[str, Any]:
        """What the journal records of it with the decision."""
        return {**self._meter.take().to_note("draft"), **deployment_note("draft", self._model.deployment)}

    async def whole(self) -> Answer:
        """The whole draft."""
        return self._completion.answer

    def discard(self) -> None:
        """Count the tokens of a draft that no decision is made on."""
        self._savings.drafted(self._meter.take())

    def release(self) -> None:
        """Count the tokens of a draft whose caller left before the decision."""
        self.discard()

    def response(self, headers: list[Header]) -> ChatResponse:
        """The draft as the response to its caller, in chunks if the caller wants a stream."""
        request = self._request
        confidence_asked = bool(self._score.needs.suffix) and not self._asked_separately
        if request.logprobs or confidence_asked:
            body = to_json(visible(self._completion.body(), request, confidence_asked))
        else:
            body = without_logprobs(self._completion.raw)
        if not request.stream:
            return ChatResponse(headers, body)

        async def events() -> AsyncGenerator[bytes, None]:
            yield b"".join(chunks(from_json(body), request.include_usage)) + DONE

        return ChatResponse(headers, events=events())


def impossible_uncertainty(stages: Stages, reason: str) -> float:
    """The uncertainty of a draft that cannot be what was asked for, after it was counted by its reason."""
    stages.metrics.count("bpac_impossible_drafts_total", route=stages.route, reason=reason)
    return 1.0


def uncertainty(score: Score, draft: Answer, samples: list[Answer]) -> float:
    """The uncertainty of a draft, or ``NoScore``."""
    try:
        return fraction(score(draft, samples), "uncertainty")
    except BpacError as error:
        raise NoScore("the draft has no score") from error
    except Exception as error:  # a score may be any function; a draft that it fails on has no score
        log.warning("score failed", extra={"error": type(error).__name__})
        raise NoScore("the draft has no score") from error
