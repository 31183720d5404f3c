"""The response to a chat request: headers, and a whole answer or a stream of events."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from bpac.errors import BpacError
from bpac.gateway.chat.experts.expert_result import ExpertAnswer
from bpac.gateway.http.errors import error_event
from bpac.wire.rendering import DONE

Header = tuple[bytes, bytes]


def nothing() -> None:
    """Do nothing."""


@dataclass(slots=True)
class ChatResponse:
    """The response to a chat request.

    Parameters
    ----------
    headers: what was decided.
    body: a whole answer; empty for a stream.
    events: the events of a stream; none for a whole answer.
    abandon: called when the response is sent or the caller has left, to end work that is done for the caller alone.
    """

    headers: list[Header]
    body: bytes = b""
    events: AsyncGenerator[bytes, None] | None = None
    abandon: Callable[[], object] = nothing


def expert_response(answer: ExpertAnswer, headers: list[Header], *, stream: bool) -> ChatResponse:
    """The expert's answer, passed on as it arrives."""
    return ChatResponse(headers, events=_events(answer)) if stream else ChatResponse(headers, answer.first)


async def _events(answer: ExpertAnswer) -> AsyncGenerator[bytes, None]:
    """The events of an answer; an error after the first event becomes an event, because the status has been sent."""
    part: bytes | None = answer.first
    try:
        while part is not None:
            if part:
                yield part
            part = await answer.rest.get()
        yield DONE
    except BpacError as error:
        yield error_event(error)
