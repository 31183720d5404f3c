"""The dashboard's addresses: the page, its data, and the way in for browsers."""

import asyncio
import time
from typing import Any
from urllib.parse import parse_qs

from bpac.dashboard.document import Subject, game_document, whole_document
from bpac.dashboard.lost_journals import lost_journals
from bpac.dashboard.page import CONTENT_SECURITY_POLICY, login, shell
from bpac.errors import MissingExtra
from bpac.gateway.auth.authentication import Authentication, address_of
from bpac.gateway.auth.cookies import COOKIE, LIFETIME, DashboardCookies
from bpac.gateway.auth.keys import Identity, Role
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.savings import Prices
from bpac.gateway.games.search import Search, Wanted, shown, whole_of
from bpac.gateway.http.bad_request import BadRequest, no_such_decision
from bpac.gateway.http.body import short_body
from bpac.gateway.service import Service
from bpac.gateway.telemetry.latency import latency
from bpac.gateway.telemetry.rejected_callers import refused_callers
from bpac.wire.json import to_json

try:
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, RedirectResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtra("starlette", "gateway") from error

# Games told in full, and in all: more are counted, and can be asked for by their number.
MOST_FULL, MOST_GAMES = 24, 200
HOME = "/dashboard"
# Whoever shows a pass.
SIGNED_IN = Identity("", "", frozenset({Role.OPERATOR}))
# What is said to those who try to sign in.
WRONG_KEY = "This key is none of the gateway's."
NO_OPERATOR = "This key may not look at the gateway: it lacks the role operator."
# Nothing of it is for caches, other sites or frames.
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}


class Dashboard:
    """What is behind the addresses under ``/dashboard``.

    Parameters
    ----------
    service: whose games are shown.
    authentication: tells who asks.
    """

    def __init__(self, service: Service, authentication: Authentication) -> None:
        self._service = service
        self._authentication = authentication
        operators = [key.key for key in service.config.keys if Role.OPERATOR in key.roles]
        self._passes = DashboardCookies(operators, service.store.secret)

    def routes(self) -> list[Route]:
        """The addresses."""
        return [
            Route(HOME, self._home),
            Route(f"{HOME}/login", self._login, methods=["POST"]),
            Route(f"{HOME}/logout", self._logout, methods=["POST"]),
            Route(f"{HOME}/data", self._data),
            Route(f"{HOME}/decisions", self._decisions),
            Route(f"{HOME}/decisions/{{decision}}", self._decision),
        ]

    async def _identity(self, request: Request) -> Identity:
        """Who shows a key, or a pass, which makes an operator."""
        if self._passes.accepts(request.cookies.get(COOKIE, ""), time.time()):
            return SIGNED_IN
        return await self._authentication.identity(request.scope)

    async def _operator(self, request: Request) -> None:
        """Let operators in."""
        (await self._identity(request)).require(Role.OPERATOR)

    async def _home(self, request: Request) -> Response:
        try:
            await self._operator(request)
        except BadRequest as error:
            return _page(login(), error.status)
        return _page(shell(sign_out=self._authentication.keys.needed))

    async def _login(self, request: Request) -> Response:
        key, keys = await _shown_key(request), self._authentication.keys
        given = ""
        if keys.needed:
            try:
                found = await self._authentication.checked(key.encode(), request.scope)
                if found is None:
                    raise BadRequest("no valid API key", 401, code="invalid_api_key")
                found.require(Role.OPERATOR)
            except BadRequest as error:
                self._service.refusals.count_error(error, address_of(request.scope))
                return _page(login(WRONG_KEY if error.status == 401 else NO_OPERATOR), error.status)
            given = self._passes.give(key, time.time()) or ""
        response = RedirectResponse(HOME, 303, HEADERS)
        if given:
            # Behind a proxy that ends the encryption only the proxy knows of it.
            secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
            response.set_cookie(COOKIE, given, LIFETIME, path=HOME, secure=secure, httponly=True, samesite="strict")
        return response

    async def _logout(self, _: Request) -> Response:
        response = RedirectResponse(HOME, 303, HEADERS)
        response.delete_cookie(COOKIE, path=HOME, httponly=True, samesite="strict")
        return response

    async def _data(self, request: Request) -> Response:
        await self._operator(request)
        one = request.query_params.get("game") is not None
        keepers = [self._asked(request)] if one else self._service.keepers()
        busiest = [id(keeper) for keeper in sorted(keepers, key=lambda keeper: -keeper.router.step)]
        full, listed = set(busiest[:MOST_FULL]), set(busiest[:MOST_GAMES])
        games = []
        for keeper in keepers:
            if id(keeper) in listed:
                games.append(_game(self._service, keeper, short=id(keeper) not in full))
                await asyncio.sleep(0)  # requests under way come first
        document = whole_document(games, title="bpac gateway", live=True, generated=round(time.time(), 3))
        store, played = self._service.store, [keeper.game for keeper in self._service.keepers()]
        return _json(
            document
            | {
                "games_left_out": len(keepers) - len(games),
                "lost_journals": lost_journals(store.losses(), store.games(), played),
                "callers": refused_callers(self._service),
            }
        )

    async def _decisions(self, request: Request) -> Response:
        identity = await self._identity(request)
        keeper, wanted = self._asked(request), Wanted.read(request.query_params, identity)
        search = Search.begin(keeper)
        await self._service.store.durable()
        found, further = await asyncio.to_thread(search.find, wanted)
        return _json({"decisions": [shown(told, keeper) for told in found], "next": further})

    async def _decision(self, request: Request) -> Response:
        identity = await self._identity(request)
        keeper, step = self._service.decided(request.path_params["decision"], identity)
        search = Search.begin(keeper)
        await self._service.store.durable()
        told = await asyncio.to_thread(search.one, step)
        if told is None:
            raise no_such_decision()
        return _json(shown(told, keeper, texts=True))

    def _asked(self, request: Request) -> LiveGame:
        """The game that is asked for."""
        number = whole_of(request.query_params, "game", 1)
        keeper = self._service.keeper(number)
        if keeper is None:
            raise BadRequest(
                f"there is no game {number}: /v1/status lists those there are", 404, "game", "unknown_game"
            )
        return keeper


def _game(service: Service, keeper: LiveGame, *, short: bool) -> dict[str, Any]:
    """What is shown of a game; all numbers come from where /metrics has them."""
    route = keeper.route
    score = route.score_settings
    subject = Subject(
        route=route.name,
        segment=keeper.segment,
        game=keeper.game.number,
        score=score if isinstance(score, str) else score["name"],
        loss=route.loss["name"],
        savings=keeper.savings.report(Prices.of(route)),
        latency=latency(service.metrics, route.name),
    )
    return game_document(subject, keeper.router, keeper.history, short=short)


async def _shown_key(request: Request) -> str:
    """The key in a form."""
    body = await short_body(request, "this form holds a key and nothing else: it is too long")
    try:
        return parse_qs(body.decode(), max_num_fields=10).get("key", [""])[0].strip()
    except ValueError as error:
        raise BadRequest("this is no form", 400, "key", "invalid_form") from error


def _page(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status, {**HEADERS, "content-security-policy": CONTENT_SECURITY_POLICY})


def _json(value: object) -> Response:
    return Response(to_json(value), 200, HEADERS, media_type="application/json")
