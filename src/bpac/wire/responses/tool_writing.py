"""Tools and the choice among them, as the Responses API has them."""

from collections.abc import Mapping
from typing import Any


def write_tool(tool: Any) -> Any:
    """A tool of the chat API; any other is the API's own, and stays as it is.

    A function is strict here unless it says otherwise, and lax in the chat API: it therefore always says so.

    >>> write_tool({"type": "function", "function": {"name": "now"}})
    {'type': 'function', 'parameters': None, 'name': 'now', 'strict': False}
    """
    if not isinstance(tool, Mapping):
        return tool
    kind = tool.get("type")
    given = tool.get(kind) if isinstance(kind, str) else None
    if not isinstance(given, Mapping):
        return tool
    if kind == "function":
        return {"type": kind, "parameters": None, **given, "strict": bool(given.get("strict"))}
    written = {"type": kind, **given}
    layout = given.get("format")
    if isinstance(layout, Mapping) and isinstance(layout.get("grammar"), Mapping):
        written["format"] = {"type": "grammar", **layout["grammar"]}
    return written


def write_tool_choice(choice: Any) -> Any:
    """The choice among tools.

    >>> write_tool_choice({"type": "function", "function": {"name": "now"}})
    {'type': 'function', 'name': 'now'}
    """
    if not isinstance(choice, Mapping):
        return choice
    kind = choice.get("type")
    given = choice.get(kind) if isinstance(kind, str) else None
    if not isinstance(given, Mapping):
        return choice
    written = {"type": kind, **given}
    if isinstance(written.get("tools"), list):
        written["tools"] = [write_tool_choice(tool) for tool in written["tools"]]
    return written
