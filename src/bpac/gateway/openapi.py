"""What the gateway takes and gives, as an OpenAPI document."""

from typing import Any

from bpac import __version__

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
_HEADERS = ("x-bpac-decision", "x-bpac-answered-by", "x-bpac-uncertainty", "x-bpac-threshold", "x-bpac-propensity")
_PROPERTIES: dict[str, Any] = {
    "messages": {"type": "array", "minItems": 1, "items": {"type": "object"}},
    "stream": {"type": ["boolean", "null"]},
    "stream_options": {"type": ["object", "null"], "properties": {"include_usage": {"type": ["boolean", "null"]}}},
    "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 128},
    "logprobs": {"type": ["boolean", "null"]},
    "top_logprobs": {"type": ["integer", "null"], "minimum": 0, "maximum": 20},
}
_CHAT = {"type": "object", "required": ["model", "messages"]}
_FEEDBACK = {
    "type": "object",
    "required": ["decision", "loss"],
    "properties": {"decision": {"type": "string"}, "loss": {"type": "number", "minimum": 0, "maximum": 1}},
}


def document(routes: list[str]) -> dict[str, Any]:
    """The OpenAPI document.

    Parameters
    ----------
    routes: what clients may ask for as ``model``.
    """
    model = {"model": {"type": "string", "examples": routes, "anyOf": [{"enum": routes}, {"minLength": 1}]}}
    chat = {**_CHAT, "properties": {**_PROPERTIES, **model}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "bpac gateway", "version": __version__},
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}, {}],
        "paths": {
            "/v1/chat/completions": {"post": _page("Answer a chat", _chat(), chat)},
            "/v1/models": {"get": _page("The routes", _json({"type": "object"}))},
            "/v1/feedback": {"post": _page("Report a loss", _json(_FEEDBACK), _FEEDBACK)},
            "/v1/decisions/{decision}": {
                "get": {
                    **_page("Both answers of a round that waits for a loss from outside", _json({"type": "object"})),
                    "parameters": [{"name": "decision", "in": "path", "required": True, "schema": {"type": "string"}}],
                }
            },
            "/v1/status": {"get": _page("Where every game stands", _json({"type": "object"}))},
            "/metrics": {"get": _page("For Prometheus", {"text/plain": {"schema": {"type": "string"}}})},
            "/healthz": {"get": _page("Whether the process lives", _json({"type": "object"}))},
            "/readyz": {"get": _page("Whether requests are answered", _json({"type": "object"}))},
        },
    }


def _page(summary: str, content: dict[str, Any], body: dict[str, Any] | None = None) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "fine", "content": content}
    if "text/event-stream" in content:
        good["headers"] = {name: {"schema": {"type": "string"}} for name in _HEADERS}
    page: dict[str, Any] = {
        "summary": summary,
        "responses": {"200": good, "default": {"description": "an error", "content": _json(_ERROR)}},
    }
    if body is not None:
        page["requestBody"] = {"required": True, "content": _json(body)}
    return page


def _chat() -> dict[str, Any]:
    return _json({"type": "object"}) | {"text/event-stream": {"schema": {"type": "string"}}}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
