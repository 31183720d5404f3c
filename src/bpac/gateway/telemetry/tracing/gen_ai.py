"""Names and attributes of OpenTelemetry's conventions for generative AI: of models, requests, tokens and errors."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bpac.answer import token_count

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
_LARGEST = 2**63


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


def request_attributes(body: Mapping[str, Any]) -> dict[str, Any]:
    """What is recorded of a request: its settings, and nothing of its messages.

    >>> request_attributes({"max_tokens": 50, "messages": [{"role": "user", "content": "a secret"}], "n": 1})
    {'gen_ai.request.max_tokens': 50}
    """
    found: dict[str, Any] = {}
    for name, attribute in _NUMBERS.items():
        value = body.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or (name, value) == ("n", 1):
            continue
        if abs(value) < _LARGEST:  # exporters fail on larger whole numbers
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
