"""The items of a request's ``input``: messages, reasoning, tool calls and their results."""

from collections.abc import Iterable
from typing import Any

from bpac.wire.chat_messages import Conversation, function_call, text_part
from bpac.wire.originals import ORIGINAL, Part, short
from bpac.wire.request_fields import Fields
from bpac.wire.signers import is_marked

# The role of instructions that servers understand; OpenAI takes it for its ``developer``.
_ROLES = {"user": "user", "system": "system", "developer": "system"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_PLAIN_FIELDS = frozenset({"type", "role", "content", "id"})


def read_items(items: Iterable[Fields], conversation: Conversation) -> None:
    """Add items to a conversation; ``RequestError`` if one of them cannot be read or expressed."""
    for item in items:
        kind = item.text("type") or "message"
        if kind == "message":
            _read_message(item, conversation)
        elif kind == "reasoning":
            _read_reasoning(item, conversation)
        elif kind == "function_call":
            name, arguments = item.needed_text("name"), item.needed_text("arguments")
            conversation.called(function_call(item.needed_text("call_id"), name, arguments))
        elif kind == "custom_tool_call":
            custom = {"name": item.needed_text("name"), "input": item.needed_text("input")}
            conversation.called({"id": item.needed_text("call_id"), "type": "custom", "custom": custom})
        elif kind in _OUTPUTS:
            parts = _parts(item, "output", conversation)
            conversation.result(item.needed_text("call_id"), parts, dict(item.values))
        elif kind == "item_reference":
            raise item.unsupported("", "refers to a kept item, and this gateway keeps none: send the item itself")
        else:
            what = f"cannot be {kind!r}: chat completions have messages, reasoning, function calls and their results"
            conversation.only_here(item.unsupported("type", what))
        if kind not in _OUTPUTS and not (kind == "message" and item.get("role") != "assistant"):
            conversation.kept(dict(item.values))


def _read_message(item: Fields, conversation: Conversation) -> None:
    role = item.one_of("role", "user", "assistant", "system", "developer")
    if role != "assistant":
        fields = item.others(_PLAIN_FIELDS) | ({"role": role} if role == "developer" else {})
        conversation.spoken(_ROLES[role], short(_parts(item, "content", conversation)), fields)
    elif isinstance(content := item.needed("content"), str):
        conversation.said(content)
    else:
        texts, refusals = [], []
        for part in item.objects("content"):
            if part.needed_text("type") == "refusal":
                refusals.append(part.needed_text("refusal"))
            elif part.get("type") in ("output_text", "input_text", "text"):
                texts.append(part.needed_text("text"))
            else:
                conversation.only_here(part.unsupported("type", "must be output_text or refusal in an answer"))
        conversation.said("".join(texts), "".join(refusals))


def _read_reasoning(item: Fields, conversation: Conversation) -> None:
    texts = [part.needed_text("text") for name in ("summary", "content") for part in item.objects(name)]
    kept: dict[str, Any] | None = None
    if item.text("encrypted_content") is not None and not is_marked(item.values):
        # Without its id: that of a streamed item is the gateway's, and servers read the encrypted content only.
        kept = {name: value for name, value in item.values.items() if name in ("type", "summary", "encrypted_content")}
    conversation.thought("\n\n".join(text for text in texts if text), "reasoning_items", kept)


def _parts(item: Fields, name: str, conversation: Conversation) -> list[Part]:
    """The parts of a content, which may also be one text."""
    content = item.needed(name)
    if isinstance(content, str):
        return [text_part(content)]
    return [_part(part, conversation) for part in item.objects(name)]


def _part(part: Fields, conversation: Conversation) -> Part:
    kind = part.needed_text("type")
    if kind in ("input_text", "text", "output_text"):
        text = text_part(part.needed_text("text"))
        return text if part.values.keys() == text.keys() else {**text, ORIGINAL: [part.values]}
    return {**_other_part(kind, part, conversation), ORIGINAL: [part.values]}


def _other_part(kind: str, part: Fields, conversation: Conversation) -> Part:
    if kind == "input_image":
        if part.get("image_url") is None:
            raise part.unsupported("", "needs an image_url: files are not kept here; send the image as a data URL")
        image = {"url": part.needed_text("image_url")}
        if (detail := part.text("detail")) is not None:
            image["detail"] = detail
        return {"type": "image_url", "image_url": image}
    if kind == "input_file":
        if part.get("file_url") is not None:
            error = part.unsupported("file_url", "cannot be used in chat completions: send the file as file_data")
            conversation.only_here(error)
            return {"type": "file", "file": {}}
        file = {name: part.needed_text(name) for name in ("file_data", "file_id", "filename") if part.get(name)}
        if not file.keys() & {"file_data", "file_id"}:
            raise part.wrong("file_data", "is missing", "missing")
        return {"type": "file", "file": file}
    if kind == "input_audio":
        return {"type": "input_audio", "input_audio": part.needed_object("input_audio").values}
    what = f"cannot be {kind!r}: chat completions have texts, images, files and audio"
    conversation.only_here(part.unsupported("type", what))
    return {"type": kind}
