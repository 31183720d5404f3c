"""An estimate of the tokens of a prompt, for callers who ask before they send it.

Only the model's own tokenizer can count them, and a route has several models. The estimate is one token per 3.5 ASCII
characters and one per other character, some more per message, and a fixed number per image: about what tokenizers of
today need for English text and code, and more than they need for most other texts.
"""

import math
from collections.abc import Mapping
from typing import Any

from bpac.wire.json import to_json
from bpac.wire.originals import without_originals

ASCII_PER_TOKEN = 3.5
# What chat templates add to each message: its role, its beginning and its end.
PER_MESSAGE = 4
# An image of about 1000 × 1200 pixels.
PER_IMAGE = 1_600


def estimated_tokens(chat: Mapping[str, Any]) -> int:
    """The estimated tokens of the prompt of a chat request.

    >>> estimated_tokens({"messages": [{"role": "user", "content": "What is six times seven?"}]})
    11
    """
    chat = without_originals(chat)
    messages = chat["messages"]
    tokens = float(PER_MESSAGE * len(messages))
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        for part in parts:
            tokens += _of_text(part["text"]) if part["type"] == "text" else PER_IMAGE
        tokens += _of_text(message.get("reasoning_content") or "") + _of_json(message.get("tool_calls"))
    return math.ceil(tokens + _of_json(chat.get("tools")) + _of_json(chat.get("response_format")))


def _of_json(value: Any) -> float:
    return _of_text(to_json(value).decode()) if value else 0.0


def _of_text(text: str) -> float:
    # Each ASCII character is one byte in UTF-8, and the bytes above 0xBF begin the others.
    others = sum(character > "\x7f" for character in text) if not text.isascii() else 0
    return (len(text) - others) / ASCII_PER_TOKEN + others
