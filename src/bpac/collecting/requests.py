"""How a model is asked: which one, in what words, with what settings, and where it is."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Benchmark, Message, Question
from bpac.benchmarks.prompting import METHODS, PromptingMethod


class ChatModel(Protocol):
    """A model that can be asked, such as ``ModelClient``."""

    async def complete(self, messages: Sequence[Mapping[str, Any]], **body: Any) -> Answer:
        """The model's answer to the messages."""


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """What is sent to a model.

    Parameters
    ----------
    model: its name on the server.
    body: fields of every request besides the messages: sampling, log-probabilities, a switch for thinking.
    method: the way of prompting.

    >>> recipe = RequestTemplate("m", {"temperature": 0.0})
    >>> recipe.settings()
    {'model': 'm', 'method': 'direct', 'body': {'temperature': 0.0}}
    """

    model: str
    body: Mapping[str, Any] = field(default_factory=dict)
    method: PromptingMethod = METHODS["direct"]

    def settings(self) -> dict[str, Any]:
        """All that answers depend on. Not where the server is: it may move while a run is stopped."""
        return {"model": self.model, "method": self.method.name, "body": dict(self.body)}

    def messages(self, benchmark: Benchmark, question: Question) -> list[Message]:
        """The messages that ask a question."""
        return self.method.apply(benchmark.ask(question))

    def fields(self) -> dict[str, Any]:
        """The other fields of the request."""
        return {**self.method.request, **self.body}


def prompt_fingerprint(benchmark: Benchmark, question: Question, recipes: Sequence[RequestTemplate]) -> str:
    """A name for the words in which a question is asked; other words have another name."""
    words = [recipe.messages(benchmark, question) for recipe in recipes]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ModelServer:
    """Where a model is, and how patient to be with it.

    Parameters
    ----------
    base_url: where the server is, ``/v1`` included.
    model: the model's name there.
    api_key: the key, or ``env:NAME`` for the environment variable that holds it.
    timeout: seconds one attempt may take.
    retries: how often a failed attempt is repeated, each time after a longer wait.
    """

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 600.0
    retries: int = 4

    def client(self, body: Mapping[str, Any] | None = None) -> "ChatClient":
        """A client of it, to be used as an asynchronous context manager."""
        from bpac.models.client import ModelClient  # noqa: PLC0415  # it needs an extra, and grading does not

        return ModelClient(
            self.base_url,
            self.model,
            api_key=self.api_key,
            timeout=self.timeout,
            retries=self.retries,
            body=body or {},
        )


class ChatClient(ChatModel, AbstractAsyncContextManager[ChatModel], Protocol):
    """A model that can be asked until it is closed."""
