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
from typing import Any

from bpac.answer import Answer
from bpac.arguments import fraction
from bpac.errors import BpacError, NoScore
from bpac.gateway.chat.model import Model, ModelCall
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse, Header
from bpac.gateway.games.savings import Savings
from bpac.gateway.telemetry.stages import Stages
from bpac.scores import Score
from bpac.wire.completions import Completion
from bpac.wire.json import from_json, to_json
from bpac.wire.rendering import DONE, chunks, visible, without_logprobs

log = logging.getLogger("bpac.gateway")


class Draft(ABC):
    """A draft on its way.

    Attributes
    ----------
    complete: whether all of it is there once it is scored.
    scored_answer: what was scored of it; empty before that.
    """

    complete: bool
    scored_answer = Answer("")
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

    def __init__(self, model: Model, request: ChatRequest, score: Score, savings: Savings) -> None:
        self._model = model.for_request()
        self._request = request
        self._score = score
        self._savings = savings
        self._completion: Completion
        self._generated = 0

    async def scored(self, stages: Stages) -> float:
        """The uncertainty of the draft in [0, 1]; a ``ModelError`` or ``AnswerError`` if it has none."""
        with stages("draft"):
            self._completion, samples = await self._drafted()
        answer = self.scored_answer = self._completion.answer
        self._generated = answer.completion_tokens + sum(sample.completion_tokens for sample in samples)
        return uncertainty(self._score, answer, samples)

    async def _drafted(self) -> tuple[Completion, list[Answer]]:
        """The draft, and the further answers that its score needs; some of those may fail."""
        needs = self._score.needs
        asked = self._request.draft_body(needs, stream=False)
        logprobs_only = not needs.top_logprobs
        if not needs.samples:
            return await self._model.whole(asked, logprobs_only=logprobs_only), []
        calls = [self._model.whole(asked, logprobs_only=logprobs_only) for _ in range(1 + needs.samples)]
        draft, *others = await asyncio.gather(*calls, return_exceptions=True)
        if isinstance(draft, BaseException):
            raise draft
        return draft, [other.answer for other in others if isinstance(other, Completion)]

    @property
    def note(self) -> dict[str, Any]:
        """What the journal records of it with the decision."""
        return {"draft_tokens": self._generated}

    async def whole(self) -> Answer:
        """The whole draft."""
        return self._completion.answer

    def discard(self) -> None:
        """Count the tokens of a draft that no decision is made on."""
        self._savings.drafted(self._generated)

    def response(self, headers: list[Header]) -> ChatResponse:
        """The draft as the response to its caller, in chunks if the caller wants a stream."""
        request, confidence_asked = self._request, bool(self._score.needs.suffix)
        if request.logprobs or confidence_asked:
            body = to_json(visible(self._completion.body(), request, confidence_asked))
        else:
            body = without_logprobs(self._completion.raw, self._completion.logprobs)
        if not request.stream:
            return ChatResponse(headers, body)

        async def events() -> AsyncGenerator[bytes, None]:
            yield b"".join(chunks(from_json(body), request.include_usage)) + DONE

        return ChatResponse(headers, events=events())


def uncertainty(score: Score, draft: Answer, samples: list[Answer]) -> float:
    """The uncertainty of a draft, or ``NoScore``."""
    try:
        return fraction(score(draft, samples), "uncertainty")
    except BpacError as error:
        raise NoScore("the draft has no score") from error
    except Exception as error:  # a score may be any function; a draft that it fails on has no score
        log.warning("score failed", extra={"error": type(error).__name__})
        raise NoScore("the draft has no score") from error
