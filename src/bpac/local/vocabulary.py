"""The tokens of the local model: one for each byte, and a few special tokens that no text can contain."""

import re
from collections.abc import Mapping, Sequence

END = "<|end|>"
SYSTEM = "<|system|>"
USER = "<|user|>"
ASSISTANT = "<|assistant|>"
THINK = "<think>"
END_THINK = "</think>"

# The order gives the ids after the 256 bytes, so a change requires a new training.
SPECIAL = (END, SYSTEM, USER, ASSISTANT, THINK, END_THINK)
SIZE = 256 + len(SPECIAL)
IDS = {token: 256 + index for index, token in enumerate(SPECIAL)}

# With thinking off, the answer begins with empty reasoning; with thinking on, the model begins its reasoning itself.
# llama.cpp uses the part about earlier reasoning to separate reasoning from answers: without it, every answer is
# returned as reasoning.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|' + message.role + '|>' -}}"
    "{%- if message.reasoning_content -%}{{- '<think>' + message.reasoning_content + '</think>' -}}{%- endif -%}"
    "{{- message.content + '<|end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{- '<|assistant|>' -}}"
    "{%- if enable_thinking is defined and enable_thinking is false -%}{{- '<think></think>' -}}{%- endif -%}"
    "{%- endif -%}"
)


def encode(text: str) -> list[int]:
    """The tokens of a plain text, which are its bytes.

    >>> encode("7 + 8")
    [55, 32, 43, 32, 56]
    """
    return list(text.encode())


def decode(ids: Sequence[int]) -> str:
    """The text of tokens, with special tokens written out.

    >>> decode([*encode("15"), IDS[END]])
    '15<|end|>'
    """
    parts = (SPECIAL[token - 256].encode() if token >= 256 else bytes([token]) for token in ids)
    return b"".join(parts).decode(errors="replace")


def encode_prompt(messages: Sequence[Mapping[str, str]], thinking: bool) -> list[int]:
    """The tokens of a chat, up to where the model continues.

    Parameters
    ----------
    messages: the messages; a last message of the assistant is continued.
    thinking: whether the model thinks before it answers.

    >>> decode(encode_prompt([{"role": "user", "content": "7 + 8"}], thinking=False))
    '<|user|>7 + 8<|end|><|assistant|><think></think>'
    """
    continued = messages[-1]["content"] if messages[-1]["role"] == "assistant" else ""
    ids = []
    for message in messages[:-1] if continued else messages:
        ids += [IDS[f"<|{message['role']}|>"], *encode(message["content"]), IDS[END]]
    empty_reasoning = [] if thinking else [IDS[THINK], IDS[END_THINK]]
    return [*ids, IDS[ASSISTANT], *empty_reasoning, *_encode_with_tags(continued)]


def encode_reply(reasoning: str | None, answer: str) -> list[int]:
    """The tokens of the reply that the model is trained on.

    Parameters
    ----------
    reasoning: what it writes while it thinks; none if it answers at once.
    answer: the answer.

    >>> decode(encode_reply("7+8=15", "15"))
    '<think>7+8=15</think>15<|end|>'
    """
    written = [] if reasoning is None else [IDS[THINK], *encode(reasoning), IDS[END_THINK]]
    return [*written, *encode(answer), IDS[END]]


def _encode_with_tags(text: str) -> list[int]:
    """The tokens of a text in which the tags of the reasoning are special tokens, as in llama.cpp."""
    ids: list[int] = []
    for part in re.split(f"({THINK}|{END_THINK})", text):
        ids += [IDS[part]] if part in IDS else encode(part)
    return ids


def byte_names() -> list[str]:
    """A printable character for each byte, as in byte-level BPE files; bytes that are not printable move to 256 and up.

    >>> byte_names()[ord("a")], byte_names()[ord(" ")]
    ('a', 'Ġ')
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    names, moved = [], 0
    for byte in range(256):
        names.append(chr(byte if byte in printable else 256 + moved))
        moved += byte not in printable
    return names
