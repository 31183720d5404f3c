"""Requests that are passed through to a model server as they are: embeddings, and completions without a chat."""

import time
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any

from bpac.errors import AnswerError
from bpac.gateway.chat.upstreams.upstream import Upstream
from bpac.models.connections import FAILURES
from bpac.models.fields import merged
from bpac.models.reading import TooLong, TooSlow, read_whole
from bpac.models.retrying import resumed, started
from bpac.wire.json import from_strict_json, to_json


class RawUpstream(Upstream):
    """A model server whose responses are not read, except that a whole one must be JSON."""

    async def passed_on(self, body: Mapping[str, Any]) -> bytes:
        """The server's JSON; ``UpstreamRefused`` or ``Unavailable`` if there is none."""
        return await self._retried(partial(self._fetched, self._passed(body), body))

    def passed_on_stream(self, body: Mapping[str, Any], *, within: float) -> AsyncGenerator[bytes, None]:
        """The server's stream, in parts as they arrive; ``UpstreamRefused`` or ``Unavailable``.

        Parameters
        ----------
        body: the request.
        within: seconds after which a stream that has not ended is given up.
        """
        request, deadline = self._passed(body), time.monotonic() + within
        return resumed(lambda: self._retried(lambda: started(self._parts(request, body, deadline))), str(self))

    def _passed(self, body: Mapping[str, Any]) -> bytes:
        # What is adapted are chats: other endpoints have other fields, such as max_tokens without a successor.
        return to_json(merged(body, {**self.settings.body, "model": self.settings.model}))

    async def _fetched(self, request: bytes, body: Mapping[str, Any]) -> bytes:
        try:
            with self._spans(body) as traced:
                async with self._endpoint.post(request, self._whole_timeout, traced.headers) as response:
                    traced.responded(response.status)
                    if response.status >= 300:
                        await self._failures.refuse(response)
                    data = await read_whole(response.content, self._limits.max_answer)
                document = _json(data)
                if not isinstance(document, dict):
                    raise AnswerError("the response is not a JSON object")
                traced.answered(lambda: document)
            self.record.succeeded()
            return data
        except (*FAILURES, AnswerError) as error:
            raise self._failures.error_of(error) from error

    async def _parts(self, request: bytes, body: Mapping[str, Any], deadline: float) -> AsyncGenerator[bytes, None]:
        size = 0
        try:
            with self._spans(body) as traced:
                async with self._endpoint.post(request, self._stream_timeout, traced.headers) as response:
                    traced.responded(response.status)
                    if response.status >= 300:
                        await self._failures.refuse(response)
                    while data := await response.content.readany():
                        size += len(data)
                        if size > self._limits.max_answer:
                            raise TooLong(f"the stream is longer than {self._limits.max_answer} bytes")
                        if time.monotonic() > deadline:
                            raise TooSlow("the stream does not end")
                        yield data
            self.record.succeeded()
        except (*FAILURES, AnswerError) as error:
            raise self._failures.error_of(error) from error


def _json(data: bytes) -> object:
    try:
        return from_strict_json(data)
    except (ValueError, RecursionError) as error:
        raise AnswerError("the response is not JSON") from error
