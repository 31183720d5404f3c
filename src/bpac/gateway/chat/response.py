"""What callers get: headers, and a whole answer or the events of a stream."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from bpac.errors import BpacError
from bpac.gateway.chat.channel import Channel
from bpac.gateway.http.errors import error_event
from bpac.wire.rendering import DONE

Header = tuple[bytes, bytes]


def nothing() -> None:
    """What is abandoned when nothing goes on."""


@dataclass(slots=True)
class ChatResponse:
    """What the caller gets.

    Parameters
    ----------
    headers: what was decided.
    body: a whole answer …
    events: … or the events of a stream.
    abandon: called when the caller has left or has all of it: whatever goes on for the caller alone ends.
    """

    headers: list[Header]
    body: bytes = b""
    events: AsyncGenerator[bytes, None] | None = None
    abandon: Callable[[], object] = nothing


async def events_of(first: bytes, channel: Channel) -> AsyncGenerator[bytes, None]:
    """An answer as it comes; an error after its beginning is sent as an event, the status being out already."""
    part: bytes | None = first
    try:
        while part is not None:
            yield part
            part = await channel.get()
        yield DONE
    except BpacError as error:
        yield error_event(error)
