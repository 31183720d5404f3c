"""The response to a chat request, translated to the API in which the caller asked."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from bpac.errors import AnswerError, Unavailable
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.http.doors.door import ReplyWriter
from bpac.gateway.http.doors.error_formats import reported
from bpac.gateway.http.errors import status_and_body
from bpac.wire.json import from_json, to_json
from bpac.wire.sse import SseReader
from bpac.wire.stream import DONE

Report = Callable[[Exception], None]


def translated(response: ChatResponse, writer: ReplyWriter, report: Report) -> ChatResponse:
    """The same response in another format; ``BadRequest`` with status 502 if a whole answer cannot be translated.

    Parameters
    ----------
    response: the response, as a chat completion or its events.
    writer: writes it.
    report: called with the same error if it is an event of a stream.
    """
    if response.events is not None:
        events = _events(response.events, writer, report)
        return ChatResponse(response.headers, events=events, abandon=response.abandon)
    try:
        body = to_json(writer.whole(from_json(response.body)))
    except AnswerError as error:
        response.abandon()
        raise _untranslatable() from error
    return ChatResponse(response.headers, body, abandon=response.abandon)


async def _events(
    events: AsyncGenerator[bytes, None], writer: ReplyWriter, report: Report
) -> AsyncGenerator[bytes, None]:
    reader, ended = SseReader(), False
    async with aclosing(events):
        async for part in events:
            written, ended = _written(reader.feed(part), writer, report)
            if written:
                yield written
            if ended:
                break
    if not ended:
        yield writer.fail(_error(Unavailable("the stream ended before the answer did")))


def _written(datas: list[bytes], writer: ReplyWriter, report: Report) -> tuple[bytes, bool]:
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
    except AnswerError:
        report(error := _untranslatable())
        return b"".join([*written, writer.fail(_error(error))]), True
    return b"".join(written), False


def _untranslatable() -> BadRequest:
    return BadRequest("the model's answer cannot be expressed in this API", 502, code="untranslatable")


def _error(error: Exception) -> Mapping[str, Any]:
    return reported(status_and_body(error)[1])
