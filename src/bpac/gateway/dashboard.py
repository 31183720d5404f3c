"""The dashboard's addresses: the page, its data, and the way in for browsers."""

import asyncio
import time
from typing import Any
from urllib.parse import parse_qs

import orjson

from bpac.dashboard.document import Subject, game_document, whole_document
from bpac.dashboard.page import CONTENT_SECURITY_POLICY, login, shell
from bpac.errors import MissingExtra
from bpac.gateway.bodies import short_body
from bpac.gateway.dashboard_keys import COOKIE, LIFETIME, Passes
from bpac.gateway.decision_search import Search, Wanted, shown, whole_of
from bpac.gateway.keeper import Keeper
from bpac.gateway.keys import KeyOf
from bpac.gateway.latency import latency
from bpac.gateway.requests import BadRequest, no_such_decision
from bpac.gateway.savings import Prices
from bpac.gateway.service import Service

try:
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, RedirectResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtra("starlette", "gateway") from error

# Games told in full, and in all: more are counted, and can be asked for by their number.
MOST_FULL, MOST_GAMES = 24, 200
HOME = "/dashboard"
# Nothing of it is for caches, other sites or frames.
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}


class Dashboard:
    """What is behind the addresses under ``/dashboard``.

    Parameters
    ----------
    service: whose games are shown.
    key_of: raises ``BadRequest`` if a caller shows no valid key.
    """

    def __init__(self, service: Service, key_of: KeyOf) -> None:
        self._service = service
        self._key_of = key_of
        self._passes = Passes(service.config.api_keys, service.store.secret)

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

    def _check(self, request: Request) -> None:
        """Let those in who show a key or a pass."""
        try:
            self._key_of(request.headers.raw)
        except BadRequest:
            if not self._passes.accepts(request.cookies.get(COOKIE, ""), time.time()):
                raise

    async def _home(self, request: Request) -> Response:
        try:
            self._check(request)
        except BadRequest as error:
            return _page(login(failed=False), error.status)
        return _page(shell(sign_out=self._passes.needed))

    async def _login(self, request: Request) -> Response:
        key = await _shown_key(request)
        given = self._passes.give(key, time.time()) if self._passes.needed else ""
        if given is None:
            return _page(login(failed=True), 401)
        response = RedirectResponse(HOME, 303, HEADERS)
        if given:
            secure = request.url.scheme == "https"
            response.set_cookie(COOKIE, given, LIFETIME, path=HOME, secure=secure, httponly=True, samesite="strict")
        return response

    async def _logout(self, _: Request) -> Response:
        response = RedirectResponse(HOME, 303, HEADERS)
        response.delete_cookie(COOKIE, path=HOME, httponly=True, samesite="strict")
        return response

    async def _data(self, request: Request) -> Response:
        self._check(request)
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
        return _json(document | {"games_left_out": len(keepers) - len(games)})

    async def _decisions(self, request: Request) -> Response:
        self._check(request)
        keeper, wanted = self._asked(request), Wanted.read(request.query_params)
        search = Search.begin(keeper)
        await self._service.store.durable()
        found, further = await asyncio.to_thread(search.find, wanted)
        return _json({"decisions": [shown(told, keeper) for told in found], "next": further})

    async def _decision(self, request: Request) -> Response:
        self._check(request)
        keeper, step = self._service.decided(request.path_params["decision"])
        search = Search.begin(keeper)
        await self._service.store.durable()
        told = await asyncio.to_thread(search.one, step)
        if told is None:
            raise no_such_decision()
        return _json(shown(told, keeper, texts=True))

    def _asked(self, request: Request) -> Keeper:
        """The game that is asked for."""
        number = whole_of(request.query_params, "game", 1)
        keeper = self._service.keeper(number)
        if keeper is None:
            raise BadRequest(
                f"there is no game {number}: /v1/status lists those there are", 404, "game", "unknown_game"
            )
        return keeper


def _game(service: Service, keeper: Keeper, *, short: bool) -> dict[str, Any]:
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
    return Response(orjson.dumps(value), 200, HEADERS, media_type="application/json")
