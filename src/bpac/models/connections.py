"""Connections to model servers: how they are opened, and left so that they can be used again."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from bpac.errors import AnswerError, MissingExtra

try:
    import aiohttp
except ImportError as error:
    raise MissingExtra("aiohttp", "models") from error

# Bytes of an answer that nobody limits otherwise.
LONGEST_ANSWER = 64 * 2**20
# Seconds that a server may take to end a stream after saying that it has ended.
CLOSING = 0.1


class TooLong(AnswerError):
    """An answer is longer than allowed."""


def new_session(headers: Mapping[str, str] | None = None) -> aiohttp.ClientSession:
    """Connections for one event loop."""
    # No limit of its own, because waiting for a free connection would count as the server's silence; and no cookies,
    # which would carry what one caller was given to the next.
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar(), headers=headers
    )


async def read_out(content: aiohttp.StreamReader) -> None:
    """Read what follows the mark of the end, so that the connection can be used again; few servers keep it waiting."""
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(CLOSING):
            await content.read()


async def read_whole(content: aiohttp.StreamReader, most: int) -> bytes:
    """All of a body, or ``TooLong`` if it is longer than allowed: little can unfold to much."""
    data = await content.readany()
    if content.at_eof() and len(data) <= most:
        return data
    parts, size = [data], len(data)
    while size <= most and (data := await content.readany()):
        parts.append(data)
        size += len(data)
    if size > most:
        raise TooLong(f"the answer is longer than {most} bytes")
    return b"".join(parts)


async def read_at_most(content: aiohttp.StreamReader, most: int) -> bytes:
    """The beginning of a body, or all of it if it is no longer than that."""
    data = bytearray()
    while len(data) < most and (more := await content.read(most - len(data))):
        data += more
    return bytes(data)
