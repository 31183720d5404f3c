"""Answers outside the games: a request that is forced to one model, or that asks for a route with one model.

Nothing is decided, so nothing is counted in a game: no ticket, no draft, no coin, no journal entry and no savings. That
a request is outside is known before any model is asked. If it depended on a draft, callers could choose by its quality
which rounds count.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from bpac.errors import Unavailable
from bpac.gateway.chat.drafts.streamed_draft import Spawn
from bpac.gateway.chat.experts.expert_result import DraftInstead, ExpertAnswer, ExpertResult
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse, Header, expert_response
from bpac.gateway.chat.upstreams.model import Model, ModelCall
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.wire.rendering import event_stream
from bpac.wire.stream import without_usage
from bpac.wire.usage import Meter

# Which of its models answers a request.
AnsweredBy = Literal["draft", "expert"]
# Why a request is outside, as the header x-bpac-decision says it in place of an id.
FORCED, SINGLE_MODEL, EFFORT = "forced", "single-model", "effort"


def effort_key(effort: str) -> str:
    """The key of what answers requests with that ``reasoning_effort``, among those that are forced to a model."""
    return f"effort {effort}"


@dataclass(frozen=True, slots=True)
class OutsideAnswers:
    """Answers requests with one model.

    Parameters
    ----------
    route: the name of the route.
    model: the model.
    answered_by: which model of the route it is.
    reason: why requests are outside: ``forced``, ``single-model`` or ``effort``.
    deadline: seconds after which a stream that has not ended is given up.
    metrics: counts the requests as ``bpac_outside_total{route,reason,answered_by}``.
    spawn: starts a task.
    """

    route: str
    model: Model
    answered_by: AnsweredBy
    reason: str
    deadline: float
    metrics: Metrics
    spawn: Spawn

    async def answer(self, request: ChatRequest) -> ChatResponse:
        """The model's answer; an error that is raised is what the caller gets."""
        self.metrics.count("bpac_outside_total", route=self.route, reason=self.reason, answered_by=self.answered_by)
        headers = self._headers()
        request.is_known(*headers[:2])
        model = self.model.for_request()
        found, task = await fetched_alone(self.spawn, ExpertResult(), partial(self._fetch, request, model))
        if model.deployment:
            headers.append((b"x-bpac-deployment", model.deployment.encode()))
        response = expert_response(found, headers, stream=request.stream)
        response.abandon = task.cancel
        return response

    async def _fetch(self, request: ChatRequest, model: ModelCall, result: ExpertResult) -> None:
        asked = request.for_draft() if self.answered_by == "draft" else request
        await pass_on(asked, model, result, Meter(), self.deadline)

    def _headers(self) -> list[Header]:
        return [
            (b"x-bpac-decision", self.reason.encode()),
            (b"x-bpac-answered-by", self.answered_by.encode()),
            (b"x-bpac-uncertainty", b"1.0"),
            (b"x-bpac-threshold", b"0.0"),
            (b"x-bpac-propensity", b"1.0" if self.answered_by == "expert" else b"0.0"),
        ]


async def pass_on(request: ChatRequest, model: ModelCall, result: ExpertResult, meter: Meter, deadline: float) -> None:
    """Pass a model's answer on as it arrives, whole or streamed, as the caller wants it.

    Parameters
    ----------
    request: what is asked.
    model: answers.
    result: where the answer appears.
    meter: counts its tokens.
    deadline: seconds after which a stream that has not ended is given up.
    """
    body = request.expert_body(stream=request.stream)
    if not request.stream:
        completion = await model.whole(body, meter)
        result.deployment = model.deployment
        result.put(completion.raw)
        return
    async with aclosing(model.stream(body, meter, within=deadline)) as arriving:
        async for events in arriving:
            result.deployment = model.deployment
            if shown := events if request.include_usage else without_usage(events):
                result.put(event_stream(shown))


async def fetched_alone(
    spawn: Spawn, result: ExpertResult, fetch: Callable[[ExpertResult], Coroutine[Any, Any, None]]
) -> tuple[ExpertAnswer, "asyncio.Task[Any]"]:
    """An answer that is for its caller alone, and the task that fetches it, which is cancelled when the caller leaves.

    Parameters
    ----------
    spawn: starts the task.
    result: where the answer appears.
    fetch: fetches the answer and passes it on.
    """

    async def fetched() -> None:
        try:
            await fetch(result)
        except asyncio.CancelledError:
            result.fail(Unavailable("the caller has left"))
            raise
        except Exception as error:  # whatever it is, the caller must not wait forever
            result.fail(error)
        else:
            result.end()

    task = spawn(fetched())
    try:
        found = await result.get()
    except BaseException:
        task.cancel()
        raise
    if isinstance(found, DraftInstead):
        raise TypeError("there is no draft")
    return found, task


def outside_counts(metrics: Metrics) -> dict[str, dict[str, int]]:
    """The number of requests that were answered outside the games since the start, by route and reason."""
    found: dict[str, dict[str, int]] = {}
    for (name, labels), count in metrics.counts.items():
        if name == "bpac_outside_total":
            known = dict(labels)
            reason = known["reason"] if known["reason"] != FORCED else f"{FORCED} {known['answered_by']}"
            found.setdefault(known["route"], {})[reason] = count
    return found
