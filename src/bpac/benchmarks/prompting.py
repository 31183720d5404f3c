"""Prompting methods: what each adds to the messages and to the request."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from bpac.benchmarks.benchmark import Message
from bpac.errors import InputError

_DRAFT = (
    "Think step by step, but write each step down as a short draft of at most five words. "
    "Then give the final answer in the form the question asks for."
)
_FINISHED_REASONING = "<think>\nOkay, I think I have finished thinking.\n</think>\n\n"


def _unchanged(messages: Sequence[Message]) -> list[Message]:
    return list(messages)


def _with_short_steps(messages: Sequence[Message]) -> list[Message]:
    if messages and messages[0]["role"] == "system":
        # Many chat templates accept only one system message.
        first = {"role": "system", "content": f"{messages[0]['content']}\n\n{_DRAFT}"}
        return [first, *messages[1:]]
    return [{"role": "system", "content": _DRAFT}, *messages]


def _with_finished_reasoning(messages: Sequence[Message]) -> list[Message]:
    return [*messages, {"role": "assistant", "content": _FINISHED_REASONING}]


@dataclass(frozen=True, slots=True)
class PromptingMethod:
    """A prompting method.

    Parameters
    ----------
    name: the name of the method.
    apply: makes the messages to send from the messages that ask the question.
    request: further request fields that the method needs (default: none).
    """

    name: str
    apply: Callable[[Sequence[Message]], list[Message]]
    request: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


# The model must continue the last message instead of starting a new one.
_CONTINUE = MappingProxyType({"add_generation_prompt": False, "continue_final_message": True})

METHODS: dict[str, PromptingMethod] = {
    method.name: method
    for method in (
        PromptingMethod("direct", _unchanged),
        PromptingMethod("chain-of-draft", _with_short_steps),
        PromptingMethod("nothinking", _with_finished_reasoning, _CONTINUE),
    )
}


def named_method(name: str) -> PromptingMethod:
    """The method with a name; ``plain`` is another name for ``direct``.

    >>> named_method("nothinking").apply([{"role": "user", "content": "1 + 1?"}])[-1]["role"]
    'assistant'
    """
    key = name.strip().lower().replace("_", "-")
    method = METHODS.get("direct" if key == "plain" else key)
    if method is None:
        raise InputError(f"the prompting method {name!r} is not known; use one of {', '.join(METHODS)}")
    return method
