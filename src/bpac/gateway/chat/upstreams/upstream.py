"""The model servers behind the gateway: a caller's request is sent to them, and their answers are read."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from bpac.errors import AnswerError, Unavailable
from bpac.gateway.chat.upstreams.failed_attempts import FailedAttempts
from bpac.gateway.chat.upstreams.model import Check
from bpac.gateway.chat.upstreams.sent_request import SentRequest, sent_request
from bpac.gateway.chat.upstreams.upstream_errors import Busy, UpstreamRefused
from bpac.gateway.config.limits import Limits
from bpac.gateway.config.models.models import ModelSettings
from bpac.gateway.health.breaker import Breaker
from bpac.gateway.telemetry.failures.upstream_failures import UpstreamRecord
from bpac.gateway.telemetry.tracing.attempt_spans import AttemptSpan
from bpac.gateway.telemetry.tracing.gen_ai import ModelAddress
from bpac.gateway.telemetry.tracing.traces import NoTraces, Traces
from bpac.models.api import model_api
from bpac.models.connections import (
    FAILURES,
    HEADERS,
    Endpoint,
    Session,
    idle_timeout,
    total_timeout,
)
from bpac.models.endpoint import new_endpoint
from bpac.models.fields import endpoint_url, merged, merged_headers, redacted
from bpac.models.metering import Attempt, TokenRates, prompt_size
from bpac.models.reading import StreamCutOff, read_answer, read_whole, stream_events
from bpac.models.retrying import Failed, RetryPolicy, resumed, started
from bpac.models.via import via
from bpac.wire.completions import Completion
from bpac.wire.json import to_json
from bpac.wire.originals import in_own_words
from bpac.wire.signers import signer_of
from bpac.wire.stream import StreamEvent
from bpac.wire.translating import NotExpressible
from bpac.wire.usage import Meter

# What a server is asked for when it may be down.
TRIAL: Mapping[str, Any] = {"messages": [{"role": "user", "content": "1 + 1 ="}], "max_tokens": 1}

T = TypeVar("T")


class Upstream:
    """One model on one server.

    Parameters
    ----------
    settings: the model and its server.
    session: the connections, shared by all upstreams.
    traces: records each attempt, and adds headers with which the server can continue the trace (default: no traces).
    record: records answers and failed attempts (default: a private one).
    limits: how long an answer may be.
    path: the endpoint below the address of the server (default: that of chats in the API of the model).

    Attributes
    ----------
    breaker: lets requests fail at once while the server is down.
    deployment: the name of the deployment that answered; empty, because there is only one (see ``Deployments``).
    """

    deployment = ""

    def __init__(
        self,
        settings: ModelSettings,
        session: Session,
        traces: Traces | None = None,
        record: UpstreamRecord | None = None,
        limits: Limits | None = None,
        *,
        path: str | None = None,
    ) -> None:
        self.settings = settings
        address = ModelAddress(settings.name, settings.model, settings.base_url, settings.api, path or "")
        self._spans = (traces or NoTraces()).attempts(address)
        self.record = record or UpstreamRecord(settings.name)
        self._limits = limits or Limits()
        self._described = f"{settings.model} at {redacted(settings.base_url)}"  # made once: every request needs it
        signer = signer_of(redacted(settings.base_url), settings.model)
        self._api = api = model_api(settings.api, settings.default_max_tokens, signer)
        self._failures = FailedAttempts(self._described, self.record, api, settings.timeout)
        headers = merged_headers(HEADERS, api.headers_with(settings.api_key), settings.headers)
        way = via(settings.base_url, settings.ca_file)

        def endpoint(path: str) -> Endpoint:
            return new_endpoint(session, endpoint_url(settings.base_url, path), headers, way)

        self._endpoint_at = endpoint
        self._endpoint = endpoint(path or api.path)
        self.breaker = Breaker(self._described, settings.breaker)
        self._retrying = RetryPolicy(settings.retries, settings.backoff)
        self._rates = TokenRates()
        self._whole_timeout = total_timeout(settings.timeout)
        self._stream_timeout = idle_timeout(settings.timeout)

    def __str__(self) -> str:
        return self._described

    async def whole(
        self, body: Mapping[str, Any], meter: Meter, *, logprobs_only: bool = False, check: Check | None = None
    ) -> Completion:
        """A whole answer; ``UpstreamRefused`` or ``Unavailable`` if there is none.

        Parameters
        ----------
        body: the request.
        meter: counts the tokens of all attempts.
        logprobs_only: whether the log-probability is all that is needed of each token (default: no).
        check: raises ``AnswerError`` if the answer is not what was asked for; this counts as a failure of the model,
            and is raised without a retry (default: every answer can be used).
        """
        counting = partial(Attempt, meter, self._rates, prompt_size(body))
        span = partial(self._spans, body)
        return await self._retried(partial(self._complete, self._request(body), counting, span, logprobs_only, check))

    async def once(self, body: Mapping[str, Any], seconds: float) -> Completion:
        """The answer of one attempt, also while the server is down; ``Failed`` or a ``ModelError`` if there is none.

        Parameters
        ----------
        body: the request.
        seconds: how long it may take.
        """
        return await self._once(self._request(body), seconds)

    async def trial(self, seconds: float) -> None:
        """Ask for one token, also while the server is down, and raise like ``once``.

        The request is as plain as possible: with the fields of ``body`` a model may think for long. If the server
        refuses it, the server is up.

        Parameters
        ----------
        seconds: how long it may take.
        """
        await self._once(self._written({"model": self.settings.model, **TRIAL}), seconds)

    async def answers(self, path: str, body: Mapping[str, Any], seconds: float) -> bool:
        """Whether the server answers a request that is no chat, also while it is down; only an answer is recorded.

        Parameters
        ----------
        path: the endpoint below the address of the server.
        body: the request.
        seconds: how long it may take.
        """
        request = to_json({**body, "model": self.settings.model})
        try:
            async with (
                asyncio.timeout(seconds),
                self._endpoint_at(path).post(request, self._whole_timeout, {}) as response,
            ):
                await read_whole(response.content, self._limits.max_answer)
                fine = response.status < 300
        except (*FAILURES, AnswerError):
            return False
        if fine:
            self.record.succeeded()
        return fine

    async def _once(self, request: SentRequest, seconds: float) -> Completion:
        try:
            async with asyncio.timeout(seconds):
                # Whom a trial is billed to no game knows.
                counting = partial(Attempt, Meter(), self._rates, len(request.data))
                return await self._complete(request, counting, partial(self._spans, {}))
        except TimeoutError as error:
            self._failures.count("timeout", f"no answer within {seconds:g} s")
            raise Failed("no answer in time") from error

    @property
    def down(self) -> Unavailable | None:
        """The error of a request, if the server is known to be down; none if requests are sent to it."""
        return self.breaker.down

    def for_request(self) -> "Upstream":
        """The model for one request."""
        return self

    def stream(
        self, body: Mapping[str, Any], meter: Meter, *, within: float
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """The events of an answer, in lists of those that arrived together; ``UpstreamRefused`` or ``Unavailable``.

        Parameters
        ----------
        body: the request.
        meter: counts the tokens of all attempts; those of a stream when it ends, or is closed.
        within: seconds after which a stream that has not ended is given up, even if events keep coming.
        """
        deadline = time.monotonic() + within
        counting = partial(Attempt, meter, self._rates, prompt_size(body))

        async def start() -> tuple[list[StreamEvent], AsyncGenerator[list[StreamEvent], None]]:
            request = self._request(body)
            span = partial(self._spans, body)
            return await self._retried(lambda: started(self._events(request, counting, span, deadline)))

        return resumed(start, str(self))

    def unusable_stream(self) -> Unavailable:
        """Record that a stream ended without being an answer, and return the error of it."""
        self._failures.count("unusable", "its stream is not an answer")
        return Unavailable(f"{self} sent a stream that is not an answer")

    def given_up(self, seconds: float) -> None:
        """Record that an answer did not come within so many seconds and is no longer awaited."""
        self._failures.count("timeout", f"no answer within {seconds:g} s")
        self.breaker.missed()

    def _request(self, body: Mapping[str, Any]) -> SentRequest:
        body = in_own_words(body, self.settings.api)
        if self.settings.adaptation is not None:
            body = self.settings.adaptation(body)
        own = {**self.settings.body, "model": self.settings.model}
        return self._written(merged(body, own) if self.settings.body else {**body, **own})

    def _written(self, chat: Mapping[str, Any]) -> SentRequest:
        """A chat request as the server's API has it; ``UpstreamRefused`` if the API cannot express it."""
        try:
            return sent_request(chat, self._api, self.settings.headers)
        except NotExpressible as error:
            # No other deployment could be asked this either, and no retry would help: as if the server had refused it.
            said = f"its API cannot express {error.field}"
            self._failures.count("not_expressible", said)
            raise UpstreamRefused(f"{self}: {said}", 400, error.body(), None, (error.field,)) from error

    async def _retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        self.breaker.check()
        try:
            return await self._retrying.get(partial(self.breaker.attempt, attempt), str(self))
        except Unavailable as error:
            # A caller can wait as long as the server asks for, and so gets its error.
            if isinstance(error.__cause__, Busy) and error.status is not None and error.status < 500:
                raise error.__cause__.refusal from error
            raise

    async def _complete(
        self,
        request: SentRequest,
        counting: Callable[[], Attempt],
        span: Callable[[], AttemptSpan],
        logprobs_only: bool = False,
        check: Check | None = None,
    ) -> Completion:
        try:
            with counting() as attempt, span() as traced:
                headers = {**request.headers, **traced.headers}
                async with self._endpoint.post(request.data, self._whole_timeout, headers) as response:
                    traced.responded(response.status)
                    if response.status >= 300:
                        attempt.refused()
                        await self._failures.refuse(response)
                    data = await read_whole(response.content, self._limits.max_answer)
                answer = read_answer(
                    data, self._limits.max_answer_values, request.translation, logprobs_only=logprobs_only
                )
                attempt.answered(answer.answer)
                traced.answered(answer.body)
        except (*FAILURES, AnswerError) as error:
            raise self._failures.error_of(error) from error
        if check is not None:
            try:
                check(answer)
            except AnswerError:
                self._failures.count("unusable", "its answer cannot be used")
                raise
        self.record.succeeded()
        return answer

    async def _events(
        self, request: SentRequest, counting: Callable[[], Attempt], span: Callable[[], AttemptSpan], deadline: float
    ) -> AsyncGenerator[list[StreamEvent], None]:
        try:
            with counting() as attempt, span() as traced:
                headers = {**request.headers, **traced.headers}
                async with self._endpoint.post(request.data, self._stream_timeout, headers) as response:
                    attempt.streaming()
                    traced.responded(response.status)
                    if response.status >= 300:
                        attempt.refused()
                        await self._failures.refuse(response)
                    max_bytes, max_values = self._limits.max_answer, self._limits.max_answer_values
                    arriving = stream_events(response.content, max_bytes, max_values, deadline, request.translation)
                    empty = True
                    async with aclosing(arriving):
                        async for events in arriving:
                            empty = False
                            attempt.received(events)
                            traced.received(events)
                            yield events
        except StreamCutOff:
            self._failures.count("cut_off", "it broke off its stream")
            raise
        except (*FAILURES, AnswerError) as error:
            raise self._failures.error_of(error) from error
        if empty:
            self._failures.count("unusable", "its stream has no events")
        else:
            self.record.succeeded()
