"""The tools that a request offers to the model, and which of them it must use."""

from typing import Any

from bpac.wire.originals import ORIGINAL, Original
from bpac.wire.request_fields import Fields

_READ = frozenset({"name", "description", "input_schema", "strict"})
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def read_tool(tool: Fields, original: Original) -> dict[str, Any]:
    """A tool as chat completions describe it; a tool that they do not have stays as it is.

    Parameters
    ----------
    tool: the tool.
    original: notes what chat completions cannot express.

    >>> read_tool(Fields({"name": "add", "input_schema": {"type": "object"}}), Original("messages"))
    {'type': 'function', 'function': {'name': 'add', 'parameters': {'type': 'object'}}}
    """
    if (kind := tool.text("type")) not in (None, "custom"):
        what = (
            f"cannot be {kind!r}: that tool runs at Anthropic or is built into its models, and chat completions have "
            "functions only; offer a tool with an input_schema that does the same"
        )
        original.only_here(tool.unsupported("type", what))
        return dict(tool.values)
    described: dict[str, Any] = {"name": tool.needed_text("name")}
    if (description := tool.text("description")) is not None:
        described["description"] = description
    described["parameters"] = tool.needed_object("input_schema").values
    if (strict := tool.flag("strict")) is not None:
        described["strict"] = strict
    others = tool.others(_READ)
    return {"type": "function", "function": described, **({ORIGINAL: others} if others else {})}


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
