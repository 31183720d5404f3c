"""The models behind the gateway in the tests of clients: they answer by what a request asks for."""

import json
from collections.abc import Mapping
from typing import Any

from bpac.testing import Reply, Request
from tests.clients.programs.expected import adds, says, structured, sums_up


def answer(request: Request) -> Reply:
    """A tool call if tools are offered, JSON if it is asked for, a sum after the result of a tool, and else a text."""
    body, who = request.body, str(request.body["model"])
    last = body["messages"][-1]
    if last["role"] == "tool":
        return Reply(sums_up(who, _text(last["content"])))
    if body.get("tools") and body.get("tool_choice") != "none":
        return Reply("", tool_calls=(_call(body["tools"][0]["function"], who),), finish_reason="tool_calls")
    if body.get("response_format", {"type": "text"})["type"] != "text":
        return Reply(json.dumps(structured(who)))
    return Reply(says(who))


def _call(function: Mapping[str, Any], who: str) -> dict[str, Any]:
    """A call of the tool: the one that adds two numbers, or the one by which clients ask for structured output."""
    arguments = adds(who) if "a" in function["parameters"]["properties"] else structured(who)
    written = {"name": function["name"], "arguments": json.dumps(arguments)}
    return {"id": f"call_{who}", "type": "function", "function": written}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
