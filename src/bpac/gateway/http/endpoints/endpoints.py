"""All endpoints except chat completions: models, decisions and feedback, status, metrics, health, dashboard."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from bpac.errors import StoreError
from bpac.gateway.auth.authentication import Authentication, address_of
from bpac.gateway.auth.keys import Identity, Role
from bpac.gateway.http.bad_request import BadRequest, no_such_route
from bpac.gateway.http.dashboard.dashboard import Dashboard
from bpac.gateway.http.doors.missing_endpoints import missing_endpoints
from bpac.gateway.http.endpoints.decide import DecideEndpoints
from bpac.gateway.http.errors import error_body, error_response
from bpac.gateway.http.openapi.openapi import document
from bpac.gateway.http.web_framework import HTTPException, PlainTextResponse, Request, Response, Route, Starlette
from bpac.gateway.service import Service
from bpac.wire.json import to_json

Endpoint = Callable[[Request], Awaitable[Response]]
GuardedEndpoint = Callable[[Request, Identity], Awaitable[Response]]


def other_endpoints(service: Service, authentication: Authentication) -> Starlette:
    """The application that serves these endpoints; the service starts and stops with it.

    Parameters
    ----------
    service: answers requests.
    authentication: finds out who sends a request.
    """

    def authenticated(endpoint: GuardedEndpoint, role: Role | None = None) -> Endpoint:
        async def checked(request: Request) -> Response:
            identity = await authentication.identity(request.scope)
            if role is not None:
                identity.require(role)
            return await endpoint(request, identity)

        return checked

    async def models(_: Request, __: Identity) -> Response:
        names = service.routes()
        # OpenAI's clients read the first two fields, and Anthropic's the others and the data.
        first, last = (names[0], names[-1]) if names else (None, None)
        listed = {"object": "list", "data": [_model(name) for name in names]}
        return _json({**listed, "has_more": False, "first_id": first, "last_id": last})

    async def model(request: Request, identity: Identity) -> Response:
        name = request.path_params["model"]
        if not name:
            return await models(request, identity)  # the list, requested with a trailing slash
        if name not in service.routes():
            raise no_such_route(name)
        return _json(_model(name))

    async def answers(request: Request, identity: Identity) -> Response:
        return _json(await service.decisions.answers(request.path_params["decision"], identity))

    async def status(_: Request, __: Identity) -> Response:
        await service.refresh()
        reloads = service.reloads.to_json() if service.reloads is not None else {}
        document = service.status().to_json() | {
            "configuration": reloads,
            "outside": service.outside(),
            "chosen_scores": service.chosen_scores(),
            "budgets": service.budgets.shown(),
            "tickets": service.caller_rounds.held.to_json(),
        }
        if (workers := service.workers()) is not None:
            document["workers"] = workers
        return _json(document)

    async def metrics(_: Request, __: Identity) -> Response:
        await service.refresh()
        return PlainTextResponse(service.measurements(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(_: Request) -> Response:
        return _json(document(service.routes(), keys=not service.config.open))

    async def healthy(_: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(_: Request) -> Response:
        models = service.monitor.summary()
        if service.ready:
            return _json({"status": "ready", "models": models})
        store = service.store_status()
        # Without the name of the file: this endpoint needs no key.
        reason = {} if store["ok"] else {"reason": f"the store failed: {store['cause']}", "remedy": store["remedy"]}
        return _json({"status": "not ready", "models": models, **reason}, 503)

    async def failed(request: Request, error: Exception) -> Response:
        service.rejections.count_error(error, address_of(request.scope))
        response = error_response(error)
        return Response(response.body, response.status, response.headers)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    return Starlette(
        routes=[
            Route("/v1/models", authenticated(models)),
            Route("/v1/models/{model:path}", authenticated(model)),  # names of routes may contain slashes
            *missing_endpoints(),
            *DecideEndpoints(service, authentication).routes(),
            Route("/v1/decisions/{decision}", authenticated(answers)),
            Route("/v1/status", authenticated(status, Role.OPERATOR)),
            Route("/metrics", authenticated(metrics, Role.OPERATOR)),
            Route("/openapi.json", openapi),
            Route("/healthz", healthy),
            Route("/readyz", ready),
            *Dashboard(service, authentication).routes(),
        ],
        exception_handlers={
            HTTPException: _no_such_endpoint,
            Exception: failed,
            BadRequest: failed,
            StoreError: failed,
        },
        lifespan=lifespan,
    )


def _model(name: str) -> dict[str, object]:
    """A route, as a model of OpenAI's API and of Anthropic's."""
    described = {"type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
    return {"id": name, "object": "model", "created": 0, "owned_by": "bpac", **described}


async def _no_such_endpoint(_: Request, error: Exception) -> Response:
    found = error if isinstance(error, HTTPException) else HTTPException(500)
    message = {404: "there is no such endpoint", 405: "this endpoint does not allow the method"}
    body = error_body(message.get(found.status_code, found.detail), "invalid_request_error")
    return _json(body, found.status_code, found.headers)


def _json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json(value), status, headers, media_type="application/json")
