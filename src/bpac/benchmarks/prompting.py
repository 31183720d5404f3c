"""Ways of prompting, as data: what is added to the messages and to the request."""

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
_NO_THOUGHT = "<think>\nOkay, I think I have finished thinking.\n</think>\n\n"


def _as_they_are(messages: Sequence[Message]) -> list[Message]:
    return list(messages)


def _with_short_steps(messages: Sequence[Message]) -> list[Message]:
    if messages and messages[0]["role"] == "system":
        # Many chat templates take one system message only.
        first = {"role": "system", "content": f"{messages[0]['content']}\n\n{_DRAFT}"}
        return [first, *messages[1:]]
    return [{"role": "system", "content": _DRAFT}, *messages]


def _with_a_finished_thought(messages: Sequence[Message]) -> list[Message]:
    return [*messages, {"role": "assistant", "content": _NO_THOUGHT}]


@dataclass(frozen=True, slots=True)
class PromptingMethod:
    """A way of prompting.

    Parameters
    ----------
    name: what it is called.
    apply: makes the messages to send of the messages that ask.
    request: fields it needs in the request besides the messages.
    """

    name: str
    apply: Callable[[Sequence[Message]], list[Message]]
    request: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


# The model has to go on with our message rather than begin its own.
_CONTINUE = MappingProxyType({"add_generation_prompt": False, "continue_final_message": True})

METHODS: dict[str, PromptingMethod] = {
    method.name: method
    for method in (
        PromptingMethod("direct", _as_they_are),
        PromptingMethod("chain-of-draft", _with_short_steps),
        PromptingMethod("nothinking", _with_a_finished_thought, _CONTINUE),
    )
}


def named_method(name: str) -> PromptingMethod:
    """The method of that name; ``plain`` is another name of ``direct``.

    >>> named_method("nothinking").apply([{"role": "user", "content": "1 + 1?"}])[-1]["role"]
    'assistant'
    """
    key = name.strip().lower().replace("_", "-")
    method = METHODS.get("direct" if key == "plain" else key)
    if method is None:
        raise InputError(f"method {name!r} is not known; give one of {', '.join(METHODS)}")
    return method
