"""The conversation of a chat request as the input of the Responses API: a list of messages, calls and results.

System and developer messages stay where they are. An earlier answer is a message and one item for each call, after the
reasoning items that it came with (``reasoning_items``, which is where answers have them). ``reasoning_content`` has no
place in the input and is left out: the API accepts its own reasoning items only.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bpac.wire.originals import ORIGINAL
from bpac.wire.signers import own_thinking
from bpac.wire.tool_call_ids import RESPONSES_IDS, accepted
from bpac.wire.translating import NotExpressible, content_parts, joined_text, not_expressible

API = "OpenAI's Responses API"
_WITHOUT_ID = ("message", "function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output")

Item = dict[str, Any]


def write_input(messages: Iterable[Mapping[str, Any]], signer: str = "", originals: bool = False) -> list[Item]:
    """The input of a request.

    Parameters
    ----------
    messages: the messages of a chat.
    signer: the model, as marks in encrypted reasoning name it (default: none, if there are no marks).
    originals: whether the originals of the messages are used (default: no).

    >>> write_input([{"role": "user", "content": "6 · 7?"}])
    [{'type': 'message', 'role': 'user', 'content': '6 · 7?'}]
    """
    items: list[Item] = []
    custom: set[Any] = set()  # ids of calls whose tools are no functions
    for number, message in enumerate(messages):
        original = message.get(ORIGINAL, {}) if originals else {}
        found = original if isinstance(original, list) else _items(message, f"messages[{number}]", custom, originals)
        items += [sent for item in found if (sent := _sent(item, signer)) is not None]
    return items


def _sent(item: Item, signer: str) -> Item | None:
    """An item as it is sent: reasoning that the model has encrypted, and ids of calls that the API accepts.

    Other items have no ids: those of another server, or of the gateway, mean nothing to this one, and it refuses its
    own where the reasoning that belongs to them is missing.
    """
    if item.get("type") == "reasoning":
        return own_thinking(item, signer)
    if isinstance(item.get("call_id"), str):
        item = {**item, "call_id": accepted(item["call_id"], RESPONSES_IDS)}
    if item.get("type", "message") in _WITHOUT_ID:
        return {name: value for name, value in item.items() if name != "id"}
    return item


def _items(message: Mapping[str, Any], where: str, custom: set[Any], originals: bool) -> list[Item]:
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        call = message.get("tool_call_id")
        kind = "custom_tool_call_output" if call in custom else "function_call_output"
        return [{"type": kind, "call_id": call, "output": _content(content, where)}]
    if message.get("name") is not None:
        raise not_expressible("messages.name", API)
    if role == "assistant":
        calls = [_call(one, where) for one in message.get("tool_calls") or ()]
        custom |= {call["call_id"] for call in calls if call["type"] == "custom_tool_call"}
        return [*_answer(message, joined_text(content, where), bool(calls)), *calls]
    if role not in ("system", "developer", "user"):
        raise NotExpressible(f"{where}.role {role!r} cannot be expressed in {API}", "messages")
    written = _content(content, where, originals)
    if originals and written == []:  # its parts are in other originals
        return []
    own = message.get(ORIGINAL, {}) if originals else {}
    return [{"type": "message", "role": role, "content": written, **own}]


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


def _content(content: Any, where: str, originals: bool = False) -> str | list[Item]:
    if content is None or isinstance(content, str):
        return content or ""
    written: list[Item] = []
    for part in content_parts(content, where):
        written += part[ORIGINAL] if originals and ORIGINAL in part else [_part(part)]
    return written


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
