"""The tokens of the local model: one for each byte, and a few that no byte sequence can spell."""

from collections.abc import Sequence

END = "<|end|>"
SYSTEM = "<|system|>"
USER = "<|user|>"
ASSISTANT = "<|assistant|>"
THINK = "<think>"
THOUGHT = "</think>"

# The order is the order of their ids, after the 256 bytes: to change it is to train again.
SPECIAL = (END, SYSTEM, USER, ASSISTANT, THINK, THOUGHT)
SIZE = 256 + len(SPECIAL)
IDS = {token: 256 + index for index, token in enumerate(SPECIAL)}

# With thinking off, an empty thought is put in the model's mouth; with thinking on it opens one itself.
# llama.cpp learns from the way past thoughts are written how to tell a thought from an answer: without that part
# it returns every answer as a thought.
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
    """The tokens of plain text: its bytes.

    >>> encode("7 + 8")
    [55, 32, 43, 32, 56]
    """
    return list(text.encode())


def decode(ids: Sequence[int]) -> str:
    """The text of tokens, special ones written out.

    >>> decode([*encode("15"), IDS[END]])
    '15<|end|>'
    """
    parts = (SPECIAL[token - 256].encode() if token >= 256 else bytes([token]) for token in ids)
    return b"".join(parts).decode(errors="replace")


def encode_prompt(question: str, thinking: bool) -> list[int]:
    """The tokens of a chat with one question in it, up to where the model goes on.

    Parameters
    ----------
    question: what the user asks.
    thinking: whether the model is to think before it answers.

    >>> decode(encode_prompt("7 + 8", thinking=False))
    '<|user|>7 + 8<|end|><|assistant|><think></think>'
    """
    silence = [] if thinking else [IDS[THINK], IDS[THOUGHT]]
    return [IDS[USER], *encode(question), IDS[END], IDS[ASSISTANT], *silence]


def encode_reply(steps: str, answer: str, thinking: bool) -> list[int]:
    """The tokens that the model is taught to go on with.

    Parameters
    ----------
    steps: what it writes down while it thinks.
    answer: the answer.
    thinking: whether it thinks.

    >>> decode(encode_reply("7+8=15", "15", thinking=True))
    '<think>7+8=15</think>15<|end|>'
    """
    thought = [IDS[THINK], *encode(steps), IDS[THOUGHT]] if thinking else []
    return [*thought, *encode(answer), IDS[END]]


def byte_names() -> list[str]:
    """A printable name for each byte, as byte-level BPE files write them: bytes with no glyph are moved up from 256.

    >>> byte_names()[ord("a")], byte_names()[ord(" ")]
    ('a', 'Ġ')
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    names, moved = [], 0
    for byte in range(256):
        names.append(chr(byte if byte in printable else 256 + moved))
        moved += byte not in printable
    return names
