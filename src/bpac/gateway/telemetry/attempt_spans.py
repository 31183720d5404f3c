"""Spans of attempts to get an answer of a model server, with OpenTelemetry's attributes for generative AI.

1. Each attempt is a span of kind CLIENT within the span of its stage: retries, deployments, drafts, experts and judges.
   Attempts outside requests, such as probes, have none.
2. It is never the current span: a stream may end in another task than the one it began in.
3. It has names, counts and the type of an error, and nothing of what was asked or answered.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self
from urllib.parse import urlsplit

from bpac.answer import token_count
from bpac.wire.stream import StreamEvent

# Providers that OpenTelemetry knows, by the end of the server's name.
_PROVIDERS = {
    "anthropic.com": "anthropic", "deepseek.com": "deepseek", "generativelanguage.googleapis.com": "gcp.gemini",
    "groq.com": "groq", "mistral.ai": "mistral_ai", "openai.azure.com": "azure.ai.openai", "openai.com": "openai",
    "perplexity.ai": "perplexity", "x.ai": "x_ai",
}  # fmt: skip
_OPERATIONS = {"/embeddings": "embeddings", "/completions": "text_completion"}
# Fields of a request that are numbers, with the attributes that they are recorded as.
_NUMBERS = {
    "max_tokens": "gen_ai.request.max_tokens", "max_completion_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature", "top_p": "gen_ai.request.top_p", "top_k": "gen_ai.request.top_k",
    "frequency_penalty": "gen_ai.request.frequency_penalty", "presence_penalty": "gen_ai.request.presence_penalty",
    "seed": "gen_ai.request.seed", "n": "gen_ai.request.choice.count",
}  # fmt: skip
_LONGEST_NAME = 200


def operation_of(path: str) -> str:
    """What a model does at an endpoint, as OpenTelemetry names it.

    >>> operation_of("/embeddings"), operation_of("/chat/completions")
    ('embeddings', 'chat')
    """
    return _OPERATIONS.get(path, "chat")


class ModelAddress(NamedTuple):
    """The model that requests are sent to.

    Parameters
    ----------
    name: its name in the configuration.
    model: its name on the server.
    base_url: the address of the server.
    api: the API of the server.
    path: the endpoint, if it is not that of chats.
    """

    name: str
    model: str
    base_url: str
    api: str = "chat"
    path: str = ""

    @property
    def operation(self) -> str:
        """What the model does, as OpenTelemetry names it."""
        return operation_of(self.path)

    def attributes(self) -> dict[str, str | int]:
        """The attributes of all spans of requests to it.

        >>> ModelAddress("large", "gpt-5.1", "https://me:secret@api.openai.com/v1?k=secret").attributes()["server.port"]
        443
        """
        parts = urlsplit(self.base_url)
        host = parts.hostname or ""
        known = (name for end, name in _PROVIDERS.items() if host == end or host.endswith(f".{end}"))
        provider = next(known, "anthropic" if self.api == "messages" else "openai")
        return {
            "gen_ai.operation.name": self.operation,
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": self.model,
            "server.address": host,
            "server.port": parts.port or (443 if parts.scheme == "https" else 80),
            "bpac.model": self.name,
        }


class AttemptSpan(Protocol):
    """The span of one attempt, in a ``with`` block, at whose end it ends.

    Attributes
    ----------
    headers: headers with which the model server can continue the trace.
    """

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers with which the model server can continue the trace."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def responded(self, status: int) -> None:
        """The server has responded with a status."""

    def answered(self, read: Callable[[], Any]) -> None:
        """The server has sent a whole answer, whose JSON value ``read`` returns."""

    def received(self, events: list[StreamEvent]) -> None:
        """Events of a stream have arrived."""


# Begins the span of an attempt to send a request.
NewAttempt = Callable[[Mapping[str, Any]], AttemptSpan]


class NoAttempt:
    """Records nothing."""

    headers: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing."""

    def responded(self, status: int) -> None:
        """Nothing."""

    def answered(self, read: Callable[[], Any]) -> None:
        """Nothing."""

    def received(self, events: list[StreamEvent]) -> None:
        """Nothing."""


NO_ATTEMPT = NoAttempt()


class OpenAttempt:
    """A span that is being recorded.

    Parameters
    ----------
    span: the span.
    headers: headers with which the model server can continue the trace.
    failed: the status code of a span that failed.
    """

    def __init__(self, span: Any, headers: Mapping[str, str], failed: Any) -> None:
        self._span = span
        self._failed = failed
        self._began = time.monotonic()
        self._streams = False
        self._usage: Any = None
        self._finish_reasons: list[str] = []
        self.headers = headers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._span.set_attributes(usage_attributes(self._usage))
        if self._finish_reasons:
            self._span.set_attribute("gen_ai.response.finish_reasons", self._finish_reasons)
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            # Nobody needed the answer any more, which is no fault of the server.
            self._span.set_attribute("bpac.cancelled", True)
        elif error is not None:
            name = error_type(error)
            self._span.set_attribute("error.type", name)
            self._span.set_status(self._failed, name)
        self._span.end()

    def responded(self, status: int) -> None:
        """The server has responded with a status."""
        self._span.set_attribute("http.response.status_code", status)

    def answered(self, read: Callable[[], Any]) -> None:
        """The server has sent a whole answer, whose JSON value ``read`` returns."""
        document = read()
        self._name(document)
        self._usage = document.get("usage")
        choices = document.get("choices")
        listed = choices if isinstance(choices, list) else []
        self._finish(choice.get("finish_reason") for choice in listed if isinstance(choice, Mapping))

    def received(self, events: list[StreamEvent]) -> None:
        """Events of a stream have arrived."""
        if not self._streams:
            self._streams = True
            self._span.set_attribute("gen_ai.request.stream", True)
            self._span.set_attribute("gen_ai.response.time_to_first_chunk", time.monotonic() - self._began)
            self._name(events[0].body())
        for _, chunk in events:
            self._usage = chunk.usage or self._usage
            self._finish(choice.finish_reason for choice in chunk.choices)

    def _name(self, document: Mapping[str, Any]) -> None:
        for field in ("id", "model"):
            value = document.get(field)
            if isinstance(value, str) and value:
                self._span.set_attribute(f"gen_ai.response.{field}", value[:_LONGEST_NAME])

    def _finish(self, reasons: Iterable[Any]) -> None:
        self._finish_reasons += [reason[:_LONGEST_NAME] for reason in reasons if isinstance(reason, str)]


def request_attributes(body: Mapping[str, Any]) -> dict[str, Any]:
    """What is recorded of a request: its settings, and nothing of its messages.

    >>> request_attributes({"max_tokens": 50, "messages": [{"role": "user", "content": "a secret"}], "n": 1})
    {'gen_ai.request.max_tokens': 50}
    """
    found: dict[str, Any] = {}
    for name, attribute in _NUMBERS.items():
        value = body.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and (name, value) != ("n", 1):
            found[attribute] = value
    wanted = body.get("response_format")
    if isinstance(wanted, Mapping):
        found["gen_ai.output.type"] = "text" if wanted.get("type") == "text" else "json"
    return found


def usage_attributes(usage: Any) -> dict[str, int]:
    """The counts of tokens in a response.

    >>> usage_attributes({"prompt_tokens": 7, "completion_tokens": 2})
    {'gen_ai.usage.input_tokens': 7, 'gen_ai.usage.output_tokens': 2}
    """
    if not isinstance(usage, Mapping):
        return {}
    read, generated = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    inside = read if isinstance(read, Mapping) else {}
    counts = {
        "input_tokens": usage.get("prompt_tokens"),
        "output_tokens": usage.get("completion_tokens"),
        "cache_read.input_tokens": inside.get("cached_tokens"),
        "cache_creation.input_tokens": inside.get("cache_creation_tokens"),
        "reasoning.output_tokens": generated.get("reasoning_tokens") if isinstance(generated, Mapping) else None,
    }
    known = ((name, token_count(value)) for name, value in counts.items())
    return {f"gen_ai.usage.{name}": count for name, count in known if count is not None}


def error_type(error: BaseException) -> str:
    """The type of an error: the server's status if it has one, or else the kind of the failure.

    >>> error_type(TimeoutError()), error_type(ValueError("a secret"))
    ('timeout', 'ValueError')
    """
    status = getattr(error, "replied", None) or getattr(error, "status", None)
    if isinstance(status, int):
        return str(status)
    return "timeout" if isinstance(error, TimeoutError) else type(error).__name__
