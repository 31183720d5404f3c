"""A route with one model: it answers chats, and what is passed through to it."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from bpac.errors import BpacError
from bpac.gateway.chat.experts.expert_result import ExpertResult
from bpac.gateway.chat.outside import OutsideAnswers, fetched_alone
from bpac.gateway.chat.response import ChatResponse, Header
from bpac.gateway.chat.upstreams.raw_upstream import RawUpstream
from bpac.gateway.http.errors import error_event

PASS_THROUGH = "pass-through"


@dataclass(frozen=True, slots=True)
class SingleRoute:
    """A route with one model.

    Parameters
    ----------
    chats: answers chats.
    raw: the model by the path of its other endpoints.
    """

    chats: OutsideAnswers
    raw: Mapping[str, RawUpstream]

    async def pass_through(self, path: str, body: Mapping[str, Any]) -> ChatResponse:
        """The server's own response to a request that is not a chat.

        Parameters
        ----------
        path: the endpoint below ``/v1``, such as ``/embeddings``.
        body: the request.
        """
        chats, model = self.chats, self.raw[path]
        chats.metrics.count("bpac_outside_total", route=chats.route, reason=PASS_THROUGH, answered_by="expert")
        headers: list[Header] = [(b"x-bpac-decision", PASS_THROUGH.encode()), (b"x-bpac-answered-by", b"expert")]
        stream = body.get("stream") is True
        found, task = await fetched_alone(chats.spawn, ExpertResult(), partial(self._fetch, model, body, stream))
        if not stream:
            return ChatResponse(headers, found.first, abandon=task.cancel)

        async def events() -> AsyncGenerator[bytes, None]:
            part: bytes | None = found.first
            try:
                while part is not None:
                    yield part
                    part = await found.rest.get()
            except BpacError as error:
                yield error_event(error)

        return ChatResponse(headers, events=events(), abandon=task.cancel)

    async def _fetch(self, model: RawUpstream, body: Mapping[str, Any], stream: bool, result: ExpertResult) -> None:
        if not stream:
            result.put(await model.passed_on(body))
            return
        async with aclosing(model.passed_on_stream(body, within=self.chats.deadline)) as parts:
            async for part in parts:
                result.put(part)
