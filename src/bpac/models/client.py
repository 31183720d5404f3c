"""A client of any server that speaks OpenAI's chat API, its Responses API, or Anthropic's Messages API."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self

from bpac.answer import Answer
from bpac.arguments import positive
from bpac.errors import AnswerError, Refused, Unavailable
from bpac.models.api import DEFAULT_MAX_TOKENS, ApiName, ModelApi, model_api
from bpac.models.connections import (
    FAILURES,
    HEADERS,
    HttpResponse,
    Session,
    SessionEndpoint,
    idle_timeout,
    new_session,
    total_timeout,
)
from bpac.models.fields import address, endpoint_url, merged, merged_headers, redacted, secret
from bpac.models.metering import Attempt, TokenRates, prompt_size
from bpac.models.reading import TooLong, read_answer, read_start, read_whole, stream_events
from bpac.models.retrying import LATER, Failed, RetryPolicy, requested_wait, resumed, started
from bpac.models.via import via
from bpac.wire.completions import Completion
from bpac.wire.json import from_json, to_json
from bpac.wire.stream import StreamEvent
from bpac.wire.translating import NotExpressible, ReportedError
from bpac.wire.usage import Meter

# The most bytes and JSON values of an answer.
MAX_BYTES, MAX_VALUES = 64 * 2**20, 2_000_000
# Bytes of an error response that are read; a line of it is shown.
LONGEST_ERROR = 2**16

Messages = Sequence[Mapping[str, Any]]


@dataclass(eq=False, slots=True)
class ModelClient:
    """One model on one server: ask it for whole answers or for streams.

    Use it as an asynchronous context manager, or call ``close``. A client belongs to one event loop.

    Parameters
    ----------
    base_url: the URL of the server, ``/v1`` included.
    model: the model's name there.
    api_key: the key, or ``env:NAME`` for the environment variable that holds it (default: none).
    timeout: seconds that one attempt may take: to the end of a whole answer, between two parts of a stream
        (default: 600).
    retries: how often a failed attempt is repeated (default: 2).
    backoff: seconds before the first repetition, doubled before each further one and shortened at random by up to a
        half, so that many callers do not come back at once (default: 0.5). A ``Retry-After`` that asks for more is
        honoured.
    longest_wait: the most seconds to wait before a repetition (default: 60). If the server asks for more, the request
        fails.
    body: fields of every request, such as ``{"chat_template_kwargs": {"enable_thinking": False}}`` (default: none).
        They override those of a call, because they make this model the draft or the expert.
    headers: headers of every request; values may be ``env:NAME`` (default: none).
    ca_file: a file with certificates (PEM) that are trusted in addition to those of the system (default: none).
    api: the API of the server: ``chat``, ``responses`` (OpenAI) or ``messages`` (Anthropic) (default: ``chat``).
        Questions and answers are those of the chat API in any case.
    default_max_tokens: the limit on generated tokens of requests without one to ``messages``, which demands one
        (default: 16,384).
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
    ca_file: str | None = None
    api: ApiName = "chat"
    default_max_tokens: int = DEFAULT_MAX_TOKENS
    _api: ModelApi = field(init=False, repr=False)
    _retrying: RetryPolicy = field(init=False, repr=False)
    _session: Session | None = field(default=None, init=False, repr=False)
    _rates: TokenRates = field(default_factory=TokenRates, init=False, repr=False)

    def __post_init__(self) -> None:
        self.base_url = address(self.base_url, "base_url")
        self.timeout = positive(self.timeout, "timeout")
        self._retrying = RetryPolicy(self.retries, self.backoff, self.longest_wait)
        own = {name: secret(value, f"header {name}") for name, value in self.headers.items()}
        self._api = model_api(self.api, self.default_max_tokens)
        key = secret(self.api_key, "api_key") if self.api_key else None
        self.headers = merged_headers(HEADERS, self._api.headers_with(key), own)

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
        return (await self._completion(messages, body, Meter())).answer

    async def ask(self, messages: Messages, **body: Any) -> dict[str, Any]:
        """The server's own chat completion, of which ``complete`` returns what ``Answer`` holds."""
        return (await self._completion(messages, body, Meter())).body()

    def stream(self, messages: Messages, **body: Any) -> AsyncGenerator[StreamEvent, None]:
        """The events of the model's answer as they arrive; ``bpac.wire.stream.Transcript`` puts them together.

        Failures are retried until the first event has arrived. After that a repetition would not continue the same
        answer, and the stream ends with ``Unavailable``. To stop early, close the generator (``aclosing``), which
        closes the connection.
        """
        fields = {"stream_options": {"include_usage": True}, **body, "stream": True}

        async def start() -> tuple[StreamEvent, AsyncGenerator[StreamEvent, None]]:
            request = self._request(messages, fields)
            return await self._retrying.get(lambda: started(self._events(request)), str(self))

        return resumed(start, str(self))

    def __str__(self) -> str:
        return f"{self.model} at {redacted(self.base_url)}"

    def _request(self, messages: Messages, body: Mapping[str, Any]) -> bytes:
        own = {**self.body, "model": self.model, "messages": list(messages)}
        chat = {name: value for name, value in merged(body, own).items() if value is not None}
        if self._api.translation is None:
            return to_json(chat)
        try:
            return to_json(self._api.translation.write(chat))
        except NotExpressible as error:
            raise Refused(f"{self} cannot be asked this: {error}", 400) from error

    async def _completion(self, messages: Messages, body: Mapping[str, Any], meter: Meter) -> Completion:
        counting = partial(Attempt, meter, self._rates, prompt_size({"messages": list(messages)}))
        return await self._retrying.get(partial(self._attempt, self._request(messages, body), counting), str(self))

    async def _attempt(self, request: bytes, counting: Callable[[], Attempt]) -> Completion:
        try:
            with counting() as attempt:
                async with self._endpoint().post(request, total_timeout(self.timeout)) as response:
                    if response.status >= 300:
                        attempt.refused()
                    await self._check(response)
                    data = await read_whole(response.content, MAX_BYTES)
                completion = read_answer(data, MAX_VALUES, self._api.translation)
                attempt.answered(completion.answer)
            return completion
        except TooLong as error:
            raise Unavailable(f"{self}: {error}") from error  # another attempt would be as long
        except (*FAILURES, AnswerError) as error:
            raise self._failure(error) from error

    async def _events(self, request: bytes) -> AsyncGenerator[StreamEvent, None]:
        try:
            async with self._endpoint().post(request, idle_timeout(self.timeout)) as response:
                await self._check(response)
                found = stream_events(response.content, MAX_BYTES, MAX_VALUES, translation=self._api.translation)
                async with aclosing(found) as arriving:
                    async for events in arriving:
                        for event in events:
                            yield event
        except TooLong as error:
            raise Unavailable(f"{self}: {error}") from error
        except (*FAILURES, AnswerError) as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> Failed | Refused:
        if isinstance(error, ReportedError) and error.refused:
            return Refused(f"{self} refused: {error}", 400)
        return Failed(_described(error))

    def _endpoint(self) -> SessionEndpoint:
        if self._session is None:
            self._session = new_session()
        url = endpoint_url(self.base_url, self._api.path)
        return SessionEndpoint(self._session, url, self.headers, via(url, self.ca_file))

    async def _check(self, response: HttpResponse) -> None:
        status = response.status
        if status < 300:
            return
        reason = f"status {status}: {_error_message(await read_start(response.content, LONGEST_ERROR))}"
        if status in LATER or status >= 500:
            raise Failed(reason, status, requested_wait(response.headers.get("Retry-After")))
        if status < 400:
            location = redacted(response.headers.get("Location", "an unknown address"))
            reason = f"status {status}: it is at {location}; correct base_url"
        raise Refused(f"{self} refused: {reason}", status)


def _error_message(data: bytes) -> str:
    """The message in the body of an error response, shortened to a line."""
    text: Any = data.decode("utf-8", "replace")
    try:
        error = from_json(data)["error"]
        text = error["message"] if isinstance(error, dict) else error
    except (AnswerError, LookupError, TypeError):
        pass
    return " ".join(str(text).split())[:300] or "no message"


def _described(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
