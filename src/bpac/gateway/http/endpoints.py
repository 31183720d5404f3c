"""Everything but chat completions: models, feedback, health, measurements."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from bpac.errors import MissingExtra
from bpac.gateway.auth.authentication import Authentication, address_of
from bpac.gateway.auth.keys import Identity, Role
from bpac.gateway.chat.request import parse_object
from bpac.gateway.http.bad_request import BadRequest, no_such_route
from bpac.gateway.http.body import short_body
from bpac.gateway.http.dashboard import Dashboard
from bpac.gateway.http.errors import error_body, failure_of
from bpac.gateway.http.openapi import document
from bpac.gateway.service import Service
from bpac.wire.json import to_json

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtra("starlette", "gateway") from error

Page = Callable[[Request], Awaitable[Response]]
GuardedPage = Callable[[Request, Identity], Awaitable[Response]]


def pages(service: Service, authentication: Authentication) -> Starlette:
    """The pages of a gateway; its life begins and ends with theirs.

    Parameters
    ----------
    service: what answers.
    authentication: tells who asks.
    """

    def for_keys(page: GuardedPage, role: Role | None = None) -> Page:
        async def checked(request: Request) -> Response:
            identity = await authentication.identity(request.scope)
            if role is not None:
                identity.require(role)
            return await page(request, identity)

        return checked

    async def models(_: Request, __: Identity) -> Response:
        return _json({"object": "list", "data": [_model(name) for name in service.routes()]})

    async def model(request: Request, identity: Identity) -> Response:
        name = request.path_params["model"]
        if not name:
            return await models(request, identity)  # the list, asked for with a slash at its end
        if name not in service.routes():
            raise no_such_route(name)
        return _json(_model(name))

    async def feedback(request: Request, identity: Identity) -> Response:
        data = await short_body(request, "feedback is a decision and a loss: this is too long")
        body = parse_object(data, service.config.limits.max_depth)
        decision, loss = body.get("decision"), body.get("loss")
        if not isinstance(decision, str):
            raise BadRequest("decision must be what x-bpac-decision said", 422, "decision", "invalid_type")
        if isinstance(loss, bool) or not isinstance(loss, int | float) or not 0 <= loss <= 1:
            raise BadRequest("loss must be a number in [0, 1]", 422, "loss", "out_of_range")
        service.feedback(decision, float(loss), identity)
        await service.store.durable()
        return _json({"decision": decision, "loss": float(loss)})

    async def answers(request: Request, identity: Identity) -> Response:
        return _json(service.answers(request.path_params["decision"], identity))

    async def status(_: Request, __: Identity) -> Response:
        callers = {"connections": len(service.connections), "refused": service.refusals.counts}
        return _json({"routes": service.status(), "losses": service.losses(), "callers": callers})

    async def metrics(_: Request, __: Identity) -> Response:
        return PlainTextResponse(service.measurements(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def described(_: Request) -> Response:
        return _json(document(service.routes(), keys=not service.config.open))

    async def healthy(_: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(_: Request) -> Response:
        return _json({"status": "ready" if service.ready else "not ready"}, 200 if service.ready else 503)

    async def failed(request: Request, error: Exception) -> Response:
        service.refusals.count_error(error, address_of(request.scope))
        failure = failure_of(error)
        return Response(failure.body, failure.status, failure.headers)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    return Starlette(
        routes=[
            Route("/v1/models", for_keys(models)),
            Route("/v1/models/{model:path}", for_keys(model)),  # names may have slashes in them
            Route("/v1/feedback", for_keys(feedback, Role.FEEDBACK), methods=["POST"]),
            Route("/v1/decisions/{decision}", for_keys(answers)),
            Route("/v1/status", for_keys(status, Role.OPERATOR)),
            Route("/metrics", for_keys(metrics, Role.OPERATOR)),
            Route("/openapi.json", described),
            Route("/healthz", healthy),
            Route("/readyz", ready),
            *Dashboard(service, authentication).routes(),
        ],
        exception_handlers={HTTPException: _wrong_page, Exception: failed, BadRequest: failed},
        lifespan=life,
    )


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "bpac"}


async def _wrong_page(_: Request, error: Exception) -> Response:
    found = error if isinstance(error, HTTPException) else HTTPException(500)
    message = {404: "there is nothing here", 405: "this address does not take that method"}
    body = error_body(message.get(found.status_code, found.detail), "invalid_request_error")
    return _json(body, found.status_code, found.headers)


def _json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json(value), status, headers, media_type="application/json")
