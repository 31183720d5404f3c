"""The conversation of a chat request as the input of the Responses API: a list of messages, calls and results.

System and developer messages stay where they are. An earlier answer is a message and one item for each call, after the
reasoning items that it came with (``reasoning_items``, which is where answers have them). ``reasoning_content`` has no
place in the input and is left out: the API accepts its own reasoning items only.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bpac.wire.translating import NotExpressible, content_parts, joined_text, not_expressible

API = "OpenAI's Responses API"

Item = dict[str, Any]


def write_input(messages: Iterable[Mapping[str, Any]]) -> list[Item]:
    """The input of a request.

    >>> write_input([{"role": "user", "content": "6 · 7?"}])
    [{'type': 'message', 'role': 'user', 'content': '6 · 7?'}]
    """
    items: list[Item] = []
    custom: set[Any] = set()  # ids of calls whose tools are no functions
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            call = message.get("tool_call_id")
            kind = "custom_tool_call_output" if call in custom else "function_call_output"
            items.append({"type": kind, "call_id": call, "output": _content(content, where)})
            continue
        if message.get("name") is not None:
            raise not_expressible("messages.name", API)
        if role == "assistant":
            calls = [_call(one, where) for one in message.get("tool_calls") or ()]
            custom |= {call["call_id"] for call in calls if call["type"] == "custom_tool_call"}
            items += _answer(message, joined_text(content, where), bool(calls))
            items += calls
        elif role in ("system", "developer", "user"):
            items.append({"type": "message", "role": role, "content": _content(content, where)})
        else:
            raise NotExpressible(f"{where}.role {role!r} cannot be expressed in {API}", "messages")
    return items


def _answer(message: Mapping[str, Any], text: str, has_calls: bool) -> list[Item]:
    if message.get("audio") is not None:
        raise not_expressible("audio", API)
    listed = message.get("reasoning_items")
    # Nothing but reasoning: an item may also refer to one that the server has stored for another caller.
    items = [dict(item) for item in listed if _is_reasoning(item)] if isinstance(listed, list) else []
    text = text or str(message.get("refusal") or "")
    if text or not has_calls:
        items.append({"type": "message", "role": "assistant", "content": text})
    return items


def _is_reasoning(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("type") == "reasoning"


def _call(call: Mapping[str, Any], where: str) -> Item:
    for kind, field, has in (("function_call", "function", "arguments"), ("custom_tool_call", "custom", "input")):
        given = call.get(field)
        if isinstance(given, Mapping):
            text = given.get(has)
            return {
                "type": kind,
                "call_id": call.get("id"),
                "name": given.get("name"),
                has: "" if text is None else text,
            }
    raise NotExpressible(f"{where}.tool_calls has a call that is neither of a function nor custom", "tool_calls")


def _content(content: Any, where: str) -> str | list[Item]:
    if content is None or isinstance(content, str):
        return content or ""
    return [_part(part) for part in content_parts(content, where)]


def _part(part: Mapping[str, Any]) -> Item:
    kind = part.get("type")
    if kind in ("text", "refusal"):
        return {"type": "input_text", "text": part.get(kind)}
    if kind == "image_url":
        given = part.get("image_url")
        image = given if isinstance(given, Mapping) else {"url": given}
        return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail") or "auto"}
    if kind == "file":
        return {"type": "input_file", **(part.get("file") or {})}
    if kind == "input_audio":
        raise not_expressible("input_audio", API, "send a transcript instead")
    return dict(part)  # perhaps a part of the API itself
