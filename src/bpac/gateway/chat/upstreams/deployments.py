"""A model with several deployments, which are tried in order or by least load.

1. A request goes to the first deployment that is not known to be down: the first as listed (``balance = "order"``), or
   the one with the fewest requests under way (``"least_load"``).
2. If it fails, is busy, or does not know the model, the next one is tried at once. A refusal of what was asked is
   passed on: all deployments serve the same model, and would refuse it as well.
3. If all have failed, they are tried again after a pause, as often as ``retries`` says.
4. Each has a circuit breaker of its own. The model is down if all of them are.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from bpac.errors import AnswerError, ModelError, Refused, Unavailable
from bpac.gateway.chat.upstreams.model import Check
from bpac.gateway.chat.upstreams.upstream import Upstream
from bpac.gateway.config.models.models import ModelSettings
from bpac.gateway.telemetry.failures.upstream_failures import UpstreamRecord
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.models.retrying import LATER, Failed, RetryPolicy, resumed, started
from bpac.wire.completions import Completion
from bpac.wire.stream import StreamEvent
from bpac.wire.usage import Meter

T = TypeVar("T")

# Refusals that say nothing about what was asked: a rate limit, or a model that this server does not have.
_OF_THIS_SERVER = LATER | {404}


class Deployments:
    """A model with several deployments.

    Parameters
    ----------
    settings: the model.
    servers: its deployments by name, in the order in which they are listed.
    record: records whether the model answered; each deployment records its own failures.
    metrics: counts the answers of each deployment as ``bpac_deployment_answers_total{model,deployment}``.
    """

    def __init__(
        self, settings: ModelSettings, servers: Mapping[str, Upstream], record: UpstreamRecord, metrics: Metrics
    ) -> None:
        self.settings = settings
        self.servers = servers
        self._record = record
        self._metrics = metrics
        self._retrying = RetryPolicy(settings.retries, settings.backoff)
        self.load = dict.fromkeys(servers, 0)

    def __str__(self) -> str:
        return f"{self.settings.model} at {len(self.servers)} deployments"

    @property
    def down(self) -> Unavailable | None:
        """The error of a request, if all deployments are known to be down; none if requests are sent."""
        found = None
        for server in self.servers.values():
            found = server.down
            if found is None:
                return None
        return found

    def for_request(self) -> "DeploymentCall":
        """The model for one request, which notes the deployment that answers it."""
        return DeploymentCall(self)

    async def tried(self, send: Callable[[Upstream], Awaitable[T]]) -> tuple[str, T]:
        """The deployment that answered, and what ``send`` got from it; the error of the last one if none did."""
        last: ModelError | None = None

        async def once_each() -> tuple[str, T]:
            nonlocal last
            failed: Upstream | None = None
            if (down := self.down) is not None:
                raise down
            for name in self._order():
                self.load[name] += 1
                try:
                    return name, await send(self.servers[name])
                except ModelError as error:
                    self.load[name] -= 1
                    if isinstance(error, Refused) and error.status not in _OF_THIS_SERVER:
                        self.take_over(self.servers[name])
                        raise
                    last, failed = error, self.servers[name]
                except AnswerError:  # it answered, with something else than what was asked for
                    self.load[name] -= 1
                    self.take_over(self.servers[name])
                    raise
                except BaseException:
                    self.load[name] -= 1
                    raise
            if last is None or failed is None:
                raise TypeError("a model that is not down has a deployment that is not down")
            self.take_over(failed)
            raise _failure_of(last) or last

        try:
            name, result = await self._retrying.get(once_each, str(self))
        except Unavailable as error:
            if last is None or error is last:
                raise
            raise last from last.__cause__  # the error of the last deployment says more
        self._record.succeeded()
        self._metrics.count("bpac_deployment_answers_total", model=self.settings.name, deployment=name)
        return name, result

    def report(self) -> list[dict[str, Any]]:
        """What is known about each deployment, in their order, as JSON values."""
        found = []
        for name, server in self.servers.items():
            health = server.record.health
            answers = self._metrics.value("bpac_deployment_answers_total", model=self.settings.name, deployment=name)
            up = server.down is None and health.ok
            known = {"name": name, "up": up, "answers": answers, "failures": health.failures}
            found.append({**known, "error": health.error or None})
        return found

    def _order(self) -> list[str]:
        up = [name for name, server in self.servers.items() if server.down is None]
        return sorted(up, key=self.load.__getitem__) if self.settings.balance == "least_load" else up

    def take_over(self, server: Upstream) -> None:
        """Keep the last failure of a deployment as one of the model; the deployment has logged and counted it."""
        if (failure := server.record.health.last) is not None:
            remedy = failure["remedy"]
            text = failure["error"].removesuffix(f": {remedy}")
            self._record.health.record_failure(failure["kind"], failure["status"], text, remedy)


class DeploymentCall:
    """The model for one request.

    Parameters
    ----------
    model: the model.

    Attributes
    ----------
    deployment: the name of the deployment that answered, or that answered the first of several calls; empty before.
    """

    def __init__(self, model: Deployments) -> None:
        self._model = model
        self._calls = 0
        self._asked: Upstream | None = None
        self.deployment = ""

    def __str__(self) -> str:
        return str(self._model)

    async def whole(
        self, body: Mapping[str, Any], meter: Meter, *, logprobs_only: bool = False, check: Check | None = None
    ) -> Completion:
        """A whole answer, as ``Upstream.whole``."""
        number = self._numbered()

        def send(server: Upstream) -> Awaitable[Completion]:
            self._asked = server
            return server.whole(body, meter, logprobs_only=logprobs_only, check=check)

        name, completion = await self._model.tried(send)
        self._model.load[name] -= 1
        self._note(number, name)
        return completion

    def stream(
        self, body: Mapping[str, Any], meter: Meter, *, within: float
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """The events of an answer, as ``Upstream.stream``."""
        number = self._numbered()

        async def start() -> tuple[list[StreamEvent], AsyncGenerator[list[StreamEvent], None]]:
            name, (first, rest) = await self._model.tried(lambda server: _started(server, body, meter, within))
            self._note(number, name)
            # Begun at once: a generator that never began would not notice that it is closed.
            return await started(self._counted(name, first, rest))

        return resumed(start, str(self))

    def unusable_stream(self) -> Unavailable:
        """Record that a stream ended without being an answer, and return the error of it."""
        return self._model.servers[self.deployment].unusable_stream()

    def given_up(self, seconds: float) -> None:
        """Record that the deployment that was asked last did not answer in time, as ``Upstream.given_up``."""
        if self._asked is not None:
            self._asked.given_up(seconds)
            self._model.take_over(self._asked)

    async def _counted(
        self, name: str, first: list[StreamEvent], rest: AsyncGenerator[list[StreamEvent], None]
    ) -> AsyncGenerator[list[StreamEvent], None]:
        try:
            async with aclosing(rest):
                yield first
                async for events in rest:
                    yield events
        finally:
            self._model.load[name] -= 1

    def _numbered(self) -> int:
        self._calls += 1
        return self._calls

    def _note(self, number: int, name: str) -> None:
        if number == 1:
            self.deployment = name


async def _started(
    server: Upstream, body: Mapping[str, Any], meter: Meter, within: float
) -> tuple[list[StreamEvent], AsyncGenerator[list[StreamEvent], None]]:
    """The first events of a stream and the rest of it; a ``ModelError`` if there are none."""
    try:
        return await started(server.stream(body, meter, within=within))
    except Failed as failure:
        raise Unavailable(f"{server}: {failure}") from failure


def _failure_of(error: ModelError) -> Failed | None:
    """The failed attempt behind an error, if it is worth repeating."""
    cause: BaseException | None = error
    for _ in range(3):
        cause = cause.__cause__ if cause is not None else None
        if isinstance(cause, Failed):
            return cause
    return None
