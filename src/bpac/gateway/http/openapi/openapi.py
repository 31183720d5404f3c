"""The OpenAPI document of the gateway: its endpoints, requests and responses."""

from collections.abc import Sequence
from typing import Any

from bpac import __version__
from bpac.gateway.http.openapi.door_schemas import DOOR_SCHEMAS
from bpac.gateway.http.openapi.schemas import CHAT_REQUEST, SCHEMAS, SHARE, TEXT, Schema, ref

# Headers of every response to a chat request.
_HEADERS: dict[str, Schema] = {
    "x-request-id": TEXT,
    "x-bpac-decision": {**TEXT, "pattern": "^(dec-[0-9]+-[0-9]+-[0-9a-f]+|unscored|forced|effort|single-model)$"},
    "x-bpac-answered-by": {"enum": ["draft", "expert"]},
    "x-bpac-uncertainty": SHARE,
    "x-bpac-threshold": SHARE,
    "x-bpac-propensity": SHARE,
}
# Headers of some responses.
_SOMETIMES: dict[str, Schema] = {
    "x-bpac-unscored": {
        "enum": ["n", "modalities", "no-score", "draft-failed", "draft-refused", "draft-down", "outage"]
    },
    "x-bpac-deployment": TEXT,
    "x-bpac-stage": TEXT,
    "x-bpac-model": TEXT,
    "x-bpac-session": {"enum": ["first", "following", "none"]},
    "x-bpac-fallback": {"enum": ["expert-failed", "expert-refused", "draft-failed"]},
}

_REASONS = {
    400: "the request is not valid: the message says why",
    401: "no valid API key",
    403: "the key lacks the role that this endpoint requires, or the decision was made for another key",
    404: "not found",
    409: "the round has an outcome already, its draft was not audited, or the decision is archived; or the ticket that "
    "is to be withdrawn was decided",
    408: "the head or the body of the request did not arrive in time",
    413: "the body is too large, or has too many values",
    415: "the content type is not application/json",
    422: "a field has a value that is not allowed",
    429: "too many requests under way, a limit of the key reached, or too many tickets held: try again after "
    "retry-after seconds",
    431: "the head of the request is too large, or has too many headers",
    502: "the model gave no usable answer",
    503: "the gateway is stopping, its journal cannot be written, or it has too many connections",
}
# Endpoints whose requests are passed through to the model of a route with one model.
_PASSED = {"/embeddings": "Create embeddings", "/completions": "Create a completion of a text"}
# Endpoints of callers that ask their models themselves: what each does, its request and its response.
_ROUNDS = {
    "arrive": ("Take a ticket for a query that has arrived", "Arrival", "GivenTicket"),
    "decide": ("Decide whether a draft is kept or the expert is called", "Draft", "Decision"),
    "withdraw": ("Take a ticket back without a decision", "Withdrawal", "Decision"),
    "feedback": ("Report a loss", "Feedback", "Reported"),
}
_IDEMPOTENCY_KEY = {
    "name": "idempotency-key",
    "in": "header",
    "required": False,
    "schema": {**TEXT, "maxLength": 255, "pattern": "^[!-~]*$"},
}
_WAIT = {"retry-after": {"schema": TEXT}}


def document(routes: Sequence[str], *, keys: bool = False) -> dict[str, Any]:
    """The OpenAPI document.

    Parameters
    ----------
    routes: the names that clients may send as ``model``.
    keys: whether callers need an API key (default: false: the host and origin of requests are checked instead).

    >>> sorted(document(["homework"])["paths"])[0]
    '/healthz'
    """
    schemas = {**SCHEMAS, **DOOR_SCHEMAS, "ChatRequest": CHAT_REQUEST}
    for name in ("ChatRequest", "ResponsesRequest", "MessagesRequest", "CountRequest"):
        fields = schemas[name]["properties"]
        schemas[name] = {**schemas[name], "properties": {**fields, "model": {**fields["model"], "examples": [*routes]}}}
    # Without keys, 403 is the status for requests with another host or origin.
    seen, guarded = ((401,), (401, 403)) if keys else ((403,), (403,))
    json_only = () if keys else (415,)
    paths: dict[str, Any] = {
        "/v1/chat/completions": {
            "post": _chat("Create a chat completion", "ChatRequest", "ChatCompletion", (*guarded, *json_only))
        },
        "/v1/responses": {"post": _chat("Create a response", "ResponsesRequest", "Response", (*guarded, *json_only))},
        "/v1/messages": {
            "post": _of_messages(_chat("Create a message", "MessagesRequest", "Message", (*guarded, *json_only)))
        },
        "/v1/messages/count_tokens": {"post": _of_messages(_count_tokens((*guarded, *json_only)))},
        **{f"/v1{path}": {"post": _passed_through(title, (*guarded, *json_only))} for path, title in _PASSED.items()},
        "/v1/models": {"get": _operation("The routes", ref("Models"), seen)},
        "/v1/models/{model}": {
            "get": {**_operation("A route", ref("Model"), (*seen, 404)), "parameters": [_in_path("model")]}
        },
        **{
            f"/v1/{name}": {
                "post": {
                    **_operation(summary, ref(reply), (400, *guarded, 404, 408, 409, 413, *json_only, 422, 429, 503)),
                    "requestBody": _body(request),
                    **({"parameters": [_IDEMPOTENCY_KEY]} if name in ("arrive", "decide") else {}),
                }
            }
            for name, (summary, request, reply) in _ROUNDS.items()
        },
        "/v1/decisions/{decision}": {
            "get": {
                **_operation("Both answers of a round that waits for feedback", ref("Answers"), (*guarded, 404, 409)),
                "parameters": [_in_path("decision")],
            }
        },
        "/v1/status": {"get": _operation("The state of every game", ref("Status"), guarded)},
        "/metrics": {"get": _operation("Metrics in the text format of Prometheus", None, guarded)},
        "/healthz": {"get": {**_operation("Whether the process is running", ref("Health")), "security": []}},
        "/readyz": {"get": {**_operation("Whether requests are answered", ref("Readiness")), "security": []}},
    }
    paths["/readyz"]["get"]["responses"]["503"] = _response(
        "not ready: starting, stopping, the store has failed, or all models are down", ref("Readiness")
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "bpac gateway", "version": __version__},
        "security": [{"key": []}, {"x-api-key": []}] if keys else [],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _chat(summary: str, request: str, reply: str, guarded: Sequence[int]) -> dict[str, Any]:
    operation = _operation(summary, ref(reply), (400, *guarded, 404, 408, 413, 429, 502, 503))
    good = operation["responses"]["200"]
    good["description"] = "the answer, or server-sent events if stream is true"
    good["content"]["text/event-stream"] = {"schema": ref("Event")}
    good["headers"] = {name: {"required": True, "schema": schema} for name, schema in _HEADERS.items()}
    good["headers"] |= {name: {"schema": schema} for name, schema in _SOMETIMES.items()}
    # A refusal of the expert's server, including 429, is passed on unchanged if it is JSON.
    refused = {"description": "the expert's server refused the request", "content": {"application/json": {}}}
    operation["responses"]["4XX"] = refused
    return operation | {"requestBody": _body(request)}


def _count_tokens(guarded: Sequence[int]) -> dict[str, Any]:
    operation = _operation("Estimate the tokens of a prompt", ref("Count"), (400, *guarded, 404, 408, 413))
    operation["responses"]["200"]["headers"] = {
        "x-bpac-estimated": {"required": True, "schema": {"const": "input_tokens"}}
    }
    return operation | {"requestBody": _body("CountRequest")}


def _of_messages(operation: dict[str, Any]) -> dict[str, Any]:
    """An operation of the Messages API: errors have a body of their own, and the id of a request has another header."""
    operation["responses"]["200"]["headers"]["request-id"] = {"required": True, "schema": TEXT}
    for status, response in operation["responses"].items():
        if response.get("content", {}).get("application/json", {}).get("schema") == ref("Error"):
            # The last three may come from the connection, before the endpoint is known.
            own = ref("MessagesError")
            schema = {"anyOf": [own, ref("Error")]} if status in ("408", "431", "503") else own
            response["content"] = {"application/json": {"schema": schema}}
    return operation


def _passed_through(summary: str, guarded: Sequence[int]) -> dict[str, Any]:
    operation = _operation(summary, {"type": "object"}, (400, *guarded, 404, 408, 413, 429, 502, 503))
    operation["responses"]["200"]["content"]["text/event-stream"] = {"schema": ref("Event")}
    refused = {"description": "the model's server refused the request", "content": {"application/json": {}}}
    operation["responses"]["4XX"] = refused
    return operation | {"requestBody": _body("PassedThrough")}


def _operation(summary: str, schema: Schema | None, failures: Sequence[int] = ()) -> dict[str, Any]:
    """An operation whose response is JSON of a schema, or plain text if there is none."""
    responses = {"200": _response("success", schema)}
    for status in (*failures, 431):
        responses[str(status)] = _response(_REASONS[status], ref("Error"))
        if status in (429, 503):
            responses[str(status)]["headers"] = _WAIT
    return {"summary": summary, "responses": responses}


def _response(description: str, schema: Schema | None) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}} if schema else {"text/plain": {"schema": TEXT}}
    return {"description": description, "content": content}


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": TEXT}


def _body(name: str) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": ref(name)}}}
