"""Thinking in earlier answers of a conversation, which only the model that wrote it accepts."""

from collections.abc import Callable, Mapping
from typing import Any

from bpac.answer import split_reasoning
from bpac.wire.originals import ORIGINAL
from bpac.wire.signers import is_marked

# Fields of a message, and types of parts of its content, that hold thinking.
FIELDS = frozenset({
    "reasoning", "reasoning_content", "reasoning_details", "reasoning_items", "thinking", "thinking_blocks",
})  # fmt: skip
PARTS = frozenset({"thinking", "redacted_thinking", "reasoning"})


def without_thinking(message: Any) -> Any:
    """A message without thinking; messages that are not a model's answer stay as they are.

    >>> without_thinking({"role": "assistant", "content": "<think>6 · 7</think>42", "reasoning_content": "6 · 7"})
    {'role': 'assistant', 'content': '42'}
    """
    return _changed(message, lambda thinking: False)


def only_marked_thinking(message: Any) -> Any:
    """A message with the thinking of which it is known who signed it.

    The model gets its own of that: what others have signed is left out when the request is written.

    >>> signed = [{"type": "thinking", "thinking": "", "signature": one} for one in ("EqQB~0123abcd", "EqQB")]
    >>> len(only_marked_thinking({"role": "assistant", "content": "42", "thinking_blocks": signed})["thinking_blocks"])
    1
    """
    return _changed(message, is_marked)


def _changed(message: Any, keeps: Callable[[Mapping[str, Any]], bool]) -> Any:
    """A message with the thinking that is to be kept."""
    if not isinstance(message, Mapping) or message.get("role") != "assistant":
        return message
    kept = {name: value for name, value in message.items() if name not in FIELDS}
    for name in ("thinking_blocks", "reasoning_items"):
        listed = message.get(name)
        if isinstance(listed, list) and (thinking := [one for one in listed if _is_thinking(one) and keeps(one)]):
            kept[name] = thinking
    for name in (ORIGINAL, "content"):
        if isinstance(parts := kept.get(name), list):
            kept[name] = [part for part in parts if not _is_thinking(part) or keeps(part)]
    content = kept.get("content")
    if content == []:  # which servers refuse
        kept["content"] = None if kept.get("tool_calls") else ""
    elif isinstance(content, str) and content.lstrip().startswith("<think>"):
        kept["content"] = split_reasoning(content)[1]
        kept.pop(ORIGINAL, None)  # its text has the thinking, too
    return kept


def _is_thinking(part: Any) -> bool:
    return isinstance(part, Mapping) and str(part.get("type")) in PARTS


def filled_thinking(message: Any) -> Any:
    """A message with ``reasoning_content``: an empty one where a model that does not think has left none.

    Some servers refuse a conversation in which an earlier answer lacks it.

    >>> filled_thinking({"role": "assistant", "content": "42"})
    {'role': 'assistant', 'content': '42', 'reasoning_content': ''}
    """
    if not isinstance(message, Mapping) or message.get("role") != "assistant":
        return message
    if isinstance(message.get("reasoning_content"), str):
        return message
    return {**message, "reasoning_content": ""}
