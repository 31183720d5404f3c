"""A gateway in one event loop whose clock jumps: thousands of slow drafts and answers take no time."""

import asyncio
import itertools
import json
import selectors
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bpac.errors import Unavailable
from bpac.gateway import opening
from bpac.gateway.app import Gateway
from bpac.gateway.config.file import Config
from bpac.gateway.config.models.models import ModelSettings
from bpac.gateway.health.breaker import Breaker
from bpac.gateway.http.endpoints.chat import PATH
from bpac.gateway.service import Service
from bpac.stores import Store
from bpac.testing import Request, Script
from bpac.wire.completions import Completion, read_completion
from bpac.wire.stream import StreamEvent
from bpac.wire.usage import Meter, Usage


def repeat_coins(patch: pytest.MonkeyPatch) -> None:
    """Make the keys of coins the same in every run of a test."""
    numbers = itertools.count()
    patch.setattr("bpac.routing.coins.secrets.token_bytes", lambda size: next(numbers).to_bytes(size, "big"))


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jump(self))

    def time(self) -> float:
        """Seconds on its clock."""
        return self.now


class _Jump(selectors.SelectSelector):
    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout > 0:
            self._loop.now += timeout
            timeout = 0
        return super().select(timeout)


class ScriptedUpstream:
    """A model without a server: whole answers, and streams that do not begin."""

    script: Script
    down: Unavailable | None = None
    deployment = ""

    def __init__(self, settings: ModelSettings, *_: Any) -> None:
        self.settings = settings
        self.breaker = Breaker(settings.name, 0)

    def for_request(self) -> "ScriptedUpstream":
        """Itself."""
        return self

    async def whole(self, body: Mapping[str, Any], meter: Meter, *, logprobs_only: bool = False) -> Completion:
        """The scripted answer, after its delay."""
        asked = {**body, "model": self.settings.model}
        request = Request(1, asked)
        reply = type(self).script(request)
        await asyncio.sleep(reply.delay)
        if reply.status >= 500:
            raise Unavailable("scripted", reply.status)
        completion = read_completion(json.dumps(reply.body(request)).encode(), logprobs_only=logprobs_only)
        meter.answered = meter.answered.plus(Usage.of(completion.answer))
        return completion

    async def stream(self, body: Mapping[str, Any], meter: Meter, *, within: float) -> AsyncIterator[list[StreamEvent]]:
        """A stream that does not begin."""
        await asyncio.Event().wait()
        yield []


@asynccontextmanager
async def virtual(
    config: Any, script: Script, patch: pytest.MonkeyPatch, store: Store | None = None
) -> AsyncIterator[Gateway]:
    """A gateway with scripted models, in the running event loop."""
    patch.setattr(opening, "Upstream", ScriptedUpstream)
    patch.setattr(ScriptedUpstream, "script", staticmethod(script), raising=False)
    gateway = Gateway(Service(Config.read(config), store))
    await gateway.service.start()
    try:
        yield gateway
    finally:
        await gateway.service.stop()


async def ask(gateway: Gateway, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, str]:
    """Request a chat completion; returns the headers of the response, with ``status``."""
    sent = [{"type": "http.request", "body": json.dumps(body).encode()}]
    got: dict[str, str] = {}

    async def receive() -> Any:
        return sent.pop() if sent else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            got.update({name.decode(): value.decode() for name, value in message["headers"]})
            got["status"] = str(message["status"])

    usual = {"host": "127.0.0.1", "content-type": "application/json"}
    raw = [(name.encode(), value.encode()) for name, value in (usual | dict(headers)).items()]
    await gateway({"type": "http", "path": PATH, "method": "POST", "headers": raw}, receive, send)
    return got
