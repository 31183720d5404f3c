"""The paper's sampling settings, as request bodies for vLLM's OpenAI-compatible server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bpac.benchmarks.benchmark import Message
from bpac.benchmarks.prompting import METHODS, PromptingMethod


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling settings of a model.

    Parameters
    ----------
    model: the name of the model on the Hugging Face hub, which is also its default name on a vLLM server.
    temperature, top_p, top_k, min_p: sampling parameters, as vLLM names them.
    max_tokens: the largest number of tokens of an answer, including reasoning.
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
        messages: the messages that ask the question.
        method: prompting method (default: direct).
        top_logprobs: how many of the most likely tokens to report at each position, in addition to the probability of
            the token itself (default: 0).

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
