"""Tools and the choice among them, as the Responses API has them."""

from collections.abc import Mapping
from typing import Any

from bpac.wire.originals import ORIGINAL


def write_tool(tool: Any, originals: bool = False) -> Any:
    """A tool of the chat API; any other is the API's own, and stays as it is.

    A function is strict here unless it says otherwise, and lax in the chat API: it therefore always says so.

    Parameters
    ----------
    tool: the tool.
    originals: whether its original is used (default: no).

    >>> write_tool({"type": "function", "function": {"name": "now"}})
    {'type': 'function', 'name': 'now', 'parameters': None, 'strict': False}
    """
    written = _flat(tool)
    if written is None:
        return tool
    own = tool.get(ORIGINAL, {}) if originals else {}
    if written["type"] == "function":
        return {**written, "parameters": written.get("parameters"), "strict": bool(written.get("strict")), **own}
    layout = written.get("format")
    if isinstance(layout, Mapping) and isinstance(layout.get("grammar"), Mapping):
        written["format"] = {"type": "grammar", **layout["grammar"]}
    return {**written, **own}


def write_tool_choice(choice: Any) -> Any:
    """The choice among tools.

    >>> write_tool_choice({"type": "function", "function": {"name": "now"}})
    {'type': 'function', 'name': 'now'}
    """
    written = _flat(choice)
    if written is None:
        return choice
    if isinstance(written.get("tools"), list):
        written["tools"] = [write_tool_choice(tool) for tool in written["tools"]]
    return written


def _flat(value: Any) -> dict[str, Any] | None:
    """An object ``{type: T, T: {…}}`` of the chat API with the inner fields beside its type; none if it is no such."""
    if not isinstance(value, Mapping):
        return None
    kind = value.get("type")
    given = value.get(kind) if isinstance(kind, str) else None
    return {"type": kind, **given} if isinstance(given, Mapping) else None
