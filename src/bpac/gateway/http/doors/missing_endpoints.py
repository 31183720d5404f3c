"""Endpoints that clients of other APIs know and that this gateway does not have: their errors say what to do."""

from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.http.doors.error_formats import MESSAGES_ERRORS, RESPONSES_ERRORS, ErrorFormat
from bpac.gateway.http.web_framework import Request, Response, Route

_METHODS = ["GET", "POST", "DELETE"]
_RESPONSES = (
    "this gateway keeps no responses: of this API there is POST /v1/responses only; send the earlier items of a "
    "conversation in input"
)
_MESSAGES = "of this API there are POST /v1/messages and POST /v1/messages/count_tokens only"


def missing_endpoints() -> list[Route]:
    """The routes of these endpoints. They need no key: they say nothing about this gateway."""
    return [
        _missing("/v1/responses/{rest:path}", _RESPONSES, RESPONSES_ERRORS),
        _missing("/v1/conversations", _RESPONSES, RESPONSES_ERRORS),
        _missing("/v1/messages/{rest:path}", _MESSAGES, MESSAGES_ERRORS),
    ]


def _missing(path: str, message: str, errors: ErrorFormat) -> Route:
    async def missing(_: Request) -> Response:
        response = errors.response(BadRequest(message, 404, code="not_kept" if errors is RESPONSES_ERRORS else None))
        return Response(response.body, response.status, response.headers)

    return Route(path, missing, methods=_METHODS, include_in_schema=False)
