"""Endpoints for callers that ask their models themselves: ``/v1/arrive``, ``decide``, ``withdraw`` and ``feedback``."""

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from bpac.gateway.auth.authentication import Authentication
from bpac.gateway.auth.keys import Identity, Role
from bpac.gateway.chat.request import parse_object
from bpac.gateway.deciding.caller_rounds import REASONS, Asker, CallerRounds
from bpac.gateway.deciding.requests import LONGEST_KEY, DraftReport, read_text, read_usage
from bpac.gateway.games.rounds.reported import Reported
from bpac.gateway.games.segment_names import Caller
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.http.body import SHORT_BODY, read_body
from bpac.gateway.http.endpoints.metered import refund
from bpac.gateway.http.web_framework import Request, Response, Route
from bpac.gateway.service import Service
from bpac.wire.json import to_json

T = TypeVar("T")

# The header with which a caller says that two requests are one.
IDEMPOTENCY_KEY = "idempotency-key"
# What became of a round if its loss will never be known, or if the expert refused to answer.
OUTCOMES = ("unknown", "refused")


class DecideEndpoints:
    """The endpoints of callers that ask their models themselves.

    Parameters
    ----------
    service: decides.
    authentication: finds out who sends a request.
    """

    def __init__(self, service: Service, authentication: Authentication) -> None:
        self._service = service
        self._authentication = authentication

    def routes(self) -> list[Route]:
        """The paths and what answers them."""
        return [
            Route("/v1/arrive", self.arrive, methods=["POST"]),
            Route("/v1/decide", self.decide, methods=["POST"]),
            Route("/v1/withdraw", self.withdraw, methods=["POST"]),
            Route("/v1/feedback", self.feedback, methods=["POST"]),
        ]

    async def arrive(self, request: Request) -> Response:
        """Give out a ticket."""
        identity, body = await self._read(request, Role.CALL)
        route = read_text(body, "route", "the name of a route with decide_only")
        given = await self._charged(identity, self._rounds.arrive(route, body, _asker(request, identity)))
        seconds, segment = given.route.draft_deadline, given.desk.segment
        return _json({"ticket": given.text, "route": given.route.name, "segment": segment, "deadline": seconds})

    async def decide(self, request: Request) -> Response:
        """Decide a query; its ticket is taken now if it has none."""
        identity, body = await self._read(request, Role.CALL)
        route = read_text(body, "route", "the name of a route with decide_only") if "route" in body else None
        draft = DraftReport.read(body)
        if body.get("ticket") is not None:
            ticket = read_text(body, "ticket", "the ticket that /v1/arrive gave out")
            return _json(await self._rounds.decide(ticket, route, identity.owner, draft))
        if route is None:
            raise BadRequest("ticket or route is missing: POST /v1/arrive gives out tickets", 422, "ticket")
        decided = self._rounds.decide_at_once(route, body, _asker(request, identity), draft)
        return _json(await self._charged(identity, decided))

    async def withdraw(self, request: Request) -> Response:
        """Take a ticket back without a decision."""
        identity, body = await self._read(request, Role.CALL)
        ticket = read_text(body, "ticket", "the ticket that /v1/arrive gave out")
        reason = body.get("reason", "no-score")
        if not isinstance(reason, str) or reason not in REASONS:
            raise BadRequest(f"reason must be one of {', '.join(REASONS)}", 422, "reason", "invalid_value")
        return _json(await self._rounds.withdraw(ticket, identity.owner, reason))

    async def feedback(self, request: Request) -> Response:
        """Record what came of a decision."""
        identity, body = await self._read(request, Role.FEEDBACK)
        decision = body.get("decision")
        if not isinstance(decision, str):
            raise BadRequest("decision must be the value of x-bpac-decision", 422, "decision", "invalid_type")
        reported = _reported(body)
        await self._service.decisions.report(decision, reported, identity)
        await self._service.store.durable()
        outcome = {} if reported.loss is not None else {"outcome": body["outcome"]}
        return _json({"decision": decision, "loss": reported.loss, **outcome})

    @property
    def _rounds(self) -> CallerRounds:
        return self._service.caller_rounds

    async def _charged(self, identity: Identity, work: Coroutine[Any, Any, T]) -> T:
        """Count a request against the limits of its key, unless it fails; its tokens are those of other servers."""
        try:
            charge = await self._service.admit(identity, 0)
        except BaseException:
            work.close()
            raise
        try:
            done = await work
        except Exception as error:
            refund(charge, error)
            raise
        if charge is not None:
            charge.settle(0)
        return done

    async def _read(self, request: Request, role: Role) -> tuple[Identity, dict[str, Any]]:
        identity = await self._authentication.identity(request.scope)
        identity.require(role)
        too_large = f"{request.url.path} takes a few short fields: this body is too large"
        data = await read_body(request.scope["headers"], request.receive, SHORT_BODY, too_large)
        return identity, parse_object(data, self._service.config.limits.max_depth)


def _reported(body: Mapping[str, Any]) -> Reported:
    loss, outcome, usage = body.get("loss"), body.get("outcome"), read_usage(body)
    note = {} if usage is None else usage.to_note("expert")
    if outcome is not None:
        if outcome not in OUTCOMES or loss is not None:
            message = f"outcome must be one of {', '.join(OUTCOMES)}, without a loss"
            raise BadRequest(message, 422, "outcome", "invalid_value")
        return Reported(None, outcome == "refused", note)
    if isinstance(loss, bool) or not isinstance(loss, int | float) or not 0 <= loss <= 1:
        raise BadRequest("loss must be a number in [0, 1]", 422, "loss", "out_of_range")
    return Reported(float(loss), note=note)


def _asker(request: Request, identity: Identity) -> Asker:
    key = request.headers.get(IDEMPOTENCY_KEY, "")
    if len(key) > LONGEST_KEY:
        message = f"the header {IDEMPOTENCY_KEY} must have at most {LONGEST_KEY} characters"
        raise BadRequest(message, 422, IDEMPOTENCY_KEY, "too_long")
    return Asker(identity.owner, Caller(identity.segment, request.scope["headers"]), key)


def _json(value: object) -> Response:
    return Response(to_json(value), media_type="application/json")
