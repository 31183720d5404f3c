"""The conversation of a chat request as the Messages API has it: a system prompt and alternating turns.

1. System messages at the beginning are the system prompt. Later ones stay where they are.
2. Results of tools are blocks of the user's turn that follows the calls. Turns of one role that follow each other are
   one turn, so that the results of parallel calls are in one message, as the API demands.
3. Thinking is sent only if it has the signature of the API: in ``thinking_blocks`` of a message, which is where answers
   have it, or as parts of its content. ``reasoning_content`` has no signature and is left out.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from bpac.wire.json import from_strict_json
from bpac.wire.originals import ORIGINAL
from bpac.wire.signers import own_thinking
from bpac.wire.tool_call_ids import MESSAGES_IDS, accepted
from bpac.wire.translating import NotExpressible, content_parts, not_expressible

API = "Anthropic's Messages API"

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+-]+=[\w.+-]+)*;base64,", re.ASCII)
_THINKING = ("thinking", "redacted_thinking")
# The fields with ids of tool calls that callers may have from any server.
_IDS = {"tool_use": "id", "tool_result": "tool_use_id"}

Block = dict[str, Any]


def write_history(
    messages: Iterable[Mapping[str, Any]], signer: str = "", originals: bool = False
) -> tuple[str | list[Block], list[dict[str, Any]]]:
    """The system prompt, empty if there is none, and the turns.

    Parameters
    ----------
    messages: the messages of a chat.
    signer: the model, as marks in signatures name it (default: none, if there are no marks).
    originals: whether the originals of the messages are used (default: no).

    >>> write_history([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "6 · 7?"}])
    ('Be brief.', [{'role': 'user', 'content': '6 · 7?'}])
    """
    system: list[Block] = []
    turns: list[tuple[str, list[Block]]] = []
    for number, message in enumerate(messages):
        role, found = _turn(message, f"messages[{number}]", originals)
        blocks = [sent for block in found if (sent := _sent(block, signer)) is not None]
        if role == "system" and not turns:
            system += blocks
        elif turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:  # an empty answer in the history says nothing, and is refused
            turns.append((role, blocks))
    return _simple(system) if system else "", [{"role": role, "content": _simple(blocks)} for role, blocks in turns]


def continues_without_thinking(turns: list[dict[str, Any]]) -> bool:
    """Whether the model goes on with a turn that another model began: with calls of tools, and no thinking before them.

    With a budget for thinking, the API refuses such a turn.

    >>> use = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "now", "input": {}}]}
    >>> continues_without_thinking([use, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}])
    True
    """
    if len(turns) < 2 or turns[-2]["role"] != "assistant" or turns[-1]["role"] != "user":
        return False
    said, results = (turn["content"] if isinstance(turn["content"], list) else [] for turn in turns[-2:])
    called = any(block.get("type") == "tool_use" for block in said)
    answered = any(block.get("type") == "tool_result" for block in results)
    return called and answered and said[0].get("type") not in _THINKING


def _sent(block: Block, signer: str) -> Block | None:
    """A block as it is sent: thinking that the model has signed, ids that the API accepts, and no empty texts."""
    kind = block.get("type")
    if kind in _THINKING:
        return own_thinking(block, signer)
    if kind == "text" and block.get("text") == "" and "cache_control" not in block:
        return None  # refused by the API
    if (field := _IDS.get(str(kind))) is not None and isinstance(block.get(field), str):
        return {**block, field: accepted(block[field], MESSAGES_IDS)}
    return block


def _simple(blocks: list[Block]) -> str | list[Block]:
    """One plain text as a text: that is how most requests are written."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return str(blocks[0]["text"])
    return blocks


def _turn(message: Mapping[str, Any], where: str, originals: bool) -> tuple[str, list[Block]]:
    role = message.get("role")
    if originals and isinstance(original := message.get(ORIGINAL), list):
        return "assistant" if role == "assistant" else "user", original
    if role == "tool":
        return "user", [_tool_result(message, where)]
    if message.get("name") is not None:
        raise not_expressible("messages.name", API)
    parts = content_parts(message.get("content"), where)
    if role == "assistant":
        if message.get("refusal"):
            parts = [*parts, {"type": "refusal", "refusal": message["refusal"]}]
        return role, [*_thinking(message), *_answered(parts, where), *_calls(message, where)]
    blocks: list[Block] = []
    for part in parts:
        blocks += part[ORIGINAL] if originals and ORIGINAL in part else [_block(part, where)]
    if role in ("system", "developer"):
        return "system", blocks
    if role == "user":
        return role, blocks
    raise NotExpressible(f"{where}.role {role!r} cannot be expressed in {API}", "messages")


def _thinking(message: Mapping[str, Any]) -> list[Block]:
    listed = message.get("thinking_blocks")
    return [dict(block) for block in listed if _is_thinking(block)] if isinstance(listed, list) else []


def _is_thinking(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") in _THINKING


def _answered(parts: list[Mapping[str, Any]], where: str) -> list[Block]:
    blocks: list[Block] = []
    for part in parts:
        kind = part.get("type")
        if kind in _THINKING:
            blocks.append(dict(part))
        elif kind == "refusal":
            blocks.append({"type": "text", "text": part.get("refusal")})
        elif kind != "text" or part.get("text"):  # empty texts are refused
            blocks.append(_block(part, where))
    return blocks


def _calls(message: Mapping[str, Any], where: str) -> list[Block]:
    blocks: list[Block] = []
    for number, call in enumerate(message.get("tool_calls") or ()):
        function = call.get("function")
        if not isinstance(function, Mapping):
            raise NotExpressible(f"{where}.tool_calls[{number}] is no call of a function, as {API} needs", "tool_calls")
        blocks.append(
            {
                "type": "tool_use",
                "id": call.get("id"),
                "name": function.get("name"),
                "input": _arguments(function.get("arguments"), f"{where}.tool_calls[{number}].function.arguments"),
            }
        )
    return blocks


def _arguments(text: Any, where: str) -> dict[str, Any]:
    if text in (None, ""):  # a call without arguments, as some servers write it
        return {}
    try:
        value = from_strict_json(text.encode())
    except (ValueError, AttributeError):
        value = None
    if not isinstance(value, dict):
        raise NotExpressible(f"{where} must be a JSON object to be expressed in {API}", "tool_calls")
    return value


def _tool_result(message: Mapping[str, Any], where: str) -> Block:
    result: Block = {"type": "tool_result", "tool_use_id": message.get("tool_call_id")}
    if blocks := [_block(part, where) for part in content_parts(message.get("content"), where)]:
        result["content"] = _simple(blocks)
    if message.get("is_error") is True:
        result["is_error"] = True
    return result


def _block(part: Mapping[str, Any], where: str) -> Block:
    kind = part.get("type")
    if kind == "text":
        block: Block = {"type": "text", "text": part.get("text")}
    elif kind == "image_url":
        given = part.get("image_url")
        url = given.get("url") if isinstance(given, Mapping) else given
        block = {"type": "image", "source": _source(url, where)}
    elif kind == "file":
        block = _document(part.get("file") or {}, where)
    elif kind == "input_audio":
        raise not_expressible("input_audio", API, "send a transcript instead")
    else:  # perhaps a block of the API itself
        return dict(part)
    if part.get("cache_control") is not None:
        block["cache_control"] = part["cache_control"]
    return block


def _source(url: Any, where: str) -> Block:
    if isinstance(url, str):
        if found := _DATA_URL.match(url):
            return {"type": "base64", "media_type": found[1].lower(), "data": url[found.end() :]}
        if url.startswith(("http://", "https://")):
            return {"type": "url", "url": url}
    raise NotExpressible(f"{where}: an image needs an address (https://…) or data (data:image/…;base64,…)", "image_url")


def _document(file: Mapping[str, Any], where: str) -> Block:
    if isinstance(file.get("file_id"), str):
        source: Block = {"type": "file", "file_id": file["file_id"]}
    else:
        data = str(file.get("file_data") or "")
        found = _DATA_URL.match(data)
        if found is None or found[1].lower() != "application/pdf":
            raise not_expressible("file", API, f"{where} may have PDF files (data:application/pdf;base64,…) only")
        source = {"type": "base64", "media_type": "application/pdf", "data": data[found.end() :]}
    titled = {"title": file["filename"]} if isinstance(file.get("filename"), str) else {}
    return {"type": "document", "source": source, **titled}
