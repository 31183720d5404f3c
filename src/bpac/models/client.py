"""A client of any server that speaks the OpenAI protocol."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self

from bpac.answer import Answer
from bpac.arguments import positive
from bpac.errors import AnswerError, MissingExtra, Refused, Unavailable
from bpac.models.connections import LONGEST_ANSWER, TooLong, new_session, read_at_most, read_out, read_whole
from bpac.models.fields import address, below, merged, redacted, secret
from bpac.models.retrying import LATER, Failed, Patience, begun, carried_on, requested_wait
from bpac.wire.streams import Events, Piece

try:
    import aiohttp
except ImportError as error:
    raise MissingExtra("aiohttp", "models") from error

# Bytes of an error that are read: of what a server says in it, a line is shown.
LONGEST_ERROR = 2**16

Messages = Sequence[Mapping[str, Any]]


@dataclass(eq=False, slots=True)
class ModelClient:
    """One model on one server: ask it for whole answers or for streams of pieces.

    Use it as an asynchronous context manager, or ``close`` it; one client belongs to one event loop.

    Parameters
    ----------
    base_url: where the server is, ``/v1`` included.
    model: the model's name there.
    api_key: the key, or ``env:NAME`` for the environment variable that holds it.
    timeout: seconds one attempt may take: to the end for a whole answer, between two pieces for a stream.
    retries: how often a failed attempt is repeated.
    backoff: seconds before the first repetition; doubled before each further one, and shortened at random by up to
        a half so that many callers do not come back at once. A ``Retry-After`` that asks for more is honoured.
    longest_wait: the most seconds to wait before a repetition; a server that asks for more is given up.
    body: fields of every request, such as ``{"chat_template_kwargs": {"enable_thinking": False}}``. They win over
        those of a call: they are what makes this model the draft or the expert.
    headers: headers of every request; values may be ``env:NAME``.
    """

    base_url: str = field(repr=False)  # may hold a password
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 600.0
    retries: int = 2
    backoff: float = 0.5
    longest_wait: float = 60.0
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    _patience: Patience = field(init=False, repr=False)
    _session: aiohttp.ClientSession | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.base_url = address(self.base_url, "base_url")
        self.timeout = positive(self.timeout, "timeout")
        self._patience = Patience(self.retries, self.backoff, self.longest_wait)
        self.headers = {name: secret(value, f"header {name}") for name, value in self.headers.items()}
        if self.api_key:
            self.headers = {"Authorization": f"Bearer {secret(self.api_key, 'api_key')}", **self.headers}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection. The client can be used again afterwards."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def complete(self, messages: Messages, **body: Any) -> Answer:
        """The model's answer; ``Refused`` or ``Unavailable`` if there is none."""
        return Answer.from_openai(await self.ask(messages, **body))

    async def ask(self, messages: Messages, **body: Any) -> dict[str, Any]:
        """The server's own reply, which is a chat completion as far as ``Answer`` reads it."""
        return await self._patience.get(partial(self._ask, self._request(messages, body)), str(self))

    def stream(self, messages: Messages, **body: Any) -> AsyncGenerator[Piece, None]:
        """The pieces of the model's answer as they come.

        Failures are retried until the first piece has come; after that a repetition would not continue the same
        answer, so the stream ends with ``Unavailable``. Who stops early closes the generator (``aclosing``), and
        with it the connection.
        """
        fields = {"stream_options": {"include_usage": True}, **body, "stream": True}
        request = self._request(messages, fields)
        return carried_on(lambda: self._patience.get(lambda: begun(self._pieces(request)), str(self)), str(self))

    def __str__(self) -> str:
        return f"{self.model} at {redacted(self.base_url)}"

    def _request(self, messages: Messages, body: Mapping[str, Any]) -> dict[str, Any]:
        own = {**self.body, "model": self.model, "messages": list(messages)}
        return {name: value for name, value in merged(body, own).items() if value is not None}

    async def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            async with self._post(request, aiohttp.ClientTimeout(total=self.timeout)) as response:
                await self._check(response)
                body = json.loads(await read_whole(response.content, LONGEST_ANSWER))
            Answer.from_openai(body)
        except TooLong as error:
            raise Unavailable(f"{self}: {error}") from error  # it would be as long again
        except (aiohttp.ClientError, TimeoutError, OSError, AnswerError, ValueError, RecursionError) as error:
            raise Failed(_described(error)) from error
        checked: dict[str, Any] = body
        return checked

    async def _pieces(self, request: Mapping[str, Any]) -> AsyncGenerator[Piece, None]:
        events, finished, size = Events(), False, 0
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.timeout, sock_read=self.timeout)
        try:
            async with self._post(request, timeout) as response:
                await self._check(response)
                async for data in response.content.iter_any():
                    size += len(data)
                    if size > LONGEST_ANSWER:
                        raise TooLong(f"the stream is longer than {LONGEST_ANSWER} bytes")
                    for event in events.feed(data):
                        if event.strip() == "[DONE]":
                            await read_out(response.content)
                            return
                        piece = Piece.parse(event)
                        finished = finished or piece.finish_reason is not None
                        yield piece
        except TooLong as error:
            raise Unavailable(f"{self}: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError, AnswerError) as error:
            raise Failed(_described(error)) from error
        # Some servers leave out the mark of the end; then the model must have said why it stopped.
        if not finished:
            raise Failed("the stream was cut off")

    def _post(
        self, request: Mapping[str, Any], timeout: aiohttp.ClientTimeout
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            self._session = new_session(self.headers)
        url = below(self.base_url, "/chat/completions")
        # A redirected POST may arrive as a GET, and the key at another server.
        return self._session.post(url, json=request, timeout=timeout, allow_redirects=False)

    async def _check(self, response: aiohttp.ClientResponse) -> None:
        status = response.status
        if status < 300:
            return
        text = (await read_at_most(response.content, LONGEST_ERROR)).decode("utf-8", "replace")
        said = f"status {status}: {_message(text)}"
        if status in LATER or status >= 500:
            raise Failed(said, status, requested_wait(response.headers.get("Retry-After")))
        if status < 400:
            elsewhere = redacted(response.headers.get("Location", "an address it does not tell"))
            said = f"status {status}: it is at {elsewhere}; correct base_url"
        raise Refused(f"{self} refused: {said}", status)


def _message(text: str) -> str:
    """What the server said in an error body, as far as it fits in a line."""
    try:
        said = json.loads(text)["error"]
        text = said["message"] if isinstance(said, dict) else said
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return " ".join(str(text).split())[:300] or "nothing said"


def _described(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
