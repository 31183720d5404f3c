"""The paper's sampling settings, as request bodies for vLLM's OpenAI-compatible server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bpac.benchmarks.benchmark import Message
from bpac.benchmarks.prompting import METHODS, PromptingMethod


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a model's tokens are drawn.

    Parameters
    ----------
    model: its name on the Hugging Face hub and, unless told otherwise, on the server.
    temperature, top_p, top_k, min_p: the settings, as vLLM names them.
    max_tokens: the most tokens of an answer, thinking included.
    """

    model: str
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    max_tokens: int

    def body(
        self, messages: Sequence[Message], method: PromptingMethod = METHODS["direct"], top_logprobs: int = 0
    ) -> dict[str, Any]:
        """The body of a request.

        Parameters
        ----------
        messages: the messages that ask.
        method: the way of prompting.
        top_logprobs: how many likeliest tokens to report in each place; every token's own probability always is.

        >>> INSTRUCT.body([{"role": "user", "content": "1 + 1?"}])["top_k"]
        20
        """
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [dict(message) for message in method.apply(messages)],
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "min_p": self.min_p,
            "max_tokens": self.max_tokens,
            "logprobs": True,
            **method.request,
        }
        return body | {"top_logprobs": top_logprobs} if top_logprobs else body


INSTRUCT = Sampling("Qwen/Qwen3-4B-Instruct-2507", temperature=0.7, top_p=0.8, top_k=20, min_p=0.0, max_tokens=16_384)
THINKING = Sampling("Qwen/Qwen3-4B-Thinking-2507", temperature=0.6, top_p=0.95, top_k=20, min_p=0.0, max_tokens=32_768)

SAMPLINGS: dict[str, Sampling] = {sampling.model: sampling for sampling in (INSTRUCT, THINKING)}
