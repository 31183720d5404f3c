"""What the gateway takes and gives, as an OpenAPI document."""

from collections.abc import Mapping, Sequence
from typing import Any

from bpac import __version__

Schema = Mapping[str, Any]

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}


def _object(properties: Mapping[str, Schema], *optional: str) -> dict[str, Any]:
    """An object with these fields, of which the optional ones may be missing; others may come on top."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "properties": dict(properties)}


def _list(items: Schema) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


# Fields that are not named here reach the models as they are.
_CHAT_REQUEST = _object(
    {
        "model": {**_TEXT, "minLength": 1, "description": "the name of a route"},
        "messages": {**_list({"type": "object"}), "minItems": 1},
        "stream": {"type": ["boolean", "null"]},
        "stream_options": {"type": ["object", "null"], "properties": {"include_usage": {"type": ["boolean", "null"]}}},
        "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 128},
        "logprobs": {"type": ["boolean", "null"]},
        "top_logprobs": {"type": ["integer", "null"], "minimum": 0, "description": "only where logprobs is true"},
    },
    "stream", "stream_options", "n", "logprobs", "top_logprobs",
) | {
    "if": _object({"top_logprobs": {"type": "integer", "minimum": 1}}),
    "then": _object({"logprobs": {"const": True}}),
}  # fmt: skip

_SAVINGS = _object(
    {
        "draft_tokens": _COUNT,
        "expert_tokens": _COUNT,
        "judge_tokens": _COUNT,
        "always_tokens": _NUMBER,
        "tokens_saved": _NUMBER,
        "tokens_saved_at_least": _NUMBER,
        "tokens_saved_at_most": _MAYBE_NUMBER,
        "longest_answer_assumed": _MAYBE_NUMBER,
        "confidence": _SHARE,
        "money_saved": _NUMBER,
        "money_saved_at_least": _NUMBER,
        "money_saved_at_most": _MAYBE_NUMBER,
    },
    "money_saved", "money_saved_at_least", "money_saved_at_most",
)  # fmt: skip

_CERTIFICATE = _object(
    {
        "rounds": _COUNT,
        "lower": _NUMBER,
        "upper": _MAYBE_NUMBER,
        "average_upper": _MAYBE_NUMBER,
        "confidence": _SHARE,
    }
)

_GAME = _object(
    {
        "segment": _TEXT,
        "game": {"type": "integer", "minimum": 1},
        "policy": _TEXT,
        "epsilon": _SHARE,
        "alpha": _SHARE,
        "steps": _COUNT,
        "threshold": _SHARE,
        "expert_calls": _COUNT,
        "expert_call_rate": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "owed": _COUNT,
        "forfeits": {"type": "object", "additionalProperties": _COUNT},
        "epoch": {"type": "integer", "minimum": 1},
        "alarm": _MAYBE_NUMBER,
        "doubt": _MAYBE_NUMBER,
        "forfeit_share": _SHARE,
        "refused": _COUNT,
        "withdrawn": _COUNT,
        "state": {"enum": ["warming_up", "routing", "not_routing", "alarmed"]},
        "unscored": _object(
            {"requests": _COUNT, "share": _SHARE, "reasons": {"type": "object", "additionalProperties": _COUNT}}
        ),
        "certificate": _CERTIFICATE,
        "savings": _SAVINGS,
    }
)

_SCHEMAS: dict[str, Any] = {
    "Error": _object(
        {
            "error": _object(
                {
                    "message": _TEXT,
                    "type": _TEXT,
                    "param": {"type": ["string", "null"]},
                    # A text in ours; some servers whose refusals are passed on have numbers.
                    "code": {"type": ["string", "integer", "null"]},
                }
            )
        }
    ),
    "ChatCompletion": _object({"choices": {**_list(_object({"message": {"type": "object"}})), "minItems": 1}}),
    # Each event of a stream; the data of the last one is [DONE], unless the stream ends in an error.
    "Event": _object({"data": {**_TEXT, "description": "a chat.completion.chunk, an Error or [DONE]"}}),
    "Model": _object({"id": _TEXT, "object": {"const": "model"}, "created": _COUNT, "owned_by": _TEXT}),
    "Models": _object({"object": {"const": "list"}, "data": _list(_ref("Model"))}),
    "Feedback": _object({"decision": {**_TEXT, "description": "what x-bpac-decision said"}, "loss": _SHARE}),
    "Answers": _object({"draft": _TEXT, "expert": _TEXT}),
    "Status": _object(
        {
            "routes": {"type": "object", "additionalProperties": _list(_GAME)},
            "losses": _list(_object({"game": _COUNT, "entries": _COUNT, "acknowledged": _COUNT, "head": _TEXT})),
            "callers": _object(
                {"connections": _COUNT, "refused": {"type": "object", "additionalProperties": _COUNT}},
            ),
        }
    ),
    "Health": _object({"status": _TEXT}),
}

# Of every answer to a chat; those that are not always there come last.
_HEADERS: dict[str, Schema] = {
    "x-bpac-decision": {**_TEXT, "pattern": "^(dec-[0-9]+-[0-9]+-[0-9a-f]+|unscored)$"},
    "x-bpac-answered-by": {"enum": ["draft", "expert"]},
    "x-bpac-uncertainty": _SHARE,
    "x-bpac-threshold": _SHARE,
    "x-bpac-propensity": _SHARE,
}
_SOMETIMES: dict[str, Schema] = {
    "x-bpac-unscored": {"enum": ["n", "modalities", "no-score", "draft-failed", "draft-refused"]},
    "x-bpac-fallback": {"enum": ["expert-failed", "expert-refused"]},
}

_REASONS = {
    400: "no request: the message says what is wrong with it",
    401: "no valid API key",
    403: "the key lacks the role that this needs, or the decision was made for another key",
    404: "there is no such thing",
    409: "the round has its outcome already, or never had one to come",
    408: "the head or the body of the request took too long",
    413: "the body is too large, or has too many values",
    415: "the body is not sent as application/json",
    422: "a field is not what it must be",
    429: "too many requests under way: come back after retry-after seconds",
    431: "the head of the request is too large, or has too many headers",
    502: "the model gave no usable answer",
    503: "the gateway is stopping, or its journal cannot be written, or it has too many connections",
}
_WAIT = {"retry-after": {"schema": _TEXT}}


def document(routes: Sequence[str], *, keys: bool = False) -> dict[str, Any]:
    """The OpenAPI document.

    Parameters
    ----------
    routes: what clients may ask for as ``model``.
    keys: whether callers must show an API key. Without keys the name and origin of a request are checked instead.

    >>> sorted(document(["homework"])["paths"])[0]
    '/healthz'
    """
    fields = _CHAT_REQUEST["properties"]
    chat = {**_CHAT_REQUEST, "properties": {**fields, "model": {**fields["model"], "examples": list(routes)}}}
    # Without keys 403 is for other hosts and origins.
    seen, guarded = ((401,), (401, 403)) if keys else ((403,), (403,))
    taken = () if keys else (415,)
    paths: dict[str, Any] = {
        "/v1/chat/completions": {"post": _chat((*guarded, *taken))},
        "/v1/models": {"get": _page("The routes", _ref("Models"), seen)},
        "/v1/models/{model}": {
            "get": {**_page("A route", _ref("Model"), (*seen, 404)), "parameters": [_in_path("model")]}
        },
        "/v1/feedback": {
            "post": {
                **_page("Report a loss", _ref("Feedback"), (400, *guarded, 404, 408, 409, 413, *taken, 422, 503)),
                "requestBody": _body("Feedback"),
            }
        },
        "/v1/decisions/{decision}": {
            "get": {
                **_page("Both answers of a round that waits for a loss from outside", _ref("Answers"), (*guarded, 404)),
                "parameters": [_in_path("decision")],
            }
        },
        "/v1/status": {"get": _page("Where every game stands", _ref("Status"), guarded)},
        "/metrics": {"get": _page("For Prometheus", None, guarded)},
        "/healthz": {"get": {**_page("Whether the process lives", _ref("Health")), "security": []}},
        "/readyz": {"get": {**_page("Whether requests are answered", _ref("Health")), "security": []}},
    }
    paths["/readyz"]["get"]["responses"]["503"] = _response("not (yet, or any more)", _ref("Health"))
    return {
        "openapi": "3.1.0",
        "info": {"title": "bpac gateway", "version": __version__},
        "security": [{"key": []}] if keys else [],
        "paths": paths,
        "components": {
            "schemas": {**_SCHEMAS, "ChatRequest": chat},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _chat(guarded: Sequence[int]) -> dict[str, Any]:
    page = _page("Answer a chat", _ref("ChatCompletion"), (400, *guarded, 404, 408, 413, 429, 502, 503))
    good = page["responses"]["200"]
    good["description"] = "a chat completion, or its pieces as server-sent events if stream is true"
    good["content"]["text/event-stream"] = {"schema": _ref("Event")}
    good["headers"] = {name: {"required": True, "schema": schema} for name, schema in _HEADERS.items()}
    good["headers"] |= {name: {"schema": schema} for name, schema in _SOMETIMES.items()}
    # A refusal of the expert's server, 429 included, comes through as that server put it, if it put it in JSON.
    refused = {"description": "the expert's server refused, in its own words", "content": {"application/json": {}}}
    page["responses"]["4XX"] = refused
    return page | {"requestBody": _body("ChatRequest")}


def _page(summary: str, schema: Schema | None, failures: Sequence[int] = ()) -> dict[str, Any]:
    """A page that answers JSON of a schema, or plain text if there is none."""
    responses = {"200": _response("fine", schema)}
    for status in (*failures, 431):
        responses[str(status)] = _response(_REASONS[status], _ref("Error"))
        if status in (429, 503):
            responses[str(status)]["headers"] = _WAIT
    return {"summary": summary, "responses": responses}


def _response(description: str, schema: Schema | None) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}} if schema else {"text/plain": {"schema": _TEXT}}
    return {"description": description, "content": content}


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _TEXT}


def _body(name: str) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": _ref(name)}}}
