"""Drafts that are scored by their beginning, and flow on from there."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from bpac.answer import Answer
from bpac.errors import AnswerError, BpacError, ModelError, Unavailable
from bpac.gateway.chat.channel import Channel
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.upstream import Upstream
from bpac.gateway.config.routes import RouteSettings
from bpac.gateway.games.savings import Savings
from bpac.gateway.http.errors import error_event
from bpac.wire.rendering import DONE, event, event_stream, visible, without_logprobs
from bpac.wire.stream import StreamEvent, Transcript

log = logging.getLogger("bpac.gateway")

Spawn = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]


class StreamedDraft:
    """A draft that is being written, in a task that outlives its caller if it must.

    Parameters
    ----------
    upstream: the draft's model.
    request: what the caller asked for.
    settings: of the route.
    spawn: starts the task.
    savings: told how many tokens it came to, which is known only after the decision is journalled.
    """

    def __init__(
        self, upstream: Upstream, request: ChatRequest, settings: RouteSettings, spawn: Spawn, savings: Savings
    ) -> None:
        self._savings = savings
        self._deadline = settings.deadline
        self._upstream = upstream
        self._request = request
        self._channel = Channel()
        self._seen: list[StreamEvent] = []
        self._ended = False
        self._task = spawn(self._fetch(request.draft_body(settings.score.needs, stream=True)))

    async def answer(self, count: int) -> Answer:
        """The draft up to so many tokens, or all of it if it is shorter; a ``ModelError`` if it fails before."""
        beginning = Transcript()
        while len(beginning.tokens or ()) < count and (events := await self._next()) is not None:
            self._seen += events
            beginning.add(events)
        return beginning.answer()

    async def whole(self) -> Answer | None:
        """The whole draft; none if it failed or was cancelled."""
        # Not awaited itself: its cancellation must not look like that of the one who waits.
        await asyncio.wait({self._task})
        return None if self._task.cancelled() else self._task.result()

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The draft as its caller sees it: what there is at once, the rest as it comes."""
        try:
            if part := self._shown(self._seen):
                yield part
            while (events := await self._next()) is not None:
                if part := self._shown(events):
                    yield part
            yield DONE
        except BpacError as error:
            yield error_event(error)

    def cancel(self) -> None:
        """Stop writing it."""
        self._task.cancel()

    async def _next(self) -> list[StreamEvent] | None:
        # A short draft ends while its beginning is looked for: the end comes once, and is asked for twice.
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
        transcript = Transcript()
        answer: Answer | None = None
        try:
            async for events in self._upstream.stream(body, within=self._deadline):
                transcript.add(events)
                self._channel.put(events)
            answer = transcript.answer()
            self._channel.end()
        except AnswerError:
            self._channel.end(Unavailable(f"{self._upstream} sent what is no answer"))
        except ModelError as error:
            self._channel.end(error)
        except asyncio.CancelledError:
            self._channel.end(Unavailable("the draft was given up"))
            raise
        except Exception as error:  # whatever it is, the caller must not wait for ever
            log.error("draft failed", exc_info=error)
            self._channel.end(Unavailable(f"{self._upstream} sent what cannot be read"))
        finally:
            # Also of a draft that was cut off: what there is of it was paid for.
            self._savings.drafted(answer.completion_tokens if answer else len(transcript.tokens or ()))
        return answer
