"""The response to a chat request, translated to the API in which the caller asked."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from bpac.errors import AnswerError, Unavailable
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.http.doors.door import ReplyWriter
from bpac.gateway.http.doors.error_formats import reported
from bpac.gateway.http.errors import status_and_body
from bpac.gateway.telemetry.log_rate import LogRate
from bpac.wire.json import from_json, to_json
from bpac.wire.sse import SseReader
from bpac.wire.stream import DONE

log = logging.getLogger("bpac.gateway")

# A server that writes such answers writes many of them.
_rate = LogRate()


def translated(response: ChatResponse, writer: ReplyWriter) -> ChatResponse:
    """The same response in another format; ``Unavailable`` if a whole answer cannot be translated.

    Parameters
    ----------
    response: the response, as a chat completion or its events.
    writer: writes it.
    """
    if response.events is not None:
        return ChatResponse(response.headers, events=_events(response.events, writer), abandon=response.abandon)
    try:
        body = to_json(writer.whole(from_json(response.body)))
    except AnswerError as error:
        response.abandon()
        raise _untranslatable(error) from error
    return ChatResponse(response.headers, body, abandon=response.abandon)


async def _events(events: AsyncGenerator[bytes, None], writer: ReplyWriter) -> AsyncGenerator[bytes, None]:
    reader, ended = SseReader(), False
    async with aclosing(events):
        async for part in events:
            written, ended = _written(reader.feed(part), writer)
            if written:
                yield written
            if ended:
                break
    if not ended:
        yield writer.fail(_error(Unavailable("the stream ended before the answer did")))


def _written(datas: list[bytes], writer: ReplyWriter) -> tuple[bytes, bool]:
    """What the data of events become, and whether the answer has ended."""
    written: list[bytes] = []
    try:
        for data in datas:
            if data == DONE:
                return b"".join([*written, writer.end()]), True
            chunk = from_json(data)
            if chunk.get("error"):
                return b"".join([*written, writer.fail(reported(chunk))]), True
            written.append(writer.add(chunk))
    except AnswerError as error:
        return b"".join([*written, writer.fail(_error(_untranslatable(error)))]), True
    return b"".join(written), False


def _untranslatable(error: AnswerError) -> Unavailable:
    if times := _rate.count("untranslatable"):
        log.warning("answer cannot be translated", extra={"error": str(error), "since_last_line": times})
    return Unavailable("the model's answer cannot be translated")


def _error(error: Exception) -> Mapping[str, Any]:
    return reported(status_and_body(error)[1])
