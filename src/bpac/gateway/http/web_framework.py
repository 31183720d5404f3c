"""Starlette, imported in this module alone."""

from bpac.errors import MissingExtra

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtra("starlette", "gateway") from error

__all__ = [
    "HTMLResponse",
    "HTTPException",
    "PlainTextResponse",
    "RedirectResponse",
    "Request",
    "Response",
    "Route",
    "Starlette",
]
