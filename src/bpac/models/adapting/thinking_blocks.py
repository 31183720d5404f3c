"""Thinking in earlier answers of a conversation, which only the model that wrote it accepts."""

from collections.abc import Mapping
from typing import Any

from bpac.answer import split_reasoning
from bpac.wire.originals import ORIGINAL

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
    if not isinstance(message, Mapping) or message.get("role") != "assistant":
        return message
    kept = {name: value for name, value in message.items() if name not in FIELDS}
    if isinstance(original := kept.get(ORIGINAL), list):
        kept[ORIGINAL] = _without_thinking(original)
    content = kept.get("content")
    if isinstance(content, list):
        # Servers refuse an empty list.
        kept["content"] = _without_thinking(content) or (None if kept.get("tool_calls") else "")
    elif isinstance(content, str) and content.lstrip().startswith("<think>"):
        kept["content"] = split_reasoning(content)[1]
        kept.pop(ORIGINAL, None)  # its text has the thinking, too
    return kept


def _without_thinking(parts: list[Any]) -> list[Any]:
    return [part for part in parts if not (isinstance(part, Mapping) and str(part.get("type")) in PARTS)]


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
