"""The requests to a model: its name, the messages, the other request fields, and the address of its server."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Benchmark, Message, Question
from bpac.benchmarks.prompting import METHODS, PromptingMethod


class ChatModel(Protocol):
    """A model that answers chat messages, such as ``ModelClient``."""

    async def complete(self, messages: Sequence[Mapping[str, Any]], **body: Any) -> Answer:
        """The model's answer to the messages."""


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """What every request to a model contains, except for the question.

    Parameters
    ----------
    model: the model's name on the server.
    body: request fields besides the messages: sampling, log-probabilities, a switch for thinking (default: none).
    method: prompting method (default: ``direct``).
    api: the API of the server: ``chat``, ``responses`` or ``messages`` (default: ``chat``).

    >>> template = RequestTemplate("m", {"temperature": 0.0})
    >>> template.settings()
    {'model': 'm', 'method': 'direct', 'body': {'temperature': 0.0}}
    """

    model: str
    body: Mapping[str, Any] = field(default_factory=dict)
    method: PromptingMethod = METHODS["direct"]
    api: str = "chat"

    def settings(self) -> dict[str, Any]:
        """Everything that the answers depend on. The server's address is left out: it may change between runs."""
        api = {} if self.api == "chat" else {"api": self.api}  # runs of earlier versions have none
        return {"model": self.model, "method": self.method.name, "body": dict(self.body), **api}

    def messages(self, benchmark: Benchmark, question: Question) -> list[Message]:
        """The messages that ask a question."""
        return self.method.apply(benchmark.ask(question))

    def fields(self) -> dict[str, Any]:
        """The other fields of the request."""
        return {**self.method.request, **self.body}


def prompt_fingerprint(benchmark: Benchmark, question: Question, templates: Sequence[RequestTemplate]) -> str:
    """A hash of the messages that ask a question; it changes if the wording changes."""
    messages = [template.messages(benchmark, question) for template in templates]
    return hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ModelServer:
    """The address of a model, with the time limit and the retries of its requests.

    Parameters
    ----------
    base_url: the server's address, including ``/v1``.
    model: the model's name on the server.
    api_key: the API key, or ``env:NAME`` for the environment variable that contains it (default: none).
    timeout: time limit of one attempt in seconds (default: 600).
    retries: how many times a failed attempt is repeated, each time after a longer wait (default: 4).
    api: the API of the server: ``chat``, ``responses`` or ``messages`` (default: ``chat``).
    """

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 600.0
    retries: int = 4
    api: Literal["chat", "responses", "messages"] = "chat"

    def client(self, body: Mapping[str, Any] | None = None) -> "ChatClient":
        """A client of the server, to be used as an asynchronous context manager."""
        from bpac.models.client import ModelClient  # noqa: PLC0415  # it needs an extra that grading does not need

        return ModelClient(
            self.base_url,
            self.model,
            api_key=self.api_key,
            timeout=self.timeout,
            retries=self.retries,
            body=body or {},
            api=self.api,
        )


class ChatClient(ChatModel, AbstractAsyncContextManager[ChatModel], Protocol):
    """A model that can be asked until it is closed."""
