"""The tokens of the local model: one for each byte, and a few special tokens that no text can contain."""

from collections.abc import Sequence

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


def encode_prompt(question: str, thinking: bool) -> list[int]:
    """The tokens of a chat with one question, up to where the model continues.

    Parameters
    ----------
    question: the user's question.
    thinking: whether the model thinks before it answers.

    >>> decode(encode_prompt("7 + 8", thinking=False))
    '<|user|>7 + 8<|end|><|assistant|><think></think>'
    """
    empty_reasoning = [] if thinking else [IDS[THINK], IDS[END_THINK]]
    return [IDS[USER], *encode(question), IDS[END], IDS[ASSISTANT], *empty_reasoning]


def encode_reply(steps: str, answer: str, thinking: bool) -> list[int]:
    """The tokens of the reply that the model is trained on.

    Parameters
    ----------
    steps: the steps that it writes while it thinks.
    answer: the answer.
    thinking: whether it thinks before it answers.

    >>> decode(encode_reply("7+8=15", "15", thinking=True))
    '<think>7+8=15</think>15<|end|>'
    """
    reasoning = [IDS[THINK], *encode(steps), IDS[END_THINK]] if thinking else []
    return [*reasoning, *encode(answer), IDS[END]]


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
