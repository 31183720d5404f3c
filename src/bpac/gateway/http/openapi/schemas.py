"""The JSON schemas of the OpenAPI document."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}


def _object(properties: Mapping[str, Schema], *optional: str) -> dict[str, Any]:
    """An object with these fields, of which the optional ones may be missing; further fields are allowed."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "properties": dict(properties)}


def _list(items: Schema) -> dict[str, Any]:
    return {"type": "array", "items": items}


def ref(name: str) -> dict[str, str]:
    """A reference to a schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


# Further fields are passed on to the models unchanged.
CHAT_REQUEST = _object(
    {
        "model": {**TEXT, "minLength": 1, "description": "the name of a route"},
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

_USAGE = _object(dict.fromkeys(("prompt_tokens", "cached_tokens", "completion_tokens", "estimated_tokens"), _COUNT))
# Only where every model of the route has a price.
_MONEY: Mapping[str, Schema] = {
    "money_saved": _NUMBER,
    "money_saved_at_least": _NUMBER,
    "money_saved_at_most": _MAYBE_NUMBER,
    "money_share_saved": _MAYBE_NUMBER,
    "money_share_saved_at_least": _MAYBE_NUMBER,
    "money_share_saved_at_most": _MAYBE_NUMBER,
    "money_spent": _NUMBER,
    "always_money": _NUMBER,
    "money_covers": {"enum": ["bill", "output"]},
    "currency": TEXT,
    "longest_prompt_assumed": _MAYBE_NUMBER,
}

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
        "confidence": SHARE,
        **dict.fromkeys(("share_saved", "share_saved_at_least", "share_saved_at_most"), _MAYBE_NUMBER),
        "usage": _object(dict.fromkeys(("draft", "expert", "judge"), _USAGE)),
        "prompts_unknown": _COUNT,
        **_MONEY,
    },
    *_MONEY,
)

_CERTIFICATE = _object(
    {
        "rounds": _COUNT,
        "lower": _NUMBER,
        "upper": _MAYBE_NUMBER,
        "average_upper": _MAYBE_NUMBER,
        "best_average_upper": _MAYBE_NUMBER,
        "confidence": SHARE,
    }
)

_GAME = _object(
    {
        "segment": TEXT,
        "game": {"type": "integer", "minimum": 1},
        "policy": TEXT,
        "epsilon": SHARE,
        "alpha": SHARE,
        "steps": _COUNT,
        "threshold": SHARE,
        "expert_calls": _COUNT,
        "expert_call_rate": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "owed": _COUNT,
        "forfeits": {"type": "object", "additionalProperties": _COUNT},
        "epoch": {"type": "integer", "minimum": 1},
        "alarm": _MAYBE_NUMBER,
        "doubt": _MAYBE_NUMBER,
        "forfeit_share": SHARE,
        "refused": _COUNT,
        "withdrawn": _COUNT,
        "exploration_rate": SHARE,
        "audit_price": _NUMBER,
        "expert_busy": {"type": "boolean"},
        "expected_rounds": _COUNT,
        "state": {"enum": ["warming_up", "routing", "not_routing", "alarmed"]},
        "unscored": _object(
            {"requests": _COUNT, "share": SHARE, "reasons": {"type": "object", "additionalProperties": _COUNT}}
        ),
        "refusals": _object(
            {"requests": _COUNT, "share": SHARE, "reasons": {"type": "object", "additionalProperties": _COUNT}}
        ),
        "troubles": _list(_object({"what": TEXT, "cost": TEXT, "remedy": TEXT})),
        "certificate": _CERTIFICATE,
        "savings": _SAVINGS,
    }
)

_MODEL = _object(
    {
        "health": {"type": "object"},
        "deployments": _list(_object({"name": TEXT, "up": {"type": "boolean"}, "answers": _COUNT, "failures": _COUNT})),
    },
    "deployments",
)

_NAMED: Schema = {**TEXT, "minLength": 1}
_ROUTE: Schema = {**_NAMED, "description": "the name of a route with decide_only"}
_TOKEN_COUNT: Schema = {"type": ["integer", "null"], "minimum": 0, "maximum": 10**9}
_TOKENS: Schema = {
    "type": ["object", "null"],
    "properties": {"prompt_tokens": _TOKEN_COUNT, "completion_tokens": _TOKEN_COUNT},
}

SCHEMAS: dict[str, Any] = {
    "Error": _object(
        {
            "error": _object(
                {
                    "message": TEXT,
                    "type": TEXT,
                    "param": {"type": ["string", "null"]},
                    # A string in errors of the gateway; refusals of model servers that are passed on may have numbers.
                    "code": {"type": ["string", "integer", "null"]},
                }
            )
        }
    ),
    "ChatCompletion": _object({"choices": {**_list(_object({"message": {"type": "object"}})), "minItems": 1}}),
    "PassedThrough": _object({"model": {**TEXT, "minLength": 1, "description": "the name of a route with one model"}}),
    # An event of a stream; the data of the last one is [DONE] unless the stream ends with an error.
    "Event": _object({"data": {**TEXT, "description": "a chat.completion.chunk, an Error or [DONE]"}}),
    "Model": _object({"id": TEXT, "object": {"const": "model"}, "created": _COUNT, "owned_by": TEXT}),
    "Models": _object({"object": {"const": "list"}, "data": _list(ref("Model"))}),
    "Arrival": _object({"route": _ROUTE, "user": TEXT, "metadata": {"type": "object"}}, "user", "metadata"),
    "GivenTicket": _object({"ticket": TEXT, "route": TEXT, "segment": TEXT, "deadline": _NUMBER}),
    "Draft": {
        **_object(
            {
                "ticket": {**_NAMED, "description": "of /v1/arrive; without one, a ticket is taken now"},
                "route": _ROUTE,
                "uncertainty": SHARE,
                "features": {"type": ["object", "null"], "description": "by name, as the route lists them"},
                "usage": _TOKENS,
            },
            "ticket",
            "route",
            "features",
            "usage",
        ),
        "anyOf": [{"required": ["ticket"]}, {"required": ["route"]}],
    },
    "Decision": _object(
        {
            "decision": {"type": ["string", "null"], "description": "null if nothing was decided: the expert answers"},
            "ticket": TEXT,
            "route": TEXT,
            "segment": TEXT,
            "call_expert": {"type": "boolean"},
            "serve_draft": {"type": "boolean"},
            **dict.fromkeys(("uncertainty", "threshold", "propensity"), _MAYBE_NUMBER),
            "step": {"type": ["integer", "null"]},
            "reason": {"type": ["string", "null"], "description": "why nothing was decided"},
        }
    ),
    "Withdrawal": _object(
        {"ticket": _NAMED, "reason": {"enum": ["no-score", "caller-left", "draft-failed", "cancelled"]}}, "reason"
    ),
    "Feedback": {
        **_object({"decision": {**TEXT, "description": "the id of the decision"}, "usage": _TOKENS}, "usage"),
        "oneOf": [
            {"required": ["loss"], "properties": {"loss": SHARE, "outcome": {"type": "null"}}},
            {
                "required": ["outcome"],
                "properties": {"outcome": {"enum": ["unknown", "refused"]}, "loss": {"type": "null"}},
            },
        ],
    },
    "Reported": _object({"decision": TEXT, "loss": _MAYBE_NUMBER, "outcome": TEXT}, "outcome"),
    "Answers": _object({"draft": TEXT, "expert": TEXT}),
    "Status": _object(
        {
            "routes": {"type": "object", "additionalProperties": _list(_GAME)},
            "losses": _list(_object({"game": _COUNT, "entries": _COUNT, "acknowledged": _COUNT, "head": TEXT})),
            "warnings": _list(
                _object(
                    {"route": TEXT, "what": TEXT, "since": _MAYBE_NUMBER, "count": _COUNT, "cost": TEXT, "remedy": TEXT}
                )
            ),
            "upkeep": _list(
                _object({"work": TEXT, "what": TEXT, "since": _NUMBER, "count": _COUNT, "cost": TEXT, "remedy": TEXT})
            ),
            "models": {"type": "object", "additionalProperties": _MODEL},
            "store": _object({"ok": {"type": "boolean"}, "failures": _COUNT}),
            "callers": _object(
                {"connections": _COUNT, "refused": {"type": "object", "additionalProperties": _COUNT}},
            ),
            "configuration": _object(
                {"reloads": _COUNT, "failed_reload": {"type": ["object", "null"]}}, "reloads", "failed_reload"
            ),
            "budgets": {
                "type": "object",
                "additionalProperties": _object(
                    {
                        "day": _COUNT,
                        "requests": _COUNT,
                        "tokens": _COUNT,
                        "last_minute": _object({"requests": _COUNT, "tokens": _COUNT}),
                    },
                    "last_minute",
                ),
            },
            "tickets": {
                "type": "object",
                "additionalProperties": {"type": "object", "additionalProperties": _COUNT},
            },
            "outside": {
                "type": "object",
                "additionalProperties": {"type": "object", "additionalProperties": _COUNT},
            },
        }
    ),
    "Health": _object({"status": TEXT}),
    "Readiness": _object(
        {
            "status": TEXT,
            "models": {"type": "object", "additionalProperties": _object({"up": {"type": "boolean"}, "probe": TEXT})},
        }
    ),
}
