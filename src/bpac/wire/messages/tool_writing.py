"""Tools and the choice among them, as the Messages API has them."""

from collections.abc import Mapping
from typing import Any

from bpac.wire.messages.history_writing import API
from bpac.wire.originals import ORIGINAL
from bpac.wire.translating import not_expressible

_MODES = {"auto": "auto", "required": "any", "none": "none"}


def write_tools(tools: list[Any], originals: bool = False) -> list[Any]:
    """The tools of a request; those that are not functions of the chat API are the API's own, and stay as they are.

    Parameters
    ----------
    tools: the tools.
    originals: whether their originals are used (default: no).

    >>> write_tools([{"type": "function", "function": {"name": "now"}}])
    [{'name': 'now', 'input_schema': {'type': 'object', 'properties': {}}}]
    """
    return [_tool(tool, originals) for tool in tools]


def _tool(tool: Any, originals: bool) -> Any:
    if isinstance(tool, Mapping) and tool.get("type") == "custom" and "custom" in tool:
        raise not_expressible("tools.custom", API, "offer a function instead")
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping):
        return tool
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    written = {"name": function.get("name"), "input_schema": schema}
    if function.get("description") is not None:
        written["description"] = function["description"]
    if function.get("strict") is not None:
        written["strict"] = function["strict"]
    if tool.get("cache_control") is not None:
        written["cache_control"] = tool["cache_control"]
    return written | (tool.get(ORIGINAL, {}) if originals else {})


def write_tool_choice(choice: Any, parallel: Any, has_tools: bool) -> dict[str, Any] | None:
    """The choice among tools; none if the request leaves it out.

    Parameters
    ----------
    choice: ``tool_choice`` of the chat request.
    parallel: its ``parallel_tool_calls``.
    has_tools: whether it offers tools.

    >>> write_tool_choice({"type": "function", "function": {"name": "now"}}, parallel=False, has_tools=True)
    {'type': 'tool', 'name': 'now', 'disable_parallel_tool_use': True}
    """
    written = _choice(choice)
    if parallel is False and has_tools:
        written = written or {"type": "auto"}
        if written.get("type") != "none":
            written["disable_parallel_tool_use"] = True
    return written


def _choice(choice: Any) -> dict[str, Any] | None:
    if choice is None:
        return None
    if isinstance(choice, str) and choice in _MODES:
        return {"type": _MODES[choice]}
    if isinstance(choice, Mapping):
        function = choice.get("function")
        if isinstance(function, Mapping):
            return {"type": "tool", "name": function.get("name")}
        if choice.get("type") not in ("allowed_tools", "custom"):
            return dict(choice)  # the API's own
    raise not_expressible("tool_choice", API, "choose auto, required, none, or one function")
