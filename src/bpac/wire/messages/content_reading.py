"""The content of messages: texts, images, documents, thinking, tool calls and their results."""

from bpac.wire.chat_messages import Conversation, function_call, text_part
from bpac.wire.json import to_json
from bpac.wire.originals import ORIGINAL, Part, short
from bpac.wire.request_fields import Fields
from bpac.wire.signers import is_marked

_BLOCKS = "a chat has texts, images, documents, thinking, tool calls and their results"
# What the text of a failed tool's result begins with: results in a chat have no mark for that.
_ERROR = "Error: "


def read_user(message: Fields, conversation: Conversation) -> None:
    """Add a message of the user: the results of tools first, which answer the calls before it."""
    if isinstance(content := message.get("content"), str):
        conversation.spoken("user", content)
        return
    parts: list[Part] = []
    for block in message.objects("content"):
        if block.needed_text("type") == "tool_result":
            parts_of_result = _result(block, conversation)
            conversation.result(block.needed_text("tool_use_id"), parts_of_result, dict(block.values))
        else:
            parts += read_parts(block, conversation)
    if parts:
        conversation.spoken("user", short(parts))


def read_answer(message: Fields, conversation: Conversation) -> None:
    """Add an earlier answer of the model."""
    if isinstance(content := message.get("content"), str):
        conversation.said(content)
        conversation.kept(text_part(content))
        return
    texts: list[str] = []
    for block in message.objects("content"):
        kind = block.needed_text("type")
        if kind == "text":
            texts.append(block.needed_text("text"))
        elif kind == "thinking":
            # Servers of chats that sign their thinking want it back as it was; all other signatures are not theirs.
            signed = dict(block.values) if block.text("signature") and not is_marked(block.values) else None
            conversation.thought(block.needed_text("thinking"), "thinking_blocks", signed)
        elif kind == "redacted_thinking":
            block.needed_text("data")
            conversation.thought("", "thinking_blocks", None if is_marked(block.values) else dict(block.values))
        elif kind == "tool_use":
            arguments = to_json(block.needed_object("input").values).decode()
            conversation.called(function_call(block.needed_text("id"), block.needed_text("name"), arguments))
        else:
            conversation.only_here(block.unsupported("type", f"cannot be {kind!r} in an answer: {_BLOCKS}"))
        conversation.kept(dict(block.values))
    if texts:
        conversation.said("".join(texts))


def _result(block: Fields, conversation: Conversation) -> list[Part]:
    content = block.get("content")
    parts = [text_part(content)] if isinstance(content, str) else []
    if not isinstance(content, str):
        for inner in block.objects("content"):
            parts += read_parts(inner, conversation)
    if not block.flag("is_error"):
        return parts
    first = next((part for part in parts if part["type"] == "text"), None)
    if first is None:
        return [text_part(_ERROR.strip()), *parts]
    if not first["text"].lower().startswith("error"):
        first["text"] = _ERROR + first["text"]
    return parts


def read_parts(block: Fields, conversation: Conversation) -> list[Part]:
    """The parts of a chat's content that a block is, the first one with the block as its original."""
    kind = block.needed_text("type")
    if kind == "text":
        text = text_part(block.needed_text("text"))
        return [text if block.values.keys() == text.keys() else {**text, ORIGINAL: [block.values]}]
    if kind == "image":
        parts: list[Part] = [{"type": "image_url", "image_url": {"url": _image(block.needed_object("source"))}}]
    elif kind == "document":
        parts = _document(block, conversation)
    elif kind == "container_upload":
        raise block.unsupported("type", "cannot be 'container_upload': files are not kept here")
    else:
        conversation.only_here(block.unsupported("type", f"cannot be {kind!r}: {_BLOCKS}"))
        parts = [{"type": kind}]
    return [{**part, ORIGINAL: [block.values] if part is parts[0] else []} for part in parts]


def _image(source: Fields) -> str:
    kind = source.needed_text("type")
    if kind == "base64":
        return f"data:{source.needed_text('media_type')};base64,{source.needed_text('data')}"
    if kind == "url":
        return source.needed_text("url")
    raise source.unsupported("type", f"cannot be {kind!r}: files are not kept here; send the image as base64 or url")


def _document(block: Fields, conversation: Conversation) -> list[Part]:
    citations = block.object("citations")
    if citations is not None and citations.flag("enabled"):
        conversation.only_here(citations.unsupported("enabled", "cannot be true: chat completions cite no documents"))
    title, context = block.text("title"), block.text("context")
    source = block.needed_object("source")
    kind = source.needed_text("type")
    before = [text_part(text) for text in (title, context) if text]
    if kind == "text":
        return [*before, text_part(source.needed_text("data"))]
    if kind == "content":
        if isinstance(content := source.needed("content"), str):
            return [*before, text_part(content)]
        inner = [part for one in source.objects("content") for part in read_parts(one, conversation)]
        return [*before, *inner] or [text_part("")]
    if kind == "base64":
        data = f"data:{source.needed_text('media_type')};base64,{source.needed_text('data')}"
        file = {"type": "file", "file": {"filename": title or "document.pdf", "file_data": data}}
        return [*([text_part(context)] if context else []), file]
    error = source.unsupported("type", f"cannot be {kind!r}: send the document as text or base64")
    if kind != "url":  # a file that was uploaded with the account of the gateway may be anybody's
        raise error
    conversation.only_here(error)
    return [{"type": "document"}]
