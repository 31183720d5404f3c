"""The endpoints of the dashboard: the page, its data, and signing in and out."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs

from bpac.dashboard.document import Subject, game_document, whole_document
from bpac.dashboard.lost_journals import lost_journals
from bpac.dashboard.page import CONTENT_SECURITY_POLICY, login, shell
from bpac.dashboard.replicas import replicas_document
from bpac.gateway.auth.authentication import Authentication, address_of
from bpac.gateway.auth.cookies import COOKIE, LIFETIME, DashboardCookies
from bpac.gateway.auth.keys import Identity, Role
from bpac.gateway.auth.proxies import TrustedProxies
from bpac.gateway.config.routes.decide_routes import DecideRouteSettings
from bpac.gateway.games.money.savings import Prices
from bpac.gateway.games.shown.search import DecisionQuery, Search, decision_document, whole_number
from bpac.gateway.games.shown.shown_game import ShownGame
from bpac.gateway.games.shown.status import stages_of
from bpac.gateway.http.bad_request import BadRequest, no_such_decision
from bpac.gateway.http.body import SHORT_BODY, read_body
from bpac.gateway.http.dashboard.dashboard_data import troubles_document, unscored_cost
from bpac.gateway.http.dashboard.game_list import MOST_GAMES, GameList, GameListQuery, routes_document
from bpac.gateway.http.web_framework import HTMLResponse, RedirectResponse, Request, Response, Route
from bpac.gateway.service import Service
from bpac.gateway.telemetry.metrics.latency import latency
from bpac.wire.json import to_json

# Games in full in a response; of the others, the charts can be requested by their number.
MOST_FULL = 24
HOME = "/dashboard"
# A proxy may serve the gateway under any prefix, which the gateway need not know: all addresses are relative, and a
# cookie without a path is valid for the directory of the address that set it, which is the dashboard's.
UP_TO_HOME, FORM_ON_HOME, FORM_ON_LOGIN = "../dashboard", "dashboard/login", "login"
# The identity of a browser that is signed in.
SIGNED_IN = Identity("", "", frozenset({Role.OPERATOR}))
# What is said to those who try to sign in.
WRONG_KEY = "This is not a valid API key of this gateway."
NO_OPERATOR = "This API key lacks the role operator, which the dashboard requires."
# Nothing of it is for caches, other sites or frames.
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}


class Dashboard:
    """The endpoints under ``/dashboard``.

    Parameters
    ----------
    service: the gateway whose games are shown.
    authentication: finds out who sends a request.
    """

    def __init__(self, service: Service, authentication: Authentication) -> None:
        self._service = service
        self._authentication = authentication
        operators = [key.key for key in service.config.keys if Role.OPERATOR in key.roles]
        self._proxies = TrustedProxies(service.config.trusted_proxies)
        self._games = GameList(lambda game: _game_document(service, game, short=True))
        self._cookies = DashboardCookies(operators, service.store.secret)

    def routes(self) -> list[Route]:
        """The routes of the endpoints."""
        return [
            Route(HOME, self._home),
            Route(f"{HOME}/", self._home_with_slash),
            Route(f"{HOME}/login", self._login, methods=["POST"]),
            Route(f"{HOME}/logout", self._logout, methods=["POST"]),
            Route(f"{HOME}/data", self._data),
            Route(f"{HOME}/decisions", self._decisions),
            Route(f"{HOME}/decisions/{{decision}}", self._decision),
        ]

    async def _identity(self, request: Request) -> Identity:
        """Who sends a request: an operator with a cookie, or the owner of an API key."""
        if self._cookies.accepts(request.cookies.get(COOKIE, "")):
            return SIGNED_IN
        return await self._authentication.identity(request.scope)

    async def _require_operator(self, request: Request) -> None:
        (await self._identity(request)).require(Role.OPERATOR)

    async def _home(self, request: Request) -> Response:
        try:
            await self._require_operator(request)
        except BadRequest as error:
            return _page(login(action=FORM_ON_HOME), error.status)
        return _page(shell(sign_out=self._authentication.keys.needed))

    async def _login(self, request: Request) -> Response:
        key, keys = await _key_in_form(request), self._authentication.keys
        cookie = ""
        if keys.needed:
            try:
                found = await self._authentication.checked(key.encode(), request.scope)
                if found is None:
                    raise BadRequest("no valid API key", 401, code="invalid_api_key")
                found.require(Role.OPERATOR)
            except BadRequest as error:
                self._service.rejections.count_error(error, address_of(request.scope))
                failure = WRONG_KEY if error.status == 401 else NO_OPERATOR
                return _page(login(failure, action=FORM_ON_LOGIN), error.status)
            cookie = self._cookies.issue(key) or ""
        response = RedirectResponse(UP_TO_HOME, 303, HEADERS)
        if cookie:
            secure = self._proxies.used_https(request.scope)
            response.set_cookie(COOKIE, cookie, LIFETIME, path=None, secure=secure, httponly=True, samesite="strict")
        return response

    async def _logout(self, _: Request) -> Response:
        response = RedirectResponse(UP_TO_HOME, 303, HEADERS)
        response.set_cookie(COOKIE, "", max_age=0, expires=0, path=None, httponly=True, samesite="strict")
        return response

    async def _home_with_slash(self, _: Request) -> Response:
        return RedirectResponse(UP_TO_HOME, 307, HEADERS)

    async def _data(self, request: Request) -> Response:
        await self._require_operator(request)
        await self._service.refresh()
        games, parameters = self._service.live_games(), request.query_params
        if parameters.get("game") is None:
            query = GameListQuery.read(parameters, MOST_GAMES)
            # The page loads the charts of a game when it is opened, unless there is only one.
            full = MOST_FULL if len(games) == 1 or not parameters else 0
            bodies, listed = await self._listed(games, query, full)
        else:
            bodies, listed = [to_json(_game_document(self._service, self._game(request)))], {"games_left_out": 0}
        models, losses = self._service.models(), self._service.losses()
        lost = lost_journals(losses, self._service.listed_games(), (game.kept for game in games)) if losses else None
        document = {
            **whole_document([], title="bpac gateway", live=True, generated=round(time.time(), 3)),
            **listed,
            "models": models,
            "troubles": troubles_document(self._service, models),
            "lost_journals": lost,
            "replicas": replicas_document(self._service.shared_games()),
            "workers": self._service.workers(),
            "callers": {
                "connections": len(self._service.connections),
                "refused": self._service.rejections.with_remedies(),
            },
        }
        del document["games"]
        # The games are JSON already.
        return _json_response(to_json(document)[:-1] + b',"games":[' + b",".join(bodies) + b"]}")

    async def _listed(
        self, games: Sequence[ShownGame], query: GameListQuery, full: int
    ) -> tuple[list[bytes], dict[str, Any]]:
        """The documents of the games that a query finds, the busiest of them in full, and how many there are."""
        rows = await self._games.rows(games)
        found = query.find(rows)
        shown = found[query.offset :][: query.limit]
        busiest = {row.game for row in sorted(shown, key=lambda row: -row.steps)[:full]}
        by_number = {game.number: game for game in games}
        bodies = []
        for row in shown:
            if row.game in busiest:
                bodies.append(to_json(_game_document(self._service, by_number[row.game])))
                await asyncio.sleep(0)  # requests under way come first
            else:
                bodies.append(row.body)
        counts = {"games_left_out": len(found) - len(shown), "games_found": len(found), "games_in_all": len(rows)}
        return bodies, {**counts, "routes": routes_document(rows)}

    async def _decisions(self, request: Request) -> Response:
        identity = await self._identity(request)
        await self._service.refresh()
        game, query = self._game(request), DecisionQuery.read(request.query_params, identity)
        search = Search.begin(game)
        await self._service.store.durable()
        found, further = await asyncio.to_thread(search.find, query)
        return _json({"decisions": [decision_document(view, game) for view in found], "next": further})

    async def _decision(self, request: Request) -> Response:
        identity = await self._identity(request)
        await self._service.refresh()
        game, step = await self._service.decisions.find(request.path_params["decision"], identity)
        search = Search.begin(game)
        await self._service.store.durable()
        view = await asyncio.to_thread(search.one, step)
        if view is None:
            raise no_such_decision()
        return _json(decision_document(view, game, texts=True))

    def _game(self, request: Request) -> ShownGame:
        """The game that the parameter ``game`` names, or ``BadRequest``."""
        number = whole_number(request.query_params, "game", 1)
        game = next((game for game in self._service.live_games() if game.number == number), None)
        if game is None:
            raise BadRequest(f"there is no game {number}: /v1/status lists the games", 404, "game", "unknown_game")
        return game


def _game_document(service: Service, game: ShownGame, *, short: bool = False) -> dict[str, Any]:
    """The document of a game, from the same values as ``/metrics``; a short one lacks charts and latency."""
    route = game.route
    about = route.about if isinstance(route, DecideRouteSettings) else None
    chosen = service.chosen_scores().get(route.name)
    auto = "" if chosen is None else f" (auto{f', instead of {before}' if (before := chosen['instead_of']) else ''})"
    subject = Subject(
        route=route.name,
        segment=game.segment,
        game=game.number,
        score=None if about is not None else route.score_name + auto,
        loss=route.loss["name"],
        savings=game.savings.report(Prices.of(route)),
        latency=() if short else latency(service.metrics, route.name),
        unscored_cost=unscored_cost(game),
        stages=stages_of(game.router, [model.name for model in route.models]),
        unit="request" if route.sticky_by is None else "episode",
        about=about,
        sessions=game.sessions.to_json() if route.sticky_by is not None else None,
    )
    return game_document(subject, game.router, game.history, short=short)


async def _key_in_form(request: Request) -> str:
    """The API key in a login form."""
    too_large = "a login form has a key and nothing else: this body is too large"
    body = await read_body(request.scope["headers"], request.receive, SHORT_BODY, too_large)
    try:
        return parse_qs(body.decode(), max_num_fields=10).get("key", [""])[0].strip()
    except ValueError as error:
        raise BadRequest("the body is not a form", 400, "key", "invalid_form") from error


def _page(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status, {**HEADERS, "content-security-policy": CONTENT_SECURITY_POLICY})


def _json(value: object) -> Response:
    return _json_response(to_json(value))


def _json_response(body: bytes) -> Response:
    return Response(body, 200, HEADERS, media_type="application/json")
