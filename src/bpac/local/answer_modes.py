"""The four ways in which the local model answers a question; training, measurements and tests use the same prompts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bpac.benchmarks.benchmark import Message
from bpac.benchmarks.prompting import METHODS, PromptingMethod
from bpac.local.worked_question import WorkedQuestion

# Greedy decoding, with enough tokens for the longest reasoning that the model was trained on.
BODY: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 400}


@dataclass(frozen=True, slots=True)
class AnswerMode:
    """A way to answer: what is sent to the server, and the reasoning that the model writes.

    Parameters
    ----------
    name: the name of the mode.
    method: the prompting method, as in ``bpac collect --method``.
    thinking: whether the request leaves thinking on.
    reasoning: the reasoning that the model learned to write for a question (default: none, it answers at once).
    """

    name: str
    method: PromptingMethod
    thinking: bool
    reasoning: Callable[[WorkedQuestion], str] | None = None

    def messages(self, text: str) -> list[Message]:
        """The messages that ask a question.

        >>> [message["role"] for message in MODES["chain-of-draft"].messages("7 + 8")]
        ['system', 'user']
        """
        return self.method.apply([{"role": "user", "content": text}])

    def body(self) -> dict[str, Any]:
        """The request fields besides the messages and those of the prompting method.

        >>> MODES["direct"].body()
        {'temperature': 0.0, 'max_tokens': 400, 'chat_template_kwargs': {'enable_thinking': False}}
        """
        return {**BODY, "chat_template_kwargs": {"enable_thinking": self.thinking}}


def _steps(question: WorkedQuestion) -> str:
    return question.steps


def _draft(question: WorkedQuestion) -> str:
    return question.draft


MODES: Mapping[str, AnswerMode] = {
    mode.name: mode
    for mode in (
        AnswerMode("direct", METHODS["direct"], thinking=False),
        AnswerMode("nothinking", METHODS["nothinking"], thinking=True),
        AnswerMode("chain-of-draft", METHODS["chain-of-draft"], thinking=True, reasoning=_draft),
        AnswerMode("thinking", METHODS["direct"], thinking=True, reasoning=_steps),
    )
}
