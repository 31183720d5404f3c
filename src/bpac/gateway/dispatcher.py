"""Dispatching requests: each is admitted, finds its route, and is answered there."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bpac.errors import StoreError, Unavailable
from bpac.gateway.chat.force import Force
from bpac.gateway.chat.outside import effort_key
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.chat.routes.route import ServedRoute
from bpac.gateway.games.desk import RouteDesks
from bpac.gateway.games.segment_names import Caller, session_of
from bpac.gateway.http.bad_request import BadRequest, decides_only, no_such_route, stopping
from bpac.gateway.running_config import RunningConfig, RunningConfigs
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.gateway.telemetry.tracing.gen_ai import operation_of
from bpac.gateway.telemetry.tracing.traces import NoTraces, Traces

# The reasoning_effort with which a caller leaves the choice to the route.
AUTO = "auto"


class Dispatcher:
    """Answers requests with the routes of the current configuration.

    Parameters
    ----------
    running: the configuration of new requests.
    metrics: counts the requests that are turned away.
    check_store: raises ``StoreError`` while nothing can be written to the journal.
    traces: traces of requests (default: no traces).

    Attributes
    ----------
    stopping: whether new requests are refused because the gateway stops.
    """

    def __init__(
        self,
        running: RunningConfigs,
        metrics: Metrics,
        check_store: Callable[[], None],
        traces: Traces | None = None,
    ) -> None:
        self._running = running
        self._metrics = metrics
        self._check_store = check_store
        self._traces = traces or NoTraces()
        self.stopping = False

    async def answer(
        self, request: ChatRequest, caller: Caller, caller_left: Callable[[], bool], force: Force | None = None
    ) -> ChatResponse:
        """The response to a request; an error that is raised is what the caller gets.

        Parameters
        ----------
        request: what is asked.
        caller: who asks.
        caller_left: asked when the request is cancelled: whether its caller left; otherwise the gateway stops.
        force: the model that the caller wants to answer; none to have it decided.
        """
        running = self._running.current
        single = running.single_routes.get(request.model)
        if single is not None:
            if force is not None and force.model != "expert":
                raise BadRequest(
                    f"the route {request.model} has one model: leave out x-bpac-force", param="x-bpac-force"
                )
            with self._admitted(running, request.model):
                return await single.chats.answer(request)
        route, games, label = self._route(request.model)
        name = route.settings.name
        if force is not None and not (force.allowed or route.settings.allow_force):
            raise force.not_allowed()
        with self._admitted(running, name):
            if force is not None:
                return await running.forced[name][force.model].answer(request)
            if request.effort == AUTO:
                request = request.with_any_effort()
            elif request.effort is not None and effort_key(request.effort) in running.forced[name]:
                return await running.forced[name][effort_key(request.effort)].answer(request)
            self._check_store()
            if route.settings.task_by is not None:
                request = request._replace(task=games.task(request, caller, label))
            if route.settings.sticky_by is not None:
                request = request._replace(session=session_of(route.settings, request, caller, label))
            return await route.answer(request, await games.desk(request, caller, label), caller_left)

    def check_open(self) -> None:
        """Raise an error while no request can be decided: the gateway stops, or its journal cannot be written."""
        if self.stopping:
            raise stopping()
        self._check_store()

    async def pass_through(self, path: str, body: Mapping[str, Any]) -> ChatResponse:
        """The response to a request that is not a chat; an error that is raised is what the caller gets.

        Parameters
        ----------
        path: the endpoint below ``/v1``.
        body: the request.
        """
        running, name = self._running.current, body.get("model")
        if not isinstance(name, str) or not name:
            raise BadRequest("model is missing: /v1/models lists the routes", param="model")
        single = running.single_routes.get(name)
        if single is None:
            if name in running.routes:
                message = f"the route {name!r} decides between two models, for chats only: use a route with one model"
                raise BadRequest(message, 400, "model", "not_a_single_route")
            if name in running.config.decide_routes:
                raise decides_only(name)
            raise no_such_route(name)
        with self._admitted(running, name, operation_of(path)):
            return await single.pass_through(path, body)

    def check_route(self, model: str) -> None:
        """Raise ``BadRequest`` if there is no such route."""
        if model not in self._running.current.single_routes:
            self._route(model)

    @contextmanager
    def _admitted(self, running: RunningConfig, route: str, operation: str = "chat") -> Iterator[None]:
        """Count a request that is being answered, or refuse it before anything of it is known."""
        self._traces.asked(operation, route)
        # Before anything is decided, so that refusing a request does not depend on what its coin would have said.
        if self.stopping:
            raise stopping()
        if self._running.busy >= running.config.max_in_flight:
            self._metrics.count("bpac_turned_away_total", route=route)
            raise BadRequest("too many requests in progress, try again later", 429, code="overloaded", retry_after=1)
        running.answering += 1
        try:
            yield
        except (Unavailable, StoreError) as error:
            self._traces.failed(error)
            raise
        finally:
            running.answering -= 1

    def _route(self, model: str) -> tuple[ServedRoute, RouteDesks, str]:
        name, _, label = model.partition(":")
        for candidate, rest in ((model, ""), (name, label)):
            found = self._running.current.routes.get(candidate)
            if found is not None and (not rest or found[0].settings.segment_by == "model"):
                return *found, rest
            if candidate in self._running.current.config.decide_routes:
                raise decides_only(candidate)
        raise no_such_route(model)
