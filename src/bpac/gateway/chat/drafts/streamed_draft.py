"""Streamed drafts: scored by their first tokens while the rest is still being generated."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from bpac.answer import Answer
from bpac.errors import AnswerError, BpacError, ModelError, Unavailable
from bpac.gateway.chat.drafts.draft import Draft, impossible_uncertainty, uncertainty
from bpac.gateway.chat.drafts.impossible_drafts import impossible, impossible_start
from bpac.gateway.chat.experts.channel import Channel
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse, Header
from bpac.gateway.chat.upstreams.model import Model, deployment_note
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.desk import TokenCounts
from bpac.gateway.http.errors import error_event
from bpac.gateway.telemetry.metrics.stages import Stages
from bpac.scores import EquallySure
from bpac.wire.rendering import DONE, event, event_stream, visible, without_logprobs
from bpac.wire.stream import StreamEvent, Transcript
from bpac.wire.usage import Meter

log = logging.getLogger("bpac.gateway")

Spawn = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]


class StreamedDraft(Draft):
    """A draft that is being generated, in a task that outlives its caller if the grader needs it.

    Parameters
    ----------
    model: the draft's model.
    request: what the caller asked for.
    settings: the settings of the route.
    count: the number of tokens that are scored.
    spawn: starts the task.
    savings: counts the tokens of the draft, which are known only after the decision is in the journal.
    """

    complete = False

    def __init__(
        self,
        model: Model,
        request: ChatRequest,
        settings: RouteSettings,
        count: int,
        *,
        spawn: Spawn,
        savings: TokenCounts,
    ) -> None:
        self._model = model.for_request()
        self._request = request
        self._score = settings.score
        self._count = count
        self._deadline = settings.deadline
        self._savings = savings
        self._channel = Channel()
        self._seen: list[StreamEvent] = []
        self._ended = False
        self._needed_by_grader = False
        self._released = False
        self._task = spawn(self._fetch(request.draft_body(settings.score.needs, stream=True)))

    async def scored(self, stages: Stages) -> float:
        """The uncertainty of its first tokens, or of all of it if it is shorter."""
        first = Transcript()
        with stages("draft"):
            while not self._is_enough(first) and (events := await self._next()) is not None:
                self._seen += events
                first.add(events)
            answer = first.answer()
        # Of a draft that goes on, only its start can be known in time.
        reason = (impossible if self._ended else impossible_start)(self._request.body, answer)
        if reason and not isinstance(self._score, EquallySure):
            return impossible_uncertainty(stages, reason)
        self.scored_answer = answer
        return uncertainty(self._score, answer, [])

    def _is_enough(self, first: Transcript) -> bool:
        if isinstance(self._score, EquallySure):
            return bool(self._seen)  # tokens are not listed, and need not be
        return len(first.tokens or ()) >= self._count

    @property
    def note(self) -> dict[str, Any]:
        """Which deployment generates it; how many tokens it has is not known yet."""
        return deployment_note("draft", self._model.deployment)

    async def whole(self) -> Answer | None:
        """The whole draft; none if it failed or was cancelled."""
        # Not awaited directly: if it is cancelled, the task that waits for it must not look cancelled, too.
        await asyncio.wait({self._task})
        return None if self._task.cancelled() else self._task.result()

    def response(self, headers: list[Header]) -> ChatResponse:
        """What there is of the draft at once, and the rest as it arrives."""
        return ChatResponse(headers, events=self._events(), abandon=self.release)

    def discard(self) -> None:
        """Stop generating it."""
        self.cancel()

    def keep_for_grader(self) -> None:
        """Finish it even if its caller leaves."""
        self._needed_by_grader = True

    def not_for_grader(self) -> None:
        """The grader does not need it: cancel it if its caller has left meanwhile."""
        self._needed_by_grader = False
        if self._released:
            self.cancel()

    def release(self) -> None:
        """Its caller does not need it any more: cancel it unless the grader needs it."""
        self._released = True
        if not self._needed_by_grader:
            self.cancel()

    def cancel(self) -> None:
        """Stop generating it."""
        self._task.cancel()

    async def _events(self) -> AsyncGenerator[bytes, None]:
        try:
            if part := self._shown(self._seen):
                yield part
            while (events := await self._next()) is not None:
                if part := self._shown(events):
                    yield part
            yield DONE
        except BpacError as error:
            yield error_event(error)

    async def _next(self) -> list[StreamEvent] | None:
        # A short draft ends while its first tokens are awaited: its end is put once and looked for twice.
        events: list[StreamEvent] | None = None if self._ended else await self._channel.get()
        self._ended = events is None
        return events

    def _shown(self, events: list[StreamEvent]) -> bytes:
        counts = self._request.include_usage
        return b"".join(self._sent(part) for part in events if counts or not part.only_usage)

    def _sent(self, part: StreamEvent) -> bytes:
        if self._request.logprobs:
            return event(visible(part.body(), self._request))
        return event_stream([part._replace(data=without_logprobs(part.data))])

    async def _fetch(self, body: dict[str, Any]) -> Answer | None:
        transcript, meter = Transcript(), Meter()
        answer: Answer | None = None
        try:
            async with aclosing(self._model.stream(body, meter, within=self._deadline)) as arriving:
                async for events in arriving:
                    transcript.add(events)
                    self._channel.put(events)
            answer = transcript.answer()
            self._channel.end()
        except AnswerError:
            self._channel.end(self._model.unusable_stream())
        except ModelError as error:
            self._channel.end(error)
        except asyncio.CancelledError:
            self._channel.end(Unavailable("the draft was cancelled"))
            raise
        except Exception as error:  # whatever it is, the caller must not wait forever
            log.error("draft failed", exc_info=error)
            self._channel.end(Unavailable(f"{self._model} sent a stream that cannot be read"))
        finally:
            # Also of a draft that was cut off: the tokens it has were generated, and so paid for.
            self._savings.drafted(meter.take())
        return answer
