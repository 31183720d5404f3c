"""Drafts that cannot be what was asked for: their uncertainty is 1, whatever their score.

Such a draft is still a round, but it is never accepted. Whether a draft is impossible depends on the request and on the
draft only, and the rule can only lower the risk of a threshold, so that evidence from rounds without it stays valid.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bpac.answer import Answer
from bpac.gateway.chat.drafts.json_schema import can_fit
from bpac.wire.json import from_strict_json

# The characters that a JSON text can begin with.
_JSON_STARTS = tuple('{["-0123456789tfn')
# Tool calls of a draft that are checked, so that the time of all checks is bounded.
_MOST_CALLS = 8


def impossible(body: Mapping[str, Any], draft: Answer) -> str:
    """Why a whole draft cannot be what was asked for; empty if it can.

    Parameters
    ----------
    body: the caller's request.
    draft: the draft.

    >>> impossible({"response_format": {"type": "json_object"}}, Answer("Sure!")), impossible({}, Answer("Sure!"))
    ('not_json', '')
    """
    if not draft.finished:
        return "cut_off"
    if draft.tool_calls:
        return "" if _possible_calls(body.get("tools"), draft.tool_calls[:_MOST_CALLS]) else "tool_call"
    if not draft.text.strip():
        return "empty"
    kind, schema = _requested_json(body)
    return _wrong_json(draft.text, kind, schema) if kind else ""


def impossible_start(body: Mapping[str, Any], start: Answer) -> str:
    """Why a draft that begins like this cannot become what was asked for; empty if it can.

    Parameters
    ----------
    body: the caller's request.
    start: the first tokens of the draft, which is still being generated.
    """
    kind, _ = _requested_json(body)
    text = start.text.lstrip()
    if not kind or not text or start.tool_calls:
        return ""
    return "" if text.startswith("{" if kind == "json_object" else _JSON_STARTS) else "not_json"


def asks_for_structure(body: Mapping[str, Any]) -> bool:
    """Whether the answer may be a tool call or JSON, to which no line of text can be added."""
    return bool(_requested_json(body)[0]) or bool(body.get("tools"))


def _requested_json(body: Mapping[str, Any]) -> tuple[str, Any]:
    """Which kind of JSON was requested, and its schema; an empty kind if the answer may be any text."""
    requested = body.get("response_format")
    kind = requested.get("type") if isinstance(requested, Mapping) else None
    if kind == "json_object":
        return kind, True
    if kind == "json_schema" and isinstance(requested, Mapping):
        described = requested.get("json_schema")
        return kind, described.get("schema", True) if isinstance(described, Mapping) else True
    return "", True


def _wrong_json(text: str, kind: str, schema: Any) -> str:
    try:
        value = from_strict_json(text.encode())
    except ValueError:
        return "not_json"
    if kind == "json_object" and not isinstance(value, dict):
        return "not_json"
    return "" if can_fit(value, schema) else "schema"


def _possible_calls(offered: Any, calls: Sequence[Mapping[str, Any]]) -> bool:
    if not isinstance(offered, list):
        return True
    functions = [tool.get("function") if isinstance(tool, Mapping) else None for tool in offered]
    if not functions or not all(isinstance(function, Mapping) for function in functions):
        return True  # there are tools of other kinds
    schemas = {str(function.get("name")): function.get("parameters", True) for function in functions if function}
    return all(_possible_call(schemas, call.get("function")) for call in calls)


def _possible_call(schemas: Mapping[str, Any], called: Any) -> bool:
    if not isinstance(called, Mapping):
        return True  # a call of another kind
    name, arguments = str(called.get("name")), called.get("arguments") or "{}"
    if name not in schemas:
        return False
    if isinstance(arguments, str):
        try:
            arguments = from_strict_json(arguments.encode())
        except ValueError:
            return False
    return isinstance(arguments, dict) and can_fit(arguments, schemas[name])
