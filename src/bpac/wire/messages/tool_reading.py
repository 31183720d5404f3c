"""The tools that a request offers to the model, and which of them it must use."""

from typing import Any

from bpac.wire.request_fields import Fields

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def read_tool(tool: Fields) -> dict[str, Any]:
    """A tool as chat completions describe it; ``RequestError`` if they cannot.

    >>> read_tool(Fields({"name": "add", "input_schema": {"type": "object"}}))
    {'type': 'function', 'function': {'name': 'add', 'parameters': {'type': 'object'}}}
    """
    if (kind := tool.text("type")) not in (None, "custom"):
        what = (
            f"cannot be {kind!r}: that tool runs at Anthropic or is built into its models, and chat completions have "
            "functions only; offer a tool with an input_schema that does the same"
        )
        raise tool.unsupported("type", what)
    described: dict[str, Any] = {"name": tool.needed_text("name")}
    if (description := tool.text("description")) is not None:
        described["description"] = description
    described["parameters"] = tool.needed_object("input_schema").values
    if (strict := tool.flag("strict")) is not None:
        described["strict"] = strict
    return {"type": "function", "function": described}


def read_tool_choice(fields: Fields, has_tools: bool) -> dict[str, Any]:
    """Which tools the model must use, as fields of a chat completion.

    Parameters
    ----------
    fields: the request.
    has_tools: whether it offers tools. Without any, servers refuse a choice, and most choices ask for nothing.
    """
    if (choice := fields.object("tool_choice")) is None:
        return {}
    kind = choice.one_of("type", *_CHOICES, "tool")
    wanted: Any = _CHOICES.get(kind) or {"type": "function", "function": {"name": choice.needed_text("name")}}
    one_call = choice.flag("disable_parallel_tool_use")
    if not has_tools and wanted in ("auto", "none"):
        return {}
    return {"tool_choice": wanted, **({"parallel_tool_calls": False} if one_call else {})}
