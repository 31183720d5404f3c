"""The tools that a request offers to the model, and which of them it must use."""

from typing import Any

from bpac.wire.originals import ORIGINAL, Original
from bpac.wire.request_fields import Fields

_READ = frozenset({"type", "name", "description", "parameters", "strict", "format"})


def read_tool(tool: Fields, original: Original) -> dict[str, Any]:
    """A tool as chat completions describe it; a tool that they do not have stays as it is.

    Parameters
    ----------
    tool: the tool.
    original: notes what chat completions cannot express.

    >>> add = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}
    >>> read_tool(Fields(add), Original("responses"))
    {'type': 'function', 'function': {'name': 'add', 'parameters': {'type': 'object'}, 'strict': False}}
    """
    kind = tool.needed_text("type")
    if kind not in ("function", "custom"):
        _refuse_stored(tool)
        what = (
            f"cannot be {kind!r}: that tool runs at OpenAI or is built into its models, and chat completions have "
            "functions and custom tools only; offer a function that does the same"
        )
        original.only_here(tool.unsupported("type", what))
        return dict(tool.values)
    others = tool.others(_READ)
    described: dict[str, Any] = {"name": tool.needed_text("name")}
    if (description := tool.text("description")) is not None:
        described["description"] = description
    if kind == "function":
        if (parameters := tool.object("parameters")) is not None:
            described["parameters"] = parameters.values
        if (strict := tool.flag("strict")) is not None:
            described["strict"] = strict
        else:
            others["strict"] = None  # strict if that is possible, which chat completions cannot say
    elif (wanted := tool.object("format")) is not None:
        described["format"] = _grammar(wanted)
    return {"type": kind, kind: described, **({ORIGINAL: others} if others else {})}


def _refuse_stored(tool: Fields) -> None:
    """Refuse a tool that uses what is stored at OpenAI, where callers share the gateway's account."""
    environment = tool.get("environment")
    is_reference = isinstance(environment, dict) and environment.get("type") == "container_reference"
    if tool.get("type") == "file_search" or isinstance(tool.get("container"), str) or is_reference:
        why = "cannot be used: it reads what is stored at OpenAI, where callers share an account; send files in input"
        raise tool.unsupported("type", why)


def _grammar(wanted: Fields) -> dict[str, Any]:
    if wanted.one_of("type", "text", "grammar") == "text":
        return {"type": "text"}
    return {"type": "grammar", "grammar": wanted.others(frozenset({"type"}))}


def read_tool_choice(fields: Fields, original: Original) -> Any:
    """Which tools the model must use, as chat completions say it; none if that is left out.

    Parameters
    ----------
    fields: the request.
    original: notes what chat completions cannot express.
    """
    choice = fields.get("tool_choice")
    if choice is None:
        return None
    if isinstance(choice, str):
        return fields.one_of("tool_choice", "none", "auto", "required")
    wanted = fields.needed_object("tool_choice")
    if wanted.get("type") == "allowed_tools":
        mode = wanted.one_of("mode", "auto", "required")
        listed = [_named(tool, original) for tool in wanted.objects("tools")]
        return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}
    return _named(wanted, original)


def _named(tool: Fields, original: Original) -> dict[str, Any]:
    kind = tool.needed_text("type")
    if kind not in ("function", "custom"):
        what = f"cannot be {kind!r}: chat completions have functions and custom tools only"
        original.only_here(tool.unsupported("type", what))
        return dict(tool.values)
    return {"type": kind, kind: {"name": tool.needed_text("name")}}
