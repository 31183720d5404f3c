"""The JSON schemas of the Responses API and the Messages API, as far as requests are checked and replies promised.

Further fields of requests are passed on to the models or refused: docs/doors.md lists them.
"""

from collections.abc import Mapping
from typing import Any

from bpac.gateway.http.openapi.schemas import TEXT, Schema

_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_MAYBE_FLAG: Schema = {"type": ["boolean", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_MODEL: Schema = {**TEXT, "minLength": 1, "description": "the name of a route"}


def _object(properties: Mapping[str, Schema], *optional: str) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "properties": dict(properties)}


def _maybe(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


def _some(items: Schema) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


def _either(*schemas: Schema) -> dict[str, Any]:
    return {"anyOf": list(schemas)}


def _typed(kind: str, properties: Mapping[str, Schema], *optional: str) -> dict[str, Any]:
    return _object({"type": {"const": kind}, **properties}, *optional)


_ITEM = _either(
    _object(
        {"type": {"const": "message"}, "role": {"enum": ["user", "assistant", "system", "developer"]}, "content": TEXT},
        "type",
    ),
    _typed("function_call", {"call_id": TEXT, "name": TEXT, "arguments": TEXT}),
    _typed("function_call_output", {"call_id": TEXT, "output": TEXT}),
)

RESPONSES_REQUEST = _object(
    {
        "model": _MODEL,
        "input": _either(TEXT, _some(_ITEM)),
        "instructions": _MAYBE_TEXT,
        "max_output_tokens": {"type": ["integer", "null"], "minimum": 1},
        "stream": _MAYBE_FLAG,
        "include": {"type": ["array", "null"], "items": TEXT},
        "top_logprobs": {"type": ["integer", "null"], "minimum": 0},
        "reasoning": _maybe(_object({"effort": _MAYBE_TEXT}, "effort")),
        "text": _maybe(_object({"verbosity": _MAYBE_TEXT}, "verbosity")),
        "tools": {
            "type": ["array", "null"],
            "items": _typed(
                "function",
                {
                    "name": TEXT, "description": _MAYBE_TEXT, "parameters": {"type": ["object", "null"]},
                    "strict": _MAYBE_FLAG,
                },
                "description", "parameters", "strict",
            ),
        },
        "truncation": {"enum": ["disabled", None]},
        "background": {"enum": [False, None]},
        "previous_response_id": {"type": "null", "description": "no conversations are kept"},
        "conversation": {"type": "null", "description": "no conversations are kept"},
    },
    "instructions", "max_output_tokens", "stream", "include", "top_logprobs", "reasoning", "text", "tools",
    "truncation", "background", "previous_response_id", "conversation",
)  # fmt: skip

_CONTENT = _either(TEXT, _some(_typed("text", {"text": TEXT})))
_PROMPT: Mapping[str, Schema] = {
    "model": _MODEL,
    "messages": _some(_object({"role": {"enum": ["user", "assistant", "system"]}, "content": _CONTENT})),
    "system": _either({"type": "null"}, _CONTENT),
    "thinking": _maybe(
        _object(
            {
                "type": {"enum": ["enabled", "disabled", "adaptive", "between_tools"]},
                "budget_tokens": {"type": ["integer", "null"], "minimum": 1},
            },
            "budget_tokens",
        )
    ),
    "tools": {
        "type": ["array", "null"],
        "items": _object(
            {
                "type": {"enum": ["custom", None]}, "name": TEXT, "description": _MAYBE_TEXT,
                "input_schema": {"type": "object"},
            },
            "type", "description",
        ),
    },
}  # fmt: skip
_OPTIONAL = ("system", "thinking", "tools")

MESSAGES_REQUEST = _object(
    {
        **_PROMPT,
        "max_tokens": {"type": "integer", "minimum": 1},
        "stop_sequences": {"type": ["array", "null"], "items": TEXT},
        "stream": _MAYBE_FLAG,
        "metadata": _maybe(_object({"user_id": _MAYBE_TEXT}, "user_id")),
    },
    *_OPTIONAL, "stop_sequences", "stream", "metadata",
)  # fmt: skip
COUNT_REQUEST = _object(_PROMPT, *_OPTIONAL)

DOOR_SCHEMAS: dict[str, Any] = {
    "ResponsesRequest": RESPONSES_REQUEST,
    "Response": _object(
        {
            "id": TEXT,
            "object": {"const": "response"},
            "created_at": _COUNT,
            "status": {"enum": ["completed", "incomplete"]},
            "model": _MAYBE_TEXT,
            "output": {"type": "array", "items": _object({"id": TEXT, "type": TEXT})},
            "usage": {"type": ["object", "null"]},
        }
    ),
    "MessagesRequest": MESSAGES_REQUEST,
    "Message": _object(
        {
            "id": TEXT,
            "type": {"const": "message"},
            "role": {"const": "assistant"},
            "model": _MAYBE_TEXT,
            "content": {"type": "array", "items": _object({"type": TEXT})},
            "stop_reason": TEXT,
            "stop_sequence": _MAYBE_TEXT,
            "usage": _object({"input_tokens": _COUNT, "output_tokens": _COUNT}),
        }
    ),
    "CountRequest": COUNT_REQUEST,
    "Count": _object({"input_tokens": _COUNT}),
    "MessagesError": _object(
        {"type": {"const": "error"}, "error": _object({"type": TEXT, "message": TEXT}), "request_id": TEXT}
    ),
}
